//! Where a running job shows itself: the status, on which people may wait, and what they ask for less often.

use std::{
    collections::VecDeque,
    sync::Arc,
    time::{Duration, Instant},
};

use parking_lot::{Condvar, Mutex};
use streamkeeper_protocol::rest::PlanView;
use streamkeeper_types::{Generation, Millis};
use tokio::sync::watch;

use super::{JobStatus, Phase, status::Figures};
use crate::engine::{Bounds, CheckpointOutcome, CheckpointStatistics, Exception, Rescale};

/// Checkpoints of which the tasks' parts are kept.
const DETAILED: usize = 10;

/// The one place where the status lies. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct StatusBoard(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    status: Mutex<JobStatus>,
    changed: Condvar,
    details: Mutex<JobDetails>,
    figures: Mutex<Figures>,
    /// Counts the changes that are worth a look: see [`Notable`].
    revision: watch::Sender<u64>,
}

/// What is asked for less often than the status.
#[derive(Debug, Clone, Default)]
pub struct JobDetails {
    pub generation: Generation,
    /// When this JobManager began to lead.
    pub started_at: Millis,
    /// `None` before the first event.
    pub bounds: Option<Bounds>,
    /// Of all TaskManagers.
    pub slots: u32,
    /// Of the newest deployment; 0 before the first.
    pub parallelism: u32,
    pub max_parallelism: u32,
    /// Number of the newest deployment, from 0.
    pub attempt: u32,
    /// The dataflow as it is deployed, without the program's text.
    pub plan: Option<Arc<PlanView>>,
    pub in_progress: Vec<CheckpointStatistics>,
    /// Checkpoints that ended, newest last; the tasks' parts of the latest few.
    pub checkpoints: VecDeque<Arc<CheckpointStatistics>>,
    pub last_completed: Option<Arc<CheckpointStatistics>>,
    /// Newest last.
    pub exceptions: Vec<Exception>,
    /// All failures so far, also those that are not kept.
    pub failures: u64,
    /// Newest last.
    pub rescales: Vec<Rescale>,
}

impl JobDetails {
    /// Takes in a checkpoint that ended; at most `limit` are kept.
    pub(super) fn record(&mut self, statistics: CheckpointStatistics, limit: usize) {
        let statistics = Arc::new(statistics);
        if statistics.outcome == CheckpointOutcome::Completed {
            self.last_completed = Some(Arc::clone(&statistics));
        }
        // One that was in doubt and gets known replaces its entry.
        self.checkpoints.retain(|entry| entry.id != statistics.id);
        self.checkpoints.push_back(statistics);
        while self.checkpoints.len() > limit {
            self.checkpoints.pop_front();
        }
        if let Some(old) = self.checkpoints.iter_mut().rev().nth(DETAILED).filter(|old| !old.parts.is_empty()) {
            *old = Arc::new(old.summary());
        }
    }
}

/// What makes a change of the status notable. Counters of records, which always change, are not part of it.
#[derive(PartialEq)]
struct Notable(Phase, u32, u64, u64, u64);

impl Notable {
    fn of(status: &JobStatus) -> Self {
        let deployed = status.deployment_ms.unwrap_or(0);
        Self(status.phase, status.restarts, status.checkpoints.completed, status.checkpoints.failed, deployed)
    }
}

impl StatusBoard {
    #[must_use]
    pub fn read(&self) -> JobStatus {
        self.0.status.lock().clone()
    }

    /// Waits until the status is as wanted, or the job ended, or `timeout` passed; gives the status then.
    pub fn wait_until(&self, timeout: Duration, mut wanted: impl FnMut(&JobStatus) -> bool) -> JobStatus {
        let deadline = Instant::now() + timeout;
        let mut status = self.0.status.lock();
        while !wanted(&status) && status.phase != Phase::Ended {
            if self.0.changed.wait_until(&mut status, deadline).timed_out() {
                break;
            }
        }
        status.clone()
    }

    /// Grows with every change of phase, restarts, checkpoints and deployments, for those who wait without a thread.
    #[must_use]
    pub fn revisions(&self) -> watch::Receiver<u64> {
        self.0.revision.subscribe()
    }

    /// Looks at the details; nothing else moves meanwhile, so `look` is quick.
    pub fn details<T>(&self, look: impl FnOnce(&JobDetails) -> T) -> T {
        look(&self.0.details.lock())
    }

    /// Looks at the subtasks' figures, as [`StatusBoard::details`].
    pub fn figures<T>(&self, look: impl FnOnce(&Figures) -> T) -> T {
        look(&self.0.figures.lock())
    }

    pub(super) fn change(&self, change: impl FnOnce(&mut JobStatus)) {
        let mut status = self.0.status.lock();
        let before = Notable::of(&status);
        change(&mut status);
        let is_notable = Notable::of(&status) != before;
        drop(status);
        self.0.changed.notify_all();
        if is_notable {
            self.0.revision.send_modify(|revision| *revision += 1);
        }
    }

    pub(super) fn change_details(&self, change: impl FnOnce(&mut JobDetails)) {
        change(&mut self.0.details.lock());
    }

    pub(super) fn change_figures(&self, change: impl FnOnce(&mut Figures)) {
        change(&mut self.0.figures.lock());
    }
}

#[cfg(test)]
mod tests {
    use streamkeeper_protocol::{CheckpointKind, CheckpointMetrics};
    use streamkeeper_types::{CheckpointId, SubtaskId, VertexId};

    use super::*;
    use crate::engine::TaskPart;

    fn ended(id: u64, outcome: CheckpointOutcome) -> CheckpointStatistics {
        let subtask = SubtaskId { vertex: VertexId(0), index: 0 };
        CheckpointStatistics {
            id: CheckpointId(id),
            kind: CheckpointKind::Checkpoint,
            folder: format!("chk-{id}"),
            triggered: 0,
            ended: Some(1),
            outcome,
            acknowledged: 1,
            tasks: 1,
            metrics: CheckpointMetrics::default(),
            parts: vec![TaskPart { subtask, metrics: CheckpointMetrics::default() }],
        }
    }

    #[test]
    fn checkpoints_are_bounded_and_old_ones_lose_their_parts() {
        let mut details = JobDetails::default();
        for id in 1..=30 {
            details.record(ended(id, CheckpointOutcome::Completed), 20);
        }
        let kept: Vec<u64> = details.checkpoints.iter().map(|entry| entry.id.0).collect();
        assert_eq!(kept, (11..=30).collect::<Vec<_>>());
        let detailed = details.checkpoints.iter().filter(|entry| !entry.parts.is_empty()).count();
        assert_eq!(detailed, DETAILED);
    }

    #[test]
    fn a_checkpoint_in_doubt_is_replaced_by_what_becomes_known_of_it() {
        let mut details = JobDetails::default();
        details.record(ended(1, CheckpointOutcome::InDoubt), 20);
        assert!(details.last_completed.is_none());
        details.record(ended(1, CheckpointOutcome::Completed), 20);
        assert_eq!((details.checkpoints.len(), details.last_completed.map(|last| last.id.0)), (1, Some(1)));
    }

    #[test]
    fn a_revision_is_a_change_of_phase_or_checkpoints_and_not_of_counters() {
        let board = StatusBoard::default();
        let revisions = board.revisions();
        board.change(|status| status.vertices = Vec::new());
        assert!(!revisions.has_changed().expect("the board lives"));
        board.change(|status| status.phase = Phase::Running);
        assert!(revisions.has_changed().expect("the board lives"));
    }
}
