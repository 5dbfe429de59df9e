//! Figures of checkpoints, for people.

use std::collections::VecDeque;

use streamkeeper_protocol::{CheckpointKind, CheckpointMetrics};
use streamkeeper_types::{CheckpointId, Error, Millis, SubtaskId};

/// One checkpoint, under way or over.
#[derive(Debug, Clone, PartialEq)]
pub struct CheckpointStatistics {
    pub id: CheckpointId,
    pub kind: CheckpointKind,
    /// Its folder in the job's folder.
    pub folder: String,
    pub triggered: Millis,
    /// When it ended.
    pub ended: Option<Millis>,
    pub outcome: CheckpointOutcome,
    pub acknowledged: usize,
    /// Tasks that have to acknowledge.
    pub tasks: usize,
    /// Times are the slowest task's; bytes are sums.
    pub metrics: CheckpointMetrics,
    /// Each task that has acknowledged, in the order in which they did.
    pub parts: Vec<TaskPart>,
}

/// One task's part of a checkpoint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskPart {
    pub subtask: SubtaskId,
    pub metrics: CheckpointMetrics,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CheckpointOutcome {
    InProgress,
    Completed,
    Failed(Error),
    /// Nobody knows yet whether it completed.
    InDoubt,
}

/// The newest checkpoints, without their tasks' parts, and how many there were.
#[derive(Debug, Clone, Default)]
pub struct CheckpointHistory {
    limit: usize,
    entries: VecDeque<CheckpointStatistics>,
    pub completed: u64,
    pub failed: u64,
}

impl CheckpointStatistics {
    /// Everything but the tasks' parts.
    #[must_use]
    pub fn summary(&self) -> Self {
        Self {
            id: self.id,
            kind: self.kind,
            folder: self.folder.clone(),
            triggered: self.triggered,
            ended: self.ended,
            outcome: self.outcome.clone(),
            acknowledged: self.acknowledged,
            tasks: self.tasks,
            metrics: self.metrics.clone(),
            parts: Vec::new(),
        }
    }

    /// Takes in one task's part.
    pub(crate) fn acknowledge(&mut self, subtask: SubtaskId, task: &CheckpointMetrics) {
        self.acknowledged += 1;
        self.parts.push(TaskPart { subtask, metrics: task.clone() });
        let slowest = |all: &mut u64, task: u64| *all = (*all).max(task);
        slowest(&mut self.metrics.start_delay_us, task.start_delay_us);
        slowest(&mut self.metrics.alignment_us, task.alignment_us);
        slowest(&mut self.metrics.sync_us, task.sync_us);
        slowest(&mut self.metrics.async_us, task.async_us);
        self.metrics.uploaded_bytes += task.uploaded_bytes;
        self.metrics.full_bytes += task.full_bytes;
    }
}

impl CheckpointHistory {
    pub(crate) fn new(limit: usize) -> Self {
        Self { limit, ..Self::default() }
    }

    /// Newest last.
    pub fn entries(&self) -> impl DoubleEndedIterator<Item = &CheckpointStatistics> {
        self.entries.iter()
    }

    pub(crate) fn record(&mut self, statistics: &CheckpointStatistics) {
        match statistics.outcome {
            CheckpointOutcome::Completed => self.completed += 1,
            CheckpointOutcome::Failed(_) => self.failed += 1,
            CheckpointOutcome::InProgress | CheckpointOutcome::InDoubt => {}
        }
        // One that was in doubt and gets known replaces its entry.
        self.entries.retain(|entry| entry.id != statistics.id);
        self.entries.push_back(statistics.summary());
        while self.entries.len() > self.limit {
            self.entries.pop_front();
        }
    }
}
