//! What a running job shows of itself: its state at one moment, and its subtasks' figures.

use std::collections::BTreeMap;

use serde::Serialize;
use streamkeeper_engine::JobGraph;
use streamkeeper_protocol::{SourceProgress, SubtaskMetrics, TaskState, TaskTime, rest::SubtaskPhase};
use streamkeeper_types::{CheckpointId, Error, Millis, SubtaskId, VertexId};

/// A job's state at one moment.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct JobStatus {
    pub phase: Phase,
    /// In the graph's order.
    pub vertices: Vec<VertexStatus>,
    pub checkpoints: CheckpointSummary,
    pub restarts: u32,
    /// The latest failure, also one that a restart mended.
    pub last_error: Option<Error>,
    /// The checkpoint or savepoint that this run began with.
    pub restored_from: Option<CheckpointId>,
    /// Milliseconds from the beginning of the latest deployment until all its tasks ran: metadata read, state in place.
    pub deployment_ms: Option<u64>,
}

/// Where the job stands.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Phase {
    /// Tasks are being started.
    #[default]
    Starting,
    /// There is no room for the tasks.
    WaitingForSlots,
    /// All tasks run.
    Running,
    /// After a failure, before tasks are started again.
    Restarting,
    Ended,
}

/// A chain of operators: counters are sums over its subtasks.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct VertexStatus {
    pub id: u32,
    pub name: String,
    pub parallelism: u32,
    pub records_in: u64,
    pub records_out: u64,
    pub bytes_in: u64,
    pub bytes_out: u64,
    pub late_records: u64,
    pub bad_records: u64,
    pub state_bytes: u64,
    /// The least of its subtasks that have one, in milliseconds of event time; `i64::MAX` after the end of input.
    pub watermark: Option<Millis>,
    pub time: TaskTime,
    /// Of sources.
    pub source: Option<SourceProgress>,
    /// Subtasks that wait for their final checkpoint or are done.
    pub finished: u32,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct CheckpointSummary {
    pub completed: u64,
    pub failed: u64,
    pub last: Option<LastCheckpoint>,
}

/// The newest completed checkpoint or savepoint.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LastCheckpoint {
    pub id: CheckpointId,
    /// From trigger to record in the log.
    pub duration_ms: u64,
    /// The longest time, in microseconds, that a task did not process records.
    pub sync_us: u64,
    /// The longest upload of a task, in microseconds.
    pub async_us: u64,
    /// Written for it.
    pub uploaded_bytes: u64,
    /// Of everything that it refers to.
    pub full_bytes: u64,
}

/// Figures of the newest deployment's subtasks.
#[derive(Debug, Default)]
pub struct Figures {
    subtasks: BTreeMap<SubtaskId, SubtaskFigures>,
}

/// What one subtask last told.
#[derive(Debug, Clone)]
pub struct SubtaskFigures {
    pub phase: SubtaskPhase,
    pub metrics: SubtaskMetrics,
}

impl Default for SubtaskFigures {
    fn default() -> Self {
        Self { phase: SubtaskPhase::Starting, metrics: SubtaskMetrics::default() }
    }
}

impl Figures {
    /// What a subtask told; nothing yet for one that is unknown.
    #[must_use]
    pub fn of(&self, subtask: SubtaskId) -> SubtaskFigures {
        self.subtasks.get(&subtask).cloned().unwrap_or_default()
    }

    /// A new run: counters begin anew.
    pub(super) fn clear(&mut self) {
        self.subtasks.clear();
    }

    pub(super) fn on_metrics(&mut self, subtask: SubtaskId, metrics: SubtaskMetrics) {
        self.subtasks.entry(subtask).or_default().metrics = metrics;
    }

    pub(super) fn on_state(&mut self, subtask: SubtaskId, state: &TaskState) {
        self.subtasks.entry(subtask).or_default().phase = match state {
            TaskState::Initializing => SubtaskPhase::Starting,
            TaskState::Running => SubtaskPhase::Running,
            TaskState::AwaitingFinalCheckpoint => SubtaskPhase::AwaitingFinalCheckpoint,
            TaskState::Finished => SubtaskPhase::Finished,
            TaskState::Cancelled | TaskState::Failed(_) => SubtaskPhase::Stopped,
        };
    }

    pub(super) fn vertices(&self, graph: &JobGraph) -> Vec<VertexStatus> {
        graph.vertices.iter().map(|v| self.vertex(v.id, &v.name, v.parallelism)).collect()
    }

    fn vertex(&self, id: VertexId, name: &str, parallelism: u32) -> VertexStatus {
        let mut status = VertexStatus { id: id.0, name: name.to_owned(), parallelism, ..VertexStatus::default() };
        for (_, figures) in self.subtasks.iter().filter(|(subtask, _)| subtask.vertex == id) {
            status.add(figures);
        }
        status
    }
}

impl VertexStatus {
    /// Adds one subtask.
    pub(crate) fn add(&mut self, figures: &SubtaskFigures) {
        let SubtaskFigures { phase, metrics } = figures;
        self.finished += u32::from(matches!(phase, SubtaskPhase::AwaitingFinalCheckpoint | SubtaskPhase::Finished));
        self.records_in += metrics.records_in;
        self.records_out += metrics.records_out;
        self.bytes_in += metrics.bytes_in;
        self.bytes_out += metrics.bytes_out;
        self.late_records += metrics.late_records;
        self.bad_records += metrics.bad_records;
        self.state_bytes += metrics.state_bytes;
        self.watermark = self.watermark.into_iter().chain(metrics.watermark).min();
        self.time.busy_us += metrics.time.busy_us;
        self.time.idle_us += metrics.time.idle_us;
        self.time.back_pressured_us += metrics.time.back_pressured_us;
        if let Some(progress) = &metrics.source {
            let sum = self.source.get_or_insert(SourceProgress { read_bytes: 0, total_bytes: Some(0) });
            sum.read_bytes += progress.read_bytes;
            sum.total_bytes = sum.total_bytes.zip(progress.total_bytes).map(|(sum, own)| sum + own);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_vertex_sums_its_subtasks_and_has_their_least_watermark() {
        let mut figures = Figures::default();
        let subtask = |index| SubtaskId { vertex: VertexId(3), index };
        for (index, watermark, total_bytes) in [(0, Some(7), Some(10)), (1, None, Some(20)), (2, Some(5), None)] {
            let source = Some(SourceProgress { read_bytes: 1, total_bytes });
            let metrics = SubtaskMetrics { records_in: 10, watermark, source, ..SubtaskMetrics::default() };
            figures.on_metrics(subtask(index), metrics);
        }
        figures.on_state(subtask(1), &TaskState::Finished);
        let status = figures.vertex(VertexId(3), "x", 3);
        assert_eq!((status.records_in, status.watermark, status.finished), (30, Some(5), 1));
        assert_eq!(status.source, Some(SourceProgress { read_bytes: 3, total_bytes: None }));
    }
}
