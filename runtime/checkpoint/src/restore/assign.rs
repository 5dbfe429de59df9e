//! Matches operators, checks that the snapshot fits, and assigns state to subtasks.

use std::collections::{BTreeMap, HashMap, HashSet};

use streamkeeper_types::{Code, Error, OperatorId, Result, SubtaskId, VertexId, key_group};

use super::{
    DroppedState, MaxParallelism, OperatorRestore, RestoreOperator, RestorePlan, RestoreVertex, SubtaskRestore, keyed,
    lists,
};
use crate::{Manifest, ManifestOperator};

/// Assigns the snapshot's state to the vertices of a job.
///
/// # Errors
/// `PARALLELISM_INVALID` if key groups and parallelism do not fit; `STATE_INCOMPATIBLE` if state would be dropped
/// without consent, or an unfinished operator stands before a finished one (F4). Nothing was changed then.
pub fn assign(
    manifest: &Manifest,
    vertices: &[RestoreVertex],
    wanted: MaxParallelism,
    dropped_state: DroppedState,
) -> Result<RestorePlan> {
    let max_parallelism = agree(manifest, vertices, wanted)?;
    let matches = Matches::new(manifest, vertices);
    let dropped = matches.dropped(manifest);
    if let (DroppedState::Refuse, Some(first)) = (dropped_state, dropped.first()) {
        let cause = format!("the state of `{first}` fits no operator of this job ({} in all)", dropped.len());
        return Err(Error::new(Code::StateIncompatible, cause)
            .way_out("undo the change of that operator, or agree to lose its state with --allow-dropped-state"));
    }
    let finished = finished_vertices(&matches, vertices)?;

    let mut plan = RestorePlan { max_parallelism, dropped, ..RestorePlan::default() };
    for vertex in vertices {
        let mut subtasks = vec![SubtaskRestore::default(); vertex.parallelism as usize];
        for operator in &vertex.operators {
            let Some(old) = matches.of(operator) else {
                plan.new.push(operator.name.clone());
                continue;
            };
            plan.kept.push(operator.name.clone());
            if let Some(state) = &old.coordinator {
                plan.coordinators.insert(operator.id, state.clone());
            }
            for (subtask, part) in subtasks.iter_mut().zip(parts(operator.id, old, vertex.parallelism, max_parallelism))
            {
                subtask.operators.extend(part);
            }
        }
        for (index, mut subtask) in (0..).zip(subtasks) {
            subtask.finished = finished.contains(&vertex.vertex);
            plan.subtasks.insert(SubtaskId { vertex: vertex.vertex, index }, subtask);
        }
    }
    Ok(plan)
}

/// The number of key groups to run with.
fn agree(manifest: &Manifest, vertices: &[RestoreVertex], wanted: MaxParallelism) -> Result<u32> {
    let restored = manifest.max_parallelism;
    if let MaxParallelism::Set(set) = wanted
        && set != restored
    {
        let cause = format!("the snapshot has {restored} key groups, and this job asks for {set}");
        return Err(Error::new(Code::ParallelismInvalid, cause)
            .way_out(format!("leave the max parallelism out, or set it to {restored}")));
    }
    if let Some(vertex) = vertices.iter().find(|vertex| vertex.parallelism > restored) {
        let cause =
            format!("the snapshot has {restored} key groups, too few for a parallelism of {}", vertex.parallelism);
        return Err(Error::new(Code::ParallelismInvalid, cause).way_out(format!(
            "use a parallelism of at most {restored}: the number of key groups stays for the job's life"
        )));
    }
    Ok(restored)
}

/// Which old operator each new one goes on with.
struct Matches<'a> {
    old: HashMap<OperatorId, &'a ManifestOperator>,
    /// Old ids that somebody takes.
    taken: HashSet<OperatorId>,
}

impl<'a> Matches<'a> {
    fn new(manifest: &'a Manifest, vertices: &[RestoreVertex]) -> Self {
        let old = manifest.operators.iter().map(|operator| (operator.id, operator)).collect();
        let mut matches = Self { old, taken: HashSet::new() };
        let taken =
            vertices.iter().flat_map(|v| &v.operators).filter_map(|o| matches.of(o)).map(|old| old.id).collect();
        matches.taken = taken;
        matches
    }

    fn of(&self, operator: &RestoreOperator) -> Option<&'a ManifestOperator> {
        let by_former = || operator.former_id.and_then(|id| self.old.get(&id));
        self.old.get(&operator.id).or_else(by_former).copied()
    }

    fn dropped(&self, manifest: &Manifest) -> Vec<String> {
        let lost = manifest.operators.iter().filter(|o| o.has_state() && !self.taken.contains(&o.id));
        lost.map(|operator| operator.name.clone()).collect()
    }
}

/// Vertices all of whose operators finished.
fn finished_vertices(matches: &Matches<'_>, vertices: &[RestoreVertex]) -> Result<HashSet<VertexId>> {
    let is_finished = |operator: &RestoreOperator| matches.of(operator).is_some_and(ManifestOperator::is_finished);
    let mut finished = HashSet::new();
    for vertex in vertices.iter().filter(|vertex| vertex.operators.iter().any(is_finished)) {
        if let Some(new) = vertex.operators.iter().find(|operator| !is_finished(operator)) {
            return Err(before_finished(&new.name));
        }
        finished.insert(vertex.vertex);
    }
    let unfinished: BTreeMap<VertexId, &RestoreVertex> =
        vertices.iter().filter(|v| !finished.contains(&v.vertex)).map(|v| (v.vertex, v)).collect();
    for vertex in vertices.iter().filter(|vertex| finished.contains(&vertex.vertex)) {
        if let Some(input) = vertex.inputs.iter().find_map(|input| unfinished.get(input)) {
            let name = input.operators.first().map_or("?", |operator| &operator.name);
            return Err(before_finished(name));
        }
    }
    Ok(finished)
}

fn before_finished(name: &str) -> Error {
    let cause = format!("`{name}` still has work to do, but stands before an operator that finished in the snapshot");
    Error::new(Code::StateIncompatible, cause)
        .way_out("restore from a snapshot taken before the inputs ended, or undo the change")
}

/// One operator's state for each new subtask; `None` where there is nothing at all.
fn parts(
    id: OperatorId,
    old: &ManifestOperator,
    parallelism: u32,
    max_parallelism: u32,
) -> impl Iterator<Item = Option<OperatorRestore>> {
    let old_lists: Vec<_> = old.subtasks.iter().map(|subtask| &subtask.lists).collect();
    let lists = lists::deal(&old_lists, parallelism as usize);
    (0..parallelism).zip(lists).map(move |(index, lists)| {
        let range = key_group::range_of(index, parallelism, max_parallelism);
        let keyed = keyed::intersect(old.subtasks.iter().filter_map(|subtask| subtask.keyed.as_ref()), range);
        let is_empty = keyed.is_empty() && lists.is_empty();
        (!is_empty).then_some(OperatorRestore { operator: id, keyed, lists })
    })
}
