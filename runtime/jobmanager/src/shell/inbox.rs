//! The one queue into a JobManager's thread.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use crossbeam_channel::{Receiver, Sender, unbounded};
use streamkeeper_checkpoint::CompletedCheckpoint;
use streamkeeper_engine::task::ReportSink;
use streamkeeper_protocol::{CheckpointKind, FromTask, SnapshotFormat};
use streamkeeper_types::{AttemptId, CheckpointId, Error, Result};
use tokio::sync::oneshot;

use crate::engine::Bounds;

/// Everything that reaches the thread from outside.
pub(super) enum Message {
    FromTask(FromTask),
    Snapshot(SnapshotWish),
    /// All files of a replaced checkpoint are gone.
    Deleted(CheckpointId),
    Cancel,
    /// Whether the savepoint in this folder may be removed.
    MayDispose {
        folder: String,
        answer: oneshot::Sender<Result<()>>,
    },
    Rescale(Bounds),
    /// The TaskManagers changed; `lost` were running on one that is gone.
    Slots {
        lost: Vec<(AttemptId, Error)>,
    },
}

/// Somebody wants a checkpoint or savepoint and waits for it.
pub(super) struct SnapshotWish {
    pub kind: CheckpointKind,
    pub format: SnapshotFormat,
    pub target: Option<String>,
    pub answer: oneshot::Sender<Result<CompletedCheckpoint>>,
}

/// The sending end; made before the TaskManagers, which report through it.
#[derive(Clone)]
pub struct Inbox {
    messages: Sender<Message>,
    abandoned: Arc<AtomicBool>,
}

/// The receiving end, taken by the JobManager's thread.
pub struct Mail {
    pub(super) messages: Receiver<Message>,
    pub(super) abandoned: Arc<AtomicBool>,
}

impl Inbox {
    #[must_use]
    pub fn new() -> (Self, Mail) {
        let (sender, receiver) = unbounded();
        let abandoned = Arc::new(AtomicBool::new(false));
        let mail = Mail { messages: receiver, abandoned: Arc::clone(&abandoned) };
        (Self { messages: sender, abandoned }, mail)
    }

    /// Takes the reports of tasks.
    #[must_use]
    pub fn report_sink(&self) -> ReportSink {
        let messages = self.messages.clone();
        Arc::new(move |report| {
            // Without a JobManager nobody is interested.
            let _ = messages.send(Message::FromTask(report));
        })
    }

    /// TaskManagers came or went; `lost` are the attempts that ran on one that is gone, and why.
    pub fn slots_changed(&self, lost: Vec<(AttemptId, Error)>) {
        self.send(Message::Slots { lost });
    }

    pub(super) fn send(&self, message: Message) {
        let _ = self.messages.send(message);
    }

    /// From now on the JobManager does nothing, as if its process had died.
    pub(super) fn abandon(&self) {
        self.abandoned.store(true, Ordering::SeqCst);
        self.send(Message::Cancel);
    }
}
