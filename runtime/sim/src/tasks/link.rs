//! What sources and counters have in common: an attempt, a mailbox, an outbox, and the way to the end.

use std::collections::VecDeque;

use streamkeeper_protocol::{FromTask, TaskReport, TaskState, ToTask};
use streamkeeper_types::{AttemptId, CheckpointId};

/// One attempt's connection to its JobManager.
#[derive(Debug)]
pub(crate) struct TaskLink {
    pub(crate) attempt: AttemptId,
    pub(crate) mailbox: VecDeque<ToTask>,
    /// Reports not yet sent, in order.
    pub(crate) outbox: VecDeque<FromTask>,
    pub(crate) phase: Phase,
    /// The first snapshot that covers the end of this task.
    final_snapshot: Option<CheckpointId>,
    /// It was stopped by a savepoint, and no other snapshot will free it.
    pub(crate) is_stopped: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Phase {
    Running,
    /// End of data, or stopped by a savepoint: nothing to do until a snapshot that covers it completes.
    Awaiting,
    /// No report follows.
    Over,
}

impl TaskLink {
    pub(crate) fn new(attempt: AttemptId) -> Self {
        let mut link = Self {
            attempt,
            mailbox: VecDeque::new(),
            outbox: VecDeque::new(),
            phase: Phase::Running,
            final_snapshot: None,
            is_stopped: false,
        };
        link.report(TaskReport::State(TaskState::Running));
        link
    }

    pub(crate) fn report(&mut self, report: TaskReport) {
        self.outbox.push_back(FromTask { attempt: self.attempt, report });
    }

    pub(crate) fn is_over(&self) -> bool {
        self.phase == Phase::Over
    }

    pub(crate) fn end(&mut self, state: TaskState) {
        if !self.is_over() {
            self.phase = Phase::Over;
            self.report(TaskReport::State(state));
        }
    }

    /// End of data (F1).
    pub(crate) fn await_final_checkpoint(&mut self) {
        if self.phase == Phase::Running {
            self.phase = Phase::Awaiting;
            self.report(TaskReport::State(TaskState::AwaitingFinalCheckpoint));
        }
    }

    /// A snapshot was cut; it may be the one that this task waits for.
    pub(crate) fn cut(&mut self, id: CheckpointId) {
        if self.phase == Phase::Awaiting && self.final_snapshot.is_none() {
            self.final_snapshot = Some(id);
        }
    }

    /// The task stops at this cut (R37).
    pub(crate) fn stop_at(&mut self, id: CheckpointId) {
        self.phase = Phase::Awaiting;
        self.final_snapshot = Some(id);
        self.is_stopped = true;
    }

    /// Whether the completion of `id` frees the task.
    pub(crate) fn is_freed_by(&self, id: CheckpointId) -> bool {
        self.final_snapshot.is_some_and(|last| last <= id)
    }

    /// An aborted snapshot does not free the task; a later one may.
    pub(crate) fn aborted(&mut self, id: CheckpointId) {
        if self.final_snapshot == Some(id) {
            self.final_snapshot = None;
        }
    }
}
