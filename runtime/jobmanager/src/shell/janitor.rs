//! Removes files of replaced checkpoints on a thread of its own, again and again until they are gone.

use std::{sync::Arc, thread, time::Duration};

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, unbounded};
use streamkeeper_storage::Storage;
use streamkeeper_types::{CheckpointId, Code, Result, ResultExt};

use super::inbox::{Inbox, Message};

/// Pause before what could not be removed is tried again.
const RETRY: Duration = Duration::from_secs(1);

struct Task {
    discard: Option<CheckpointId>,
    files: Vec<String>,
}

pub(super) struct Janitor {
    tasks: Sender<Task>,
}

impl Janitor {
    /// Starts the thread; it ends when the janitor is dropped.
    pub(super) fn start(storage: Arc<dyn Storage>, inbox: Inbox) -> Result<Self> {
        let (tasks, receiver) = unbounded();
        thread::Builder::new()
            .name("collector".into())
            .spawn(move || run(storage.as_ref(), &inbox, &receiver))
            .or_code(Code::Internal, || "starting the collector's thread".into())?;
        Ok(Self { tasks })
    }

    /// Removes `files` in order, and tells the inbox if they are all of a discard.
    pub(super) fn remove(&self, discard: Option<CheckpointId>, files: Vec<String>) {
        let _ = self.tasks.send(Task { discard, files });
    }
}

fn run(storage: &dyn Storage, inbox: &Inbox, tasks: &Receiver<Task>) {
    let mut left: Vec<Task> = Vec::new();
    loop {
        let next = if left.is_empty() {
            tasks.recv().map_err(|_| RecvTimeoutError::Disconnected)
        } else {
            tasks.recv_timeout(RETRY)
        };
        match next {
            Ok(task) => left.push(task),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return,
        }
        left.retain_mut(|task| {
            while let Some(file) = task.files.first() {
                if let Err(error) = storage.delete(file) {
                    tracing::warn!(file, %error, "a file could not be removed yet");
                    return true;
                }
                task.files.remove(0);
            }
            if let Some(id) = task.discard {
                inbox.send(Message::Deleted(id));
            }
            false
        });
    }
}
