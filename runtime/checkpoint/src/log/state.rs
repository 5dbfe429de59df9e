//! What the records of a log add up to.

use serde::{Deserialize, Serialize};
use streamkeeper_protocol::{CheckpointKind, SnapshotFormat};
use streamkeeper_types::{CheckpointId, Millis};

use super::{Completion, Record};

/// The whole state of a job that outlives its processes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobState {
    /// Checkpoints and savepoints that exist, oldest first.
    #[serde(default)]
    pub completed: Vec<CompletedCheckpoint>,
    /// Replaced checkpoints, some of whose files may still exist.
    #[serde(default)]
    pub discards: Vec<Discard>,
    /// The lowest id that is surely unused.
    pub next_id: CheckpointId,
    /// The lowest id that recovery may choose; points below it came before the applied source.
    pub floor: CheckpointId,
    /// The source that was asked for last; in force while no point at or above `floor` exists.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<AppliedSource>,
    /// The job ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<JobResult>,
}

/// What [`JobState::source`] holds.
pub type AppliedSource = RestoreSource;

/// One completed checkpoint or savepoint.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CompletedCheckpoint {
    pub id: CheckpointId,
    pub kind: CheckpointKind,
    pub format: SnapshotFormat,
    /// Path of its manifest in the job's folder.
    pub manifest: String,
    /// XXH3-64 of the manifest's bytes.
    pub checksum: u64,
    /// Bytes of all files that it refers to, its manifest included.
    pub size: u64,
    /// When it completed.
    pub time: Millis,
}

/// A replaced checkpoint that the collector still has to remove.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Discard {
    pub id: CheckpointId,
    pub manifest: String,
}

/// Where a job begins when it was told so.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "from", rename_all = "kebab-case")]
pub enum RestoreSource {
    /// The savepoint in this folder: relative to the job's folder, or a URL.
    Savepoint { path: String },
    /// Nothing: existing state is given up on purpose.
    Discard,
    /// Nothing: the job keeps no state over upgrades.
    Stateless,
}

/// How a job ended. Standbys end with it. Started again, a finished job changes nothing; one that was stopped or cancelled
/// goes on, and one that failed has no result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "status", rename_all = "kebab-case")]
pub enum JobResult {
    /// All input was read and everything is committed.
    Finished { time: Millis },
    /// By a savepoint, from which it goes on.
    Stopped { time: Millis, savepoint: CheckpointId },
    /// Without a savepoint: it goes on from its latest checkpoint.
    Cancelled { time: Millis },
}

impl Default for JobState {
    fn default() -> Self {
        Self {
            completed: Vec::new(),
            discards: Vec::new(),
            next_id: CheckpointId::FIRST,
            floor: CheckpointId::FIRST,
            source: None,
            result: None,
        }
    }
}

impl JobState {
    /// What a new reign begins with: somebody started a stopped or cancelled job again.
    #[must_use]
    pub(super) fn in_new_reign(self) -> Self {
        let result = self.result.filter(|result| matches!(result, JobResult::Finished { .. }));
        Self { result, ..self }
    }

    /// Takes in the next record.
    pub fn apply(&mut self, record: &Record) {
        match record {
            Record::Claim { .. } | Record::Sealed { .. } => {}
            Record::Base(state) => *self = state.clone(),
            Record::Completed(completion) => self.complete(completion),
            Record::Source { source, floor } => {
                self.source = Some(source.clone());
                self.floor = *floor;
                self.next_id = self.next_id.max(*floor);
                self.result = None;
            }
            Record::Ids { to, .. } => self.next_id = self.next_id.max(*to),
            Record::Result(result) => self.result = Some(result.clone()),
        }
    }

    fn complete(&mut self, completion: &Completion) {
        let Completion { checkpoint, subsumes, collected } = completion;
        self.discards.retain(|discard| !collected.contains(&discard.id));
        let (gone, kept) = std::mem::take(&mut self.completed).into_iter().partition(|c| subsumes.contains(&c.id));
        let gone: Vec<CompletedCheckpoint> = gone;
        self.discards.extend(gone.into_iter().map(|c| Discard { id: c.id, manifest: c.manifest }));
        self.completed = kept;
        self.completed.push(checkpoint.clone());
        self.next_id = self.next_id.max(checkpoint.id.next());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn completed(id: u64) -> CompletedCheckpoint {
        CompletedCheckpoint {
            id: CheckpointId(id),
            kind: CheckpointKind::Checkpoint,
            format: SnapshotFormat::Native,
            manifest: format!("chk-{id}/_metadata"),
            checksum: 0,
            size: 0,
            time: 0,
        }
    }

    fn completion(id: u64, subsumes: &[u64], collected: &[u64]) -> Record {
        let ids = |ids: &[u64]| ids.iter().copied().map(CheckpointId).collect();
        Record::Completed(Completion { checkpoint: completed(id), subsumes: ids(subsumes), collected: ids(collected) })
    }

    #[test]
    fn a_replaced_checkpoint_waits_as_a_discard_until_it_is_collected() {
        let mut state = JobState::default();
        for record in [completion(1, &[], &[]), completion(2, &[], &[]), completion(3, &[1], &[])] {
            state.apply(&record);
        }
        assert_eq!(state.completed, [completed(2), completed(3)]);
        assert_eq!(state.discards, [Discard { id: CheckpointId(1), manifest: "chk-1/_metadata".into() }]);
        state.apply(&completion(4, &[2], &[1]));
        assert_eq!(state.discards.iter().map(|d| d.id.0).collect::<Vec<_>>(), [2]);
    }

    #[test]
    fn r1_ids_only_grow() {
        let mut state = JobState::default();
        state.apply(&Record::Ids { from: CheckpointId(1), to: CheckpointId(1001) });
        state.apply(&completion(5, &[], &[]));
        assert_eq!(state.next_id, CheckpointId(1001));
        state.apply(&Record::Source { source: RestoreSource::Discard, floor: CheckpointId(1001) });
        state.apply(&completion(1500, &[], &[]));
        assert_eq!(state.next_id, CheckpointId(1501));
    }

    #[test]
    fn a_new_source_reopens_an_ended_job() {
        let mut state = JobState::default();
        state.apply(&Record::Result(JobResult::Finished { time: 1 }));
        assert!(state.result.is_some());
        state.apply(&Record::Source { source: RestoreSource::Discard, floor: CheckpointId(9) });
        assert_eq!((state.result, state.floor), (None, CheckpointId(9)));
    }
}
