//! The driver's side of the status board.

use std::sync::Arc;

use streamkeeper_types::Millis;

use super::{Phase, driver::Driver, plan::plan_view, status::LastCheckpoint};
use crate::engine::{CheckpointOutcome, CheckpointStatistics, JobPhase};

impl Driver {
    /// Shows the dataflow as it is about to be deployed.
    pub(super) fn show_plan(&self) {
        let plan = Arc::new(plan_view(&self.graph));
        let attempt = self.state.deployments.saturating_sub(1);
        self.board.change_details(|details| {
            details.plan = Some(plan);
            details.max_parallelism = self.graph.max_parallelism;
            details.attempt = attempt;
        });
    }

    /// Shows a checkpoint that ended.
    pub(super) fn record(&self, statistics: CheckpointStatistics) {
        if statistics.outcome == CheckpointOutcome::Completed {
            let last = LastCheckpoint {
                id: statistics.id,
                duration_ms: millis_between(statistics.triggered, statistics.ended.unwrap_or(statistics.triggered)),
                sync_us: statistics.metrics.sync_us,
                async_us: statistics.metrics.async_us,
                uploaded_bytes: statistics.metrics.uploaded_bytes,
                full_bytes: statistics.metrics.full_bytes,
            };
            self.board.change(|status| status.checkpoints.last = Some(last));
        }
        let limit = self.spec.checkpoints.history;
        self.board.change_details(|details| details.record(statistics, limit));
    }

    /// Shows where the job stands.
    pub(super) fn show(&mut self) {
        self.show_details();
        let vertices = self.board.figures(|figures| figures.vertices(&self.graph));
        let history = self.job.coordinator().history();
        let phase = match self.job.phase() {
            JobPhase::Finishing(_) => Phase::Running,
            JobPhase::Running if self.job.is_up() => Phase::Running,
            JobPhase::Stopping(_) => Phase::Restarting,
            JobPhase::Ended(_) => return,
            JobPhase::Waiting => Phase::WaitingForSlots,
            JobPhase::Created | JobPhase::Deploying | JobPhase::Running => Phase::Starting,
        };
        let deployed_since = if phase == Phase::Running { self.state.deploying_since.take() } else { None };
        let now = self.now();
        self.board.change(|status| {
            status.phase = phase;
            if let Some(since) = deployed_since {
                status.deployment_ms = Some(millis_between(since, now));
            }
            status.vertices = vertices;
            status.checkpoints.completed = history.completed;
            status.checkpoints.failed = history.failed;
            status.restarts = self.job.restarts();
            status.last_error = self.job.last_failure().cloned();
        });
    }

    /// Copies only what changed.
    fn show_details(&self) {
        let (job, scheduler, exceptions) = (&self.job, self.job.scheduler(), self.job.exceptions());
        self.board.change_details(|details| {
            details.bounds = Some(scheduler.bounds());
            details.slots = scheduler.slots();
            details.parallelism = scheduler.current().unwrap_or(0);
            details.in_progress = job.coordinator().in_progress().map(CheckpointStatistics::summary).collect();
            if details.failures != exceptions.total() {
                details.failures = exceptions.total();
                details.exceptions = exceptions.entries().cloned().collect();
            }
            if !scheduler.history().eq(&details.rescales) {
                details.rescales = scheduler.history().cloned().collect();
            }
        });
    }
}

/// 0 if the clock was set back in between.
fn millis_between(begin: Millis, end: Millis) -> u64 {
    u64::try_from(end.saturating_sub(begin)).unwrap_or(0)
}
