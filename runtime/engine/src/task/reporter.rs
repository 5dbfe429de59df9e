//! The way from a task to its JobManager.

use std::sync::Arc;

use streamkeeper_protocol::{CoordinatorEvent, FromTask, SubtaskMetrics, TaskReport, TaskState};
use streamkeeper_types::{AttemptId, OperatorId};

use crate::ToCoordinator;

/// Takes the reports of all tasks of a process, in order for each task; must not block for long.
pub type ReportSink = Arc<dyn Fn(FromTask) + Send + Sync>;

/// Reports of one attempt.
#[derive(Clone)]
pub(super) struct Reporter {
    attempt: AttemptId,
    sink: ReportSink,
}

impl Reporter {
    pub(super) fn new(attempt: AttemptId, sink: ReportSink) -> Self {
        Self { attempt, sink }
    }

    pub(super) fn report(&self, report: TaskReport) {
        (self.sink)(FromTask { attempt: self.attempt, report });
    }

    pub(super) fn state(&self, state: TaskState) {
        self.report(TaskReport::State(state));
    }

    pub(super) fn metrics(&self, metrics: SubtaskMetrics) {
        self.report(TaskReport::Metrics(metrics));
    }

    pub(super) fn to_coordinator(&self, operator: OperatorId, event: &ToCoordinator) {
        self.report(TaskReport::Coordinator(CoordinatorEvent { operator, payload: event.encode() }));
    }
}
