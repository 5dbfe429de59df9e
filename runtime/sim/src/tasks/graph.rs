//! The shape of the simulated job, and what each of its subtasks restores.

use streamkeeper_checkpoint::{
    Manifest,
    restore::{DroppedState, MaxParallelism, RestoreOperator, RestorePlan, RestoreVertex, assign},
};
use streamkeeper_jobmanager::engine::{JobTopology, TopologyInput, TopologyOperator, TopologyVertex, Wiring};
use streamkeeper_types::{AttemptId, Error, Generation, OperatorId, Result, VertexId};

pub(crate) const SOURCE: OperatorId = OperatorId(1);
pub(crate) const COUNTER: OperatorId = OperatorId(2);
pub(crate) const SINK: OperatorId = OperatorId(3);

pub(crate) const MAX_PARALLELISM: u32 = 16;

/// Sources that feed counters, each chained with its sink.
pub(crate) fn topology(sources: u32, counters: u32) -> JobTopology {
    let operator = |id, name: &str, coordinated| TopologyOperator { id, name: name.into(), coordinated };
    let source = TopologyVertex {
        id: VertexId(0),
        parallelism: sources,
        inputs: Vec::new(),
        operators: vec![operator(SOURCE, "source", true)],
    };
    let counter = TopologyVertex {
        id: VertexId(1),
        parallelism: counters,
        inputs: vec![TopologyInput { vertex: VertexId(0), wiring: Wiring::AllToAll }],
        operators: vec![operator(COUNTER, "count", false), operator(SINK, "sink", false)],
    };
    JobTopology {
        job: "default/simulated".into(),
        program: String::new(),
        max_parallelism: MAX_PARALLELISM,
        vertices: vec![source, counter],
    }
}

/// Who gets what; nothing without a snapshot.
///
/// # Errors
/// Those of [`assign`].
pub(crate) fn plan(manifest: Option<&Manifest>, topology: &JobTopology) -> Result<RestorePlan> {
    let Some(manifest) = manifest else { return Ok(RestorePlan::default()) };
    let vertices: Vec<RestoreVertex> = topology
        .vertices
        .iter()
        .map(|vertex| RestoreVertex {
            vertex: vertex.id,
            parallelism: vertex.parallelism,
            operators: vertex
                .operators
                .iter()
                .map(|operator| RestoreOperator { id: operator.id, former_id: None, name: operator.name.clone() })
                .collect(),
            inputs: vertex.inputs.iter().map(|input| input.vertex).collect(),
        })
        .collect();
    assign(manifest, &vertices, MaxParallelism::Derived(MAX_PARALLELISM), DroppedState::Refuse)
        .map_err(|error: Error| error.at("restore"))
}

/// The attempts of deployment `number`.
pub(crate) fn attempts(topology: &JobTopology, generation: Generation, number: u32) -> Vec<AttemptId> {
    topology.subtasks().map(|subtask| AttemptId { generation, subtask, number }).collect()
}
