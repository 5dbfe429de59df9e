//! What the engine wants done. It changes no world itself.

use bytes::Bytes;
use streamkeeper_checkpoint::{CompletedCheckpoint, JobResult, log::Completion};
use streamkeeper_protocol::ToTask;
use streamkeeper_types::{AttemptId, CheckpointId, Error, Millis, OperatorId};

use super::{CheckpointStatistics, RequestId};

/// One effect. The commands of one call are executed in order; each says what comes back.
#[derive(Debug, Clone, PartialEq)]
pub enum Command {
    /// Take the next id from the fenced log: only there it is sure that nobody else uses it (R1).
    /// Answered by `IdAllocated` or `IdFailed`.
    AllocateId,
    /// Keep back events to this source's readers. Comes before the coordinator's cut, so that no event lies behind its
    /// cut and before a reader's (R29). No answer.
    HoldEvents { operator: OperatorId },
    /// Take a snapshot of a split coordinator, before any task is triggered (T6). Answered by `CoordinatorCut`.
    CutCoordinator { id: CheckpointId, operator: OperatorId },
    /// Let the events go. Comes after the triggers were handed to the readers; the way to a task keeps order, so the
    /// events reach it behind the trigger. No answer.
    ReleaseEvents { operator: OperatorId },
    /// Hand a message to a task; in order for each task. Only a failed trigger is answered, by `TriggerFailed`.
    SendToTask { attempt: AttemptId, message: ToTask },
    /// Write a manifest, create-if-absent. Every part of the snapshot is stored by now. Answered by `MetadataStored`.
    WriteMetadata { id: CheckpointId, path: String, manifest: Bytes },
    /// Append to the log: only this makes the snapshot count. Answered by `Published`.
    Publish { completion: Box<Completion> },
    /// Remove files in this order, again and again until all are gone; one that is absent is gone. Answered by
    /// `Deleted` if it names a discard.
    Delete { discard: Option<CheckpointId>, files: Vec<String> },
    /// Let `TimerFired` come at `at` or later; replaces the same timer's earlier time.
    ArmTimer { timer: Timer, at: Millis },
    /// The timer need not fire any more; if it does, nothing happens.
    CancelTimer { timer: Timer },
    /// Tell whoever asked how it went. No answer.
    Answer { request: RequestId, result: Result<CompletedCheckpoint, Error> },
    /// Show this checkpoint's figures. No answer.
    RecordStatistics(Box<CheckpointStatistics>),
    /// Settle what is in doubt in the log, choose the restore point from the log, and start a new attempt of every
    /// subtask in this shape. All earlier attempts have ended. Answered by `Deployed` or `DeployFailed`.
    Deploy { parallelism: u32 },
    /// Ask the log whether another process leads by now. Answered by `LeadershipLost` if so, else not at all.
    CheckReign,
    /// Append the job's result to the log. Answered by `ResultPublished`.
    PublishResult(JobResult),
    /// The job is over; nothing follows. No answer.
    End(JobEnd),
}

/// A timer of the engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Timer {
    /// The next periodic checkpoint.
    Periodic,
    /// This checkpoint has taken too long.
    Timeout(CheckpointId),
    /// The pause before a restart is over.
    Restart,
    /// A deployment has waited for slots, or a change of the parallelism may be due.
    Slots,
}

/// How a job's life in this process ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum JobEnd {
    /// All input was read, everything is committed, and the log says so.
    Finished,
    /// By a savepoint, from which it can go on.
    Stopped(Box<CompletedCheckpoint>),
    /// The restart strategy gave up.
    Failed(Error),
    Cancelled,
    /// Somebody else leads; the job itself goes on.
    Suspended,
}
