//! From what the log says to what tasks begin with. Reads manifests, decides nothing: the choices are
//! `streamkeeper_checkpoint`'s.

use std::{collections::BTreeMap, sync::Arc};

use serde::Serialize;
use streamkeeper_checkpoint::{
    JobState, Manifest, RestoreSource, StartFrom, files, recovery,
    restore::{self, DroppedState, MaxParallelism, RestoreOperator, RestorePlan, RestoreVertex, SubtaskRestore},
};
use streamkeeper_engine::{JobGraph, Node, OperatorRestore, RestoredLists, StreamGraph, Vertex};
use streamkeeper_state::{Migration, migrations};
use streamkeeper_storage::Storage;
use streamkeeper_types::{CheckpointId, Code, Error, FileRef, OperatorId, Result, SubtaskId, VertexId, key_group};

use super::{JobSpec, RestoreChoice, peek::peek};

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
    let plan = restore::assign(manifest, &vertices(&graph), wanted, spec.dropped_state)?;
    state_changes(manifest, &graph, &plan, spec.dropped_state)?;
    Ok(plan)
}

/// What becomes of the state of one operator whose columns are not those of the snapshot.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct StateChange {
    pub operator: String,
    #[serde(flatten)]
    pub migration: Migration,
}

/// Compares the tables of the graph with those of the snapshot: the tasks would refuse the same, but one by one and
/// after everything was deployed.
fn state_changes(
    manifest: &Manifest,
    graph: &JobGraph,
    plan: &RestorePlan,
    dropped: DroppedState,
) -> Result<Vec<StateChange>> {
    let mut changes = Vec::new();
    let running = graph.vertices.iter().filter(|vertex| !is_finished(plan, vertex.id));
    for node in running.flat_map(|vertex| &vertex.nodes) {
        let Some(old) = manifest.operators.iter().find(|operator| operator.id == node.id) else { continue };
        let tables = node.tables();
        for handle in old.subtasks.iter().filter_map(|subtask| subtask.keyed.as_ref()) {
            let migrations = migrations(handle, &tables, of_tasks(dropped)).map_err(|e| e.at(node.name.clone()))?;
            for migration in migrations {
                let change = StateChange { operator: node.name.clone(), migration };
                if !changes.contains(&change) {
                    changes.push(change);
                }
            }
        }
    }
    Ok(changes)
}

/// The job's consent in the words of its state.
fn of_tasks(dropped: DroppedState) -> streamkeeper_state::DroppedState {
    match dropped {
        DroppedState::Refuse => streamkeeper_state::DroppedState::Refuse,
        DroppedState::Allow => streamkeeper_state::DroppedState::Allow,
    }
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
    let operator = |node: &Node| RestoreOperator { id: node.id, former_id: None, name: node.name.clone() };
    let vertex = |vertex: &Vertex| RestoreVertex {
        vertex: vertex.id,
        parallelism: vertex.parallelism,
        operators: vertex.nodes.iter().map(operator).collect(),
        inputs: graph.edges.iter().filter(|edge| edge.to == vertex.id).map(|edge| edge.from).collect(),
    };
    graph.vertices.iter().map(vertex).collect()
}

/// What a start of a job would do with the state that is there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Preview {
    /// The snapshot that the job would begin with.
    pub from: CheckpointId,
    /// Operators that go on with their state as it is.
    pub kept: Vec<String>,
    /// Operators with keyed state that the snapshot does not know: they begin empty.
    pub new: Vec<String>,
    /// Operators of the snapshot whose state no operator of the job takes.
    pub dropped: Vec<String>,
    /// Operators that go on with other columns.
    pub changes: Vec<StateChange>,
}

impl Preview {
    /// Whether the start needs the consent to lose state.
    #[must_use]
    pub fn drops_state(&self) -> bool {
        !self.dropped.is_empty() || self.changes.iter().any(|change| !change.migration.removed.is_empty())
    }
}

/// What starting `graph` would mean for the job's state, without changing or taking over anything. `None`: there is
/// nothing to restore, or the job has finished.
///
/// # Errors
/// As a start with the consent to lose state; storage errors.
pub fn preview(
    storage: &dyn Storage,
    graph: &StreamGraph,
    parallelism: u32,
    max_parallelism: Option<u32>,
    choice: &RestoreChoice,
) -> Result<Option<Preview>> {
    let manifest = match choice {
        RestoreChoice::Discard => return Ok(None),
        RestoreChoice::From(folder) => files::read_manifest(storage, folder)?,
        RestoreChoice::Auto => {
            let Some(state) = peek(storage)? else { return Ok(None) };
            match recovery::choose(&state) {
                StartFrom::RecoveryPoint(point) => files::read_completed(storage, &point)?,
                StartFrom::Source(RestoreSource::Savepoint { path }) => files::read_manifest(storage, &path)?,
                StartFrom::Source(_) | StartFrom::Empty | StartFrom::Ended(_) => return Ok(None),
            }
        }
    };
    preview_of(&manifest, graph, parallelism, max_parallelism).map(Some)
}

/// [`preview`] for one snapshot, wherever it lies.
///
/// # Errors
/// The snapshot's state does not fit the job whatever is agreed to.
pub fn preview_of(
    manifest: &Manifest,
    graph: &StreamGraph,
    parallelism: u32,
    max_parallelism: Option<u32>,
) -> Result<Preview> {
    let derived = key_group::default_max_parallelism(parallelism);
    let graph = JobGraph::chain(graph, parallelism, derived);
    let wanted = max_parallelism.map_or(MaxParallelism::Derived(derived), MaxParallelism::Set);
    let plan = restore::assign(manifest, &vertices(&graph), wanted, DroppedState::Allow)?;
    let changes = state_changes(manifest, &graph, &plan, DroppedState::Allow)?;
    let (mut kept, mut new) = (Vec::new(), Vec::new());
    for node in graph.vertices.iter().flat_map(|vertex| &vertex.nodes) {
        match manifest.operators.iter().find(|operator| operator.id == node.id) {
            Some(old) if old.has_state() && changes.iter().all(|change| change.operator != node.name) => {
                kept.push(node.name.clone());
            }
            None if !node.tables().is_empty() => new.push(node.name.clone()),
            Some(_) | None => {}
        }
    }
    Ok(Preview { from: manifest.checkpoint, kept, new, dropped: plan.dropped, changes })
}

/// The assignment in the engine's words.
pub(super) fn of_subtask(
    plan: &RestorePlan,
    from: Option<CheckpointId>,
    dropped: DroppedState,
    vertex: &Vertex,
    subtask: SubtaskId,
) -> BTreeMap<OperatorId, OperatorRestore> {
    let Some(SubtaskRestore { finished, operators }) = plan.subtasks.get(&subtask) else { return BTreeMap::new() };
    let mut restored: BTreeMap<OperatorId, OperatorRestore> = BTreeMap::new();
    for operator in operators {
        let lists = RestoredLists { from, lists: operator.lists.clone() };
        let state =
            OperatorRestore { lists, keyed: operator.keyed.clone(), dropped: of_tasks(dropped), finished: *finished };
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
