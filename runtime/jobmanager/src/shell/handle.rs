//! What the caller of a running job holds.

use std::{thread::JoinHandle, time::Duration};

use streamkeeper_checkpoint::CompletedCheckpoint;
use streamkeeper_protocol::{CheckpointKind, SnapshotFormat};
use streamkeeper_types::{Code, Error, Result};

use crate::engine::Bounds;

use super::{JobControl, JobStatus, StatusBoard, inbox::Inbox};

/// How a job ended that did not fail.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum JobOutcome {
    /// All input was read and everything is committed.
    Finished,
    /// An earlier run had finished it. Nothing was changed.
    AlreadyFinished,
    /// By this savepoint, from which it can go on.
    Stopped(Box<CompletedCheckpoint>),
    /// Without a snapshot; it goes on from its latest checkpoint.
    Cancelled,
}

/// A running job. Dropping it abandons the job, as the end of the process would.
pub struct JobHandle {
    pub(super) inbox: Inbox,
    pub(super) board: StatusBoard,
    /// `None` once joined.
    pub(super) thread: Option<JoinHandle<Result<JobOutcome>>>,
}

impl JobHandle {
    #[must_use]
    pub fn status(&self) -> JobStatus {
        self.board.read()
    }

    /// For waiting on the status, also from other threads.
    #[must_use]
    pub fn board(&self) -> &StatusBoard {
        &self.board
    }

    /// What others may do with the job meanwhile.
    #[must_use]
    pub fn control(&self) -> JobControl {
        JobControl { inbox: self.inbox.clone(), board: self.board.clone() }
    }

    /// As [`StatusBoard::wait_until`].
    pub fn wait_until(&self, timeout: Duration, wanted: impl FnMut(&JobStatus) -> bool) -> JobStatus {
        self.board.wait_until(timeout, wanted)
    }

    /// Takes a snapshot of `kind` and waits until it counts. `target` is the folder of a savepoint within the job's
    /// folder, such as `savepoints/before-upgrade`; checkpoints get theirs from their id. Not for asynchronous code, which
    /// has [`JobControl::snapshot`].
    ///
    /// # Errors
    /// Why it did not complete, or that the job ended.
    pub fn snapshot(
        &self,
        kind: CheckpointKind,
        format: SnapshotFormat,
        target: Option<String>,
    ) -> Result<CompletedCheckpoint> {
        self.control().ask_for_snapshot(kind, format, target).blocking_recv().map_err(|_| ended())?
    }

    /// Stops all tasks without a snapshot; a later run goes on from the latest checkpoint. Does not wait.
    pub fn cancel(&self) {
        self.control().cancel();
    }

    /// Has the job run between other parallelisms: a checkpoint, then the tasks in the new shape over the same state. Does
    /// not wait; the status shows how it goes.
    pub fn rescale(&self, bounds: Bounds) {
        self.control().rescale(bounds);
    }

    /// Stops at once, as if the process had died: nothing more is written, decided or committed.
    pub fn abandon(mut self) {
        self.stop_at_once();
    }

    /// Waits for the end.
    ///
    /// # Errors
    /// Why the job failed, or `FENCED` if another process took it over.
    pub fn join(mut self) -> Result<JobOutcome> {
        self.thread.take().map_or_else(|| Err(Error::internal("the job was joined before")), joined)
    }

    fn stop_at_once(&mut self) {
        let Some(thread) = self.thread.take() else { return };
        self.inbox.abandon();
        if let Err(error) = joined(thread) {
            tracing::debug!(%error, "an abandoned job ended");
        }
    }
}

impl Drop for JobHandle {
    fn drop(&mut self) {
        self.stop_at_once();
    }
}

/// Whoever waits for something of a job learns by this that nothing will come.
pub(super) fn ended() -> Error {
    Error::new(Code::Cancelled, "the job ended before it was done")
}

fn joined(thread: JoinHandle<Result<JobOutcome>>) -> Result<JobOutcome> {
    thread.join().unwrap_or_else(|_| Err(Error::internal("the JobManager's thread panicked")))
}
