//! What the engine knows of a job graph: vertices, their subtasks and operators, and who feeds whom.

use streamkeeper_types::{OperatorId, SubtaskId, VertexId};

/// A job graph without what only tasks need.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct JobTopology {
    /// `<namespace>/<name>`.
    pub job: String,
    /// Text of the program, for manifests.
    pub program: String,
    pub max_parallelism: u32,
    pub vertices: Vec<TopologyVertex>,
}

/// A chain of operators.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TopologyVertex {
    pub id: VertexId,
    pub parallelism: u32,
    pub inputs: Vec<TopologyInput>,
    /// In chain order.
    pub operators: Vec<TopologyOperator>,
}

/// An edge, seen from its consumer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TopologyInput {
    pub vertex: VertexId,
    pub wiring: Wiring,
}

/// Which subtasks of the producer feed a subtask of the consumer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wiring {
    /// Subtask i feeds subtask i.
    OneToOne,
    AllToAll,
}

/// One operator of a chain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TopologyOperator {
    pub id: OperatorId,
    pub name: String,
    /// Whether a split coordinator beside the JobManager belongs to it.
    pub coordinated: bool,
}

impl JobTopology {
    /// Every subtask, by vertex and index.
    pub fn subtasks(&self) -> impl Iterator<Item = SubtaskId> + '_ {
        self.vertices.iter().flat_map(TopologyVertex::subtasks)
    }

    /// Operators that have a split coordinator.
    pub fn coordinated(&self) -> impl Iterator<Item = OperatorId> + '_ {
        self.vertices.iter().flat_map(|v| &v.operators).filter(|o| o.coordinated).map(|o| o.id)
    }

    /// Subtasks that feed `subtask`.
    pub fn producers(&self, subtask: SubtaskId) -> impl Iterator<Item = SubtaskId> + '_ {
        let vertex = self.vertices.iter().find(move |vertex| vertex.id == subtask.vertex);
        let inputs = vertex.into_iter().flat_map(|vertex| &vertex.inputs);
        inputs.flat_map(move |input| {
            let producer = self.vertices.iter().find(move |vertex| vertex.id == input.vertex);
            let all = producer.into_iter().flat_map(TopologyVertex::subtasks);
            all.filter(move |from| input.wiring == Wiring::AllToAll || from.index == subtask.index)
        })
    }
}

impl TopologyVertex {
    pub fn subtasks(&self) -> impl Iterator<Item = SubtaskId> + use<> {
        let vertex = self.id;
        (0..self.parallelism).map(move |index| SubtaskId { vertex, index })
    }
}
