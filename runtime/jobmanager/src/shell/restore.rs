//! From what the log says to what tasks begin with. Reads manifests, decides nothing: the choices are
//! `streamkeeper_checkpoint`'s.

use std::{collections::BTreeMap, sync::Arc};

use streamkeeper_checkpoint::{
    JobState, Manifest, RestoreSource, StartFrom, files, recovery,
    restore::{self, DroppedState, MaxParallelism, RestoreOperator, RestorePlan, RestoreVertex, SubtaskRestore},
};
use streamkeeper_engine::{JobGraph, OperatorRestore, RestoredLists, StreamGraph, Vertex};
use streamkeeper_storage::Storage;
use streamkeeper_types::{CheckpointId, Code, Error, FileRef, OperatorId, Result, SubtaskId, VertexId, key_group};

use super::JobSpec;

/// What a run begins with.
pub(super) struct StartPoint {
    /// `None`: nothing to restore.
    pub manifest: Option<Manifest>,
    /// Files that belong to a savepoint, which no checkpoint of ours may refer to or delete (R23, R28).
    pub not_claimed: Vec<FileRef>,
}

/// The point that the log names.
///
/// # Errors
/// The snapshot cannot be read; never a reason to take an older one (R33). `INTERNAL` for a job that ended.
pub(super) fn start_point(storage: &dyn Storage, state: &JobState) -> Result<StartPoint> {
    let (manifest, is_savepoint) = match recovery::choose(state) {
        StartFrom::RecoveryPoint(point) => (files::read_completed(storage, &point)?, point.kind.is_savepoint()),
        StartFrom::Source(RestoreSource::Savepoint { path }) => (files::read_manifest(storage, &path)?, true),
        StartFrom::Source(RestoreSource::Discard | RestoreSource::Stateless) | StartFrom::Empty => {
            return Ok(StartPoint { manifest: None, not_claimed: Vec::new() });
        }
        StartFrom::Ended(_) => return Err(Error::internal("a job that ended is not started again")),
    };
    files::check_files(storage, manifest.files())?;
    let not_claimed = if is_savepoint { manifest.files().cloned().collect() } else { Vec::new() };
    Ok(StartPoint { manifest: Some(manifest), not_claimed })
}

/// Who gets what of the snapshot; for an empty start nobody anything.
///
/// # Errors
/// As [`restore::assign`].
pub(super) fn plan(spec: &JobSpec, parallelism: u32, manifest: Option<&Manifest>) -> Result<RestorePlan> {
    let derived = key_group::default_max_parallelism(spec.bounds.target.max(parallelism));
    let Some(manifest) = manifest else {
        let max_parallelism = spec.max_parallelism.unwrap_or(derived);
        check_parallelism(parallelism, max_parallelism)?;
        return Ok(RestorePlan { max_parallelism, ..RestorePlan::default() });
    };
    // Vertices do not depend on the number of key groups.
    let graph = JobGraph::chain(&spec.graph, parallelism, derived);
    let wanted = spec.max_parallelism.map_or(MaxParallelism::Derived(derived), MaxParallelism::Set);
    restore::assign(manifest, &vertices(&graph), wanted, spec.dropped_state)
}

fn check_parallelism(parallelism: u32, max_parallelism: u32) -> Result<()> {
    if 1 <= parallelism && parallelism <= max_parallelism && max_parallelism <= key_group::MAX_PARALLELISM_LIMIT {
        return Ok(());
    }
    let cause = format!("parallelism {parallelism} does not fit {max_parallelism} key groups");
    Err(Error::new(Code::ParallelismInvalid, cause)
        .way_out(format!("choose 1 ≤ parallelism ≤ maxParallelism ≤ {}", key_group::MAX_PARALLELISM_LIMIT)))
}

/// The graph as the assignment sees it.
pub(super) fn vertices(graph: &JobGraph) -> Vec<RestoreVertex> {
    let operator =
        |node: &streamkeeper_engine::Node| RestoreOperator { id: node.id, former_id: None, name: node.name.clone() };
    let vertex = |vertex: &Vertex| RestoreVertex {
        vertex: vertex.id,
        parallelism: vertex.parallelism,
        operators: vertex.nodes.iter().map(operator).collect(),
        inputs: graph.edges.iter().filter(|edge| edge.to == vertex.id).map(|edge| edge.from).collect(),
    };
    graph.vertices.iter().map(vertex).collect()
}

/// What a change of the program would mean for the state in `manifest`, without changing anything: `plan` shows it.
///
/// # Errors
/// As [`restore::assign`].
pub fn preview(
    manifest: &Manifest,
    graph: &StreamGraph,
    parallelism: u32,
    max_parallelism: Option<u32>,
) -> Result<RestorePlan> {
    let derived = key_group::default_max_parallelism(parallelism);
    let graph = JobGraph::chain(graph, parallelism, derived);
    let wanted = max_parallelism.map_or(MaxParallelism::Derived(derived), MaxParallelism::Set);
    restore::assign(manifest, &vertices(&graph), wanted, DroppedState::Allow)
}

/// The assignment in the engine's words.
pub(super) fn of_subtask(
    plan: &RestorePlan,
    from: Option<CheckpointId>,
    vertex: &Vertex,
    subtask: SubtaskId,
) -> BTreeMap<OperatorId, OperatorRestore> {
    let Some(SubtaskRestore { finished, operators }) = plan.subtasks.get(&subtask) else { return BTreeMap::new() };
    let mut restored: BTreeMap<OperatorId, OperatorRestore> = BTreeMap::new();
    for operator in operators {
        let lists = RestoredLists { from, lists: operator.lists.clone() };
        let state = OperatorRestore { lists, keyed: operator.keyed.clone(), finished: *finished };
        restored.insert(operator.operator, state);
    }
    if *finished {
        for node in &vertex.nodes {
            restored.entry(node.id).or_default().finished = true;
        }
    }
    restored
}

/// Whether all subtasks of a vertex had finished.
pub(super) fn is_finished(plan: &RestorePlan, vertex: VertexId) -> bool {
    plan.subtasks.get(&SubtaskId { vertex, index: 0 }).is_some_and(|subtask| subtask.finished)
}

/// The job graph with as many key groups as the plan says.
pub(super) fn chain(spec: &JobSpec, parallelism: u32, plan: &RestorePlan) -> Arc<JobGraph> {
    Arc::new(JobGraph::chain(&spec.graph, parallelism, plan.max_parallelism))
}
