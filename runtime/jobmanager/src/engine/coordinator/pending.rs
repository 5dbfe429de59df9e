//! A checkpoint under way, and how its parts become a manifest.

use std::collections::{BTreeMap, BTreeSet};

use streamkeeper_checkpoint::{Manifest, ManifestOperator, log::Completion, manifest::ManifestSubtask};
use streamkeeper_protocol::{Barrier, CheckpointKind};
use streamkeeper_types::{
    AttemptId, CheckpointId, FileRef, FileScope, OperatorId, SubtaskId, key_group,
    snapshot::{ListMode, SubtaskSnapshot},
};

use crate::engine::{CheckpointRequest, CheckpointStatistics, JobTopology, TopologyVertex};

/// One checkpoint from its id to its end.
#[derive(Debug)]
pub(super) struct Pending {
    pub(super) request: CheckpointRequest,
    pub(super) barrier: Barrier,
    pub(super) stage: Stage,
    /// Split coordinators whose cut has not come yet, and the cuts that have.
    pub(super) uncut: BTreeSet<OperatorId>,
    pub(super) coordinators: BTreeMap<OperatorId, Vec<u8>>,
    /// Who has to acknowledge.
    pub(super) expected: BTreeMap<SubtaskId, AttemptId>,
    /// Who had finished when the tasks were triggered.
    pub(super) finished: BTreeSet<SubtaskId>,
    pub(super) acks: BTreeMap<SubtaskId, Acknowledged>,
    pub(super) statistics: CheckpointStatistics,
    /// What is published; set when the manifest is written.
    pub(super) completion: Option<Completion>,
}

/// Planned and numbered come before there is a `Pending`; published and aborted end it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage {
    /// Split coordinators are being cut; no task knows of it.
    Cutting,
    Triggered,
    /// Everything is acknowledged. From here on only the store's answer decides.
    WritingMetadata,
    Publishing,
    /// The store did not tell whether it is published.
    InDoubt,
}

/// One task's part.
#[derive(Debug)]
pub(super) struct Acknowledged {
    pub(super) snapshot: SubtaskSnapshot,
    /// The task had reported its end of data before: this snapshot covers it.
    pub(super) after_end: bool,
}

impl Pending {
    pub(super) fn id(&self) -> CheckpointId {
        self.barrier.id
    }

    pub(super) fn kind(&self) -> CheckpointKind {
        self.barrier.kind
    }

    /// Whether it may still be aborted.
    pub(super) fn is_abortable(&self) -> bool {
        matches!(self.stage, Stage::Cutting | Stage::Triggered)
    }

    pub(super) fn is_acknowledged(&self) -> bool {
        self.acks.len() == self.expected.len()
    }

    /// Files that nobody else uses.
    pub(super) fn private_files(&self) -> Vec<String> {
        let snapshots = self.acks.values().map(|ack| &ack.snapshot);
        private_files(snapshots.flat_map(SubtaskSnapshot::files))
    }

    /// An operator with union state, some but not all of whose subtasks finished: its finished subtasks' items would
    /// be missing after a restore (F2, B23).
    pub(super) fn half_finished_union(&self, topology: &JobTopology) -> Option<String> {
        let is_half = |vertex: &&TopologyVertex| {
            let finished = vertex.subtasks().filter(|subtask| self.finished.contains(subtask)).count();
            finished > 0 && finished < vertex.parallelism as usize
        };
        let has_union = |subtask: SubtaskId, operator: OperatorId| {
            let operators = self.acks.get(&subtask).into_iter().flat_map(|ack| &ack.snapshot.operators);
            let lists = operators.filter(|o| o.operator == operator).flat_map(|o| o.lists.values());
            lists.into_iter().any(|list| list.mode == ListMode::Union)
        };
        let half = topology.vertices.iter().filter(is_half);
        half.flat_map(|vertex| vertex.operators.iter().map(move |operator| (vertex, operator)))
            .find(|(vertex, operator)| vertex.subtasks().any(|subtask| has_union(subtask, operator.id)))
            .map(|(_, operator)| operator.name.clone())
    }

    /// Puts the acknowledged parts together.
    pub(super) fn manifest(&self, topology: &JobTopology) -> Manifest {
        let operators = topology.vertices.iter().flat_map(|vertex| {
            vertex.operators.iter().map(|operator| ManifestOperator {
                id: operator.id,
                name: operator.name.clone(),
                coordinator: self.coordinators.get(&operator.id).cloned(),
                subtasks: vertex.subtasks().map(|subtask| self.part(subtask, operator.id)).collect(),
            })
        });
        Manifest {
            job: topology.job.clone(),
            checkpoint: self.id(),
            kind: self.kind(),
            format: self.barrier.format,
            time: self.barrier.timestamp,
            max_parallelism: topology.max_parallelism,
            hash_version: key_group::HASH_VERSION,
            program: topology.program.clone(),
            operators: operators.collect(),
        }
    }

    fn part(&self, subtask: SubtaskId, operator: OperatorId) -> ManifestSubtask {
        let Some(ack) = self.acks.get(&subtask) else {
            return ManifestSubtask { finished: self.finished.contains(&subtask), ..ManifestSubtask::default() };
        };
        let state = ack.snapshot.operators.iter().find(|state| state.operator == operator).cloned();
        ManifestSubtask { finished: ack.snapshot.finished, ..state.map(ManifestSubtask::from).unwrap_or_default() }
    }
}

/// Paths of the private ones, each once.
pub(super) fn private_files<'a>(files: impl Iterator<Item = &'a FileRef>) -> Vec<String> {
    let private = files.filter(|file| file.scope == FileScope::Private).map(|file| file.path.clone());
    private.collect::<BTreeSet<_>>().into_iter().collect()
}
