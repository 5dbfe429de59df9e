//! Commands to tasks and reports from them. Each names an attempt, so that a late one changes nothing.

use serde::{Deserialize, Serialize};
use streamkeeper_types::{AttemptId, CheckpointId, Error, OperatorId, snapshot::SubtaskSnapshot};

use crate::{Barrier, CheckpointMetrics, SubtaskMetrics};

/// What the JobManager tells one running attempt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum ToTask {
    /// To sources (and, once some finished, to tasks without a running predecessor): cut here.
    TriggerCheckpoint(Barrier),
    /// Checkpoint `id` is in the log. Commit everything at or below it (R16).
    NotifyComplete { id: CheckpointId, last_subsumed: Option<CheckpointId> },
    /// Checkpoint `id` will not complete; uploads of it stop.
    NotifyAborted { id: CheckpointId, latest_completed: Option<CheckpointId> },
    /// From a split coordinator to its reader; exactly once with respect to the cut (R29).
    Coordinator(CoordinatorEvent),
    /// Stop without a snapshot.
    Cancel,
}

/// An opaque message between a source's split coordinator and one of its readers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CoordinatorEvent {
    pub operator: OperatorId,
    pub payload: Vec<u8>,
}

/// A report, with the attempt that makes it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FromTask {
    pub attempt: AttemptId,
    pub report: TaskReport,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum TaskReport {
    State(TaskState),
    /// Snapshot `id` of this task is stored.
    Ack {
        id: CheckpointId,
        snapshot: SubtaskSnapshot,
        metrics: CheckpointMetrics,
    },
    /// This task takes no part in `id`; the task runs on.
    Decline {
        id: CheckpointId,
        reason: DeclineReason,
    },
    /// From a reader to its split coordinator.
    Coordinator(CoordinatorEvent),
    Metrics(SubtaskMetrics),
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum TaskState {
    /// State is being put in place.
    Initializing,
    /// State is in place, records flow.
    Running,
    /// End of data: operators finished, the task waits for one more completed checkpoint (F1).
    AwaitingFinalCheckpoint,
    Finished,
    Cancelled,
    Failed(Error),
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum DeclineReason {
    /// A newer barrier came first.
    Subsumed { by: CheckpointId },
    /// The task is not running.
    NotReady,
    /// The asynchronous part failed.
    Failed(Error),
}

impl TaskState {
    /// No further report follows.
    #[must_use]
    pub fn is_terminal(&self) -> bool {
        matches!(self, Self::Finished | Self::Cancelled | Self::Failed(_))
    }
}
