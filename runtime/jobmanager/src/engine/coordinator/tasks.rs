//! The tasks of the current deployment, as far as their reports tell.

use std::collections::BTreeMap;

use streamkeeper_protocol::TaskState;
use streamkeeper_types::{AttemptId, SubtaskId};

/// Current attempts and where each stands.
#[derive(Debug, Default)]
pub struct Tasks {
    tasks: BTreeMap<SubtaskId, Task>,
}

#[derive(Debug)]
struct Task {
    attempt: AttemptId,
    phase: TaskPhase,
}

/// A task's state, with what the coordinator knows besides.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TaskPhase {
    /// State is being put in place.
    Starting,
    Running,
    /// End of data; needs one more completed checkpoint.
    Awaiting,
    /// End of data, and a completed checkpoint covers it: the task is about to finish.
    Released,
    Finished,
    /// Failed or cancelled.
    Gone,
}

impl Tasks {
    /// Replaces all tasks by freshly deployed attempts.
    pub(crate) fn deployed(&mut self, attempts: &[AttemptId]) {
        let starting = |attempt: &AttemptId| (attempt.subtask, Task { attempt: *attempt, phase: TaskPhase::Starting });
        self.tasks = attempts.iter().map(starting).collect();
    }

    /// Takes in a report. `None` if it comes from an attempt that is not current (B7).
    pub(crate) fn report(&mut self, attempt: AttemptId, state: &TaskState) -> Option<TaskPhase> {
        let task = self.tasks.get_mut(&attempt.subtask).filter(|task| task.attempt == attempt)?;
        task.phase = match state {
            TaskState::Initializing => TaskPhase::Starting,
            TaskState::Running => TaskPhase::Running,
            TaskState::AwaitingFinalCheckpoint => TaskPhase::Awaiting,
            TaskState::Finished => TaskPhase::Finished,
            TaskState::Cancelled | TaskState::Failed(_) => TaskPhase::Gone,
        };
        Some(task.phase)
    }

    /// A checkpoint that covers this task's end completed.
    pub(crate) fn release(&mut self, subtask: SubtaskId) {
        if let Some(task) = self.tasks.get_mut(&subtask).filter(|task| task.phase == TaskPhase::Awaiting) {
            task.phase = TaskPhase::Released;
        }
    }

    #[must_use]
    pub fn is_current(&self, attempt: AttemptId) -> bool {
        self.tasks.get(&attempt.subtask).is_some_and(|task| task.attempt == attempt)
    }

    #[must_use]
    pub fn phase(&self, subtask: SubtaskId) -> Option<TaskPhase> {
        self.tasks.get(&subtask).map(|task| task.phase)
    }

    /// Attempts that are in one of these phases, by subtask.
    pub fn in_phases(&self, phases: &[TaskPhase]) -> impl Iterator<Item = AttemptId> {
        self.tasks.values().filter(move |task| phases.contains(&task.phase)).map(|task| task.attempt)
    }

    /// Attempts that take part in a checkpoint: all but the finished ones.
    pub(crate) fn unfinished(&self) -> impl Iterator<Item = AttemptId> {
        self.tasks.values().filter(|task| task.phase != TaskPhase::Finished).map(|task| task.attempt)
    }

    /// Whether tasks exist and all are in one of these phases.
    #[must_use]
    pub fn all_in(&self, phases: &[TaskPhase]) -> bool {
        !self.tasks.is_empty() && self.tasks.values().all(|task| phases.contains(&task.phase))
    }

    #[must_use]
    pub fn any_in(&self, phase: TaskPhase) -> bool {
        self.tasks.values().any(|task| task.phase == phase)
    }

    /// Whether every task that is left waits for its final checkpoint, and there is one (F1).
    pub(crate) fn need_final_checkpoint(&self) -> bool {
        self.any_in(TaskPhase::Awaiting) && self.all_in(&[TaskPhase::Awaiting, TaskPhase::Finished])
    }
}
