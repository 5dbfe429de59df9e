//! What the engine is told.

use streamkeeper_protocol::{CheckpointKind, FromTask, SnapshotFormat};
use streamkeeper_types::{AttemptId, CheckpointId, Error, OperatorId};

use super::{Bounds, JobTopology, Timer, job::Restored};

/// Everything that can happen to a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// The reign began; deploy.
    Start,
    /// Answer to [`Command::Deploy`](super::Command::Deploy): these attempts are being started. Comes before any of
    /// their reports.
    Deployed {
        attempts: Vec<AttemptId>,
        /// The graph in the shape that was asked for.
        topology: Box<JobTopology>,
        restored: Box<Restored>,
    },
    /// Answer to [`Command::Deploy`](super::Command::Deploy): nothing was started.
    DeployFailed(Error),
    /// A report. One of another generation or attempt changes nothing (B7, R25).
    FromTask(FromTask),
    /// A task cannot be reached any more; its process or connection is gone.
    TaskLost {
        attempt: AttemptId,
        error: Error,
    },
    TimerFired(Timer),
    /// Slots of all TaskManagers that are there. Comes before `Start`, and whenever it changes.
    Slots(u32),
    /// Somebody wants another parallelism.
    Rescale(Bounds),
    /// Somebody asks for a checkpoint or savepoint.
    Requested(CheckpointRequest),
    /// Answers to [`Command::AllocateId`](super::Command::AllocateId).
    IdAllocated(CheckpointId),
    IdFailed(Error),
    /// Answer to [`Command::CutCoordinator`](super::Command::CutCoordinator).
    CoordinatorCut {
        id: CheckpointId,
        operator: OperatorId,
        state: Result<Vec<u8>, Error>,
    },
    /// A trigger did not reach its task.
    TriggerFailed {
        id: CheckpointId,
        attempt: AttemptId,
        error: Error,
    },
    /// Answer to [`Command::WriteMetadata`](super::Command::WriteMetadata).
    MetadataStored {
        id: CheckpointId,
        outcome: Stored,
    },
    /// Answer to [`Command::Publish`](super::Command::Publish). After [`Stored::Unknown`], `Done` may follow once the
    /// log has settled the append.
    Published {
        id: CheckpointId,
        outcome: Stored,
    },
    /// Answer to [`Command::PublishResult`](super::Command::PublishResult).
    ResultPublished {
        outcome: Stored,
    },
    /// Answer to [`Command::Delete`](super::Command::Delete) with this discard: all of its files are gone.
    Deleted {
        discard: CheckpointId,
    },
    /// Stop all tasks without a snapshot, for good.
    Cancel,
    /// A higher generation took the job over, or the process ends: leave everything as it is (B91, B94).
    LeadershipLost,
}

/// Outcome of a write to storage.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Stored {
    Done,
    /// It surely is not there.
    Failed(Error),
    /// Nobody knows. Its files stay (R24).
    Unknown(Error),
}

/// Names a request, so that its answer finds back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestId(pub u64);

/// A wish for a snapshot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckpointRequest {
    /// Whom to answer; `None` for the engine's own.
    pub request: Option<RequestId>,
    pub origin: Origin,
    pub kind: CheckpointKind,
    pub format: SnapshotFormat,
    /// Folder of a savepoint in the job's folder; checkpoints get theirs from their id.
    pub target: Option<String>,
    pub sharing: super::options::Sharing,
}

/// Why a snapshot is wished for; the order in which waiting ones are served.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Origin {
    Savepoint,
    /// All tasks that are left wait for their final checkpoint (F1).
    Final,
    User,
    Periodic,
}
