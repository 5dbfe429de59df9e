//! What others may do with a running job: the REST API above all. Cheap to clone, and no reason for the job to live.

use streamkeeper_checkpoint::CompletedCheckpoint;
use streamkeeper_protocol::{CheckpointKind, SnapshotFormat};
use streamkeeper_types::Result;
use tokio::sync::oneshot;

use super::{
    StatusBoard,
    handle::ended,
    inbox::{Inbox, Message, SnapshotWish},
};
use crate::engine::Bounds;

/// Commands to a running job. Each goes through its one queue; one to a job that ended does nothing.
#[derive(Clone)]
pub struct JobControl {
    pub(super) inbox: Inbox,
    pub(super) board: StatusBoard,
}

impl JobControl {
    /// Where the job shows itself.
    #[must_use]
    pub fn board(&self) -> &StatusBoard {
        &self.board
    }

    /// Takes a snapshot and waits until it counts; as [`JobHandle::snapshot`](super::JobHandle::snapshot) without holding
    /// a thread up.
    ///
    /// # Errors
    /// Why it did not complete, or `CANCELLED` if the job ended.
    pub async fn snapshot(
        &self,
        kind: CheckpointKind,
        format: SnapshotFormat,
        target: Option<String>,
    ) -> Result<CompletedCheckpoint> {
        self.ask_for_snapshot(kind, format, target).await.map_err(|_| ended())?
    }

    /// As [`JobHandle::cancel`](super::JobHandle::cancel).
    pub fn cancel(&self) {
        self.inbox.send(Message::Cancel);
    }

    /// As [`JobHandle::rescale`](super::JobHandle::rescale).
    pub fn rescale(&self, bounds: Bounds) {
        self.inbox.send(Message::Rescale(bounds));
    }

    /// Whether the savepoint in `folder` of the job's folder may be removed: it is this job's, and nothing needs it.
    ///
    /// # Errors
    /// Why it may not, or `CANCELLED` if the job ended.
    pub async fn may_dispose(&self, folder: String) -> Result<()> {
        let (answer, answered) = oneshot::channel();
        self.inbox.send(Message::MayDispose { folder, answer });
        answered.await.map_err(|_| ended())?
    }

    /// The answer comes when the snapshot counts, or did not complete; none if the job ends.
    pub(super) fn ask_for_snapshot(
        &self,
        kind: CheckpointKind,
        format: SnapshotFormat,
        target: Option<String>,
    ) -> oneshot::Receiver<Result<CompletedCheckpoint>> {
        let (answer, answered) = oneshot::channel();
        self.inbox.send(Message::Snapshot(SnapshotWish { kind, format, target, answer }));
        answered
    }
}
