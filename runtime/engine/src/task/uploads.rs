//! A small pool of threads, shared by the tasks of a process, that does the asynchronous part of snapshots.

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
};

use crossbeam_channel::{Sender, unbounded};
use streamkeeper_types::{CheckpointId, Code, Result, ResultExt};

type Job = Box<dyn FnOnce() + Send>;

/// Handle on the pool; its threads end when the last handle is dropped and what was handed in is done.
#[derive(Debug, Clone)]
pub struct UploadPool {
    jobs: Sender<Job>,
}

impl UploadPool {
    /// Starts `threads` threads.
    ///
    /// # Errors
    /// When the machine gives no thread.
    pub fn start(threads: usize) -> Result<Self> {
        let (sender, receiver) = unbounded::<Job>();
        for index in 0..threads.max(1) {
            let jobs = receiver.clone();
            thread::Builder::new()
                .name(format!("upload-{index}"))
                .spawn(move || jobs.iter().for_each(|job| job()))
                .or_code(Code::Internal, || "starting an upload thread".into())?;
        }
        Ok(Self { jobs: sender })
    }

    /// Runs `job` on some thread of the pool. It must not panic.
    pub(super) fn submit(&self, job: impl FnOnce() + Send + 'static) {
        // The receivers live as long as the threads, and those as long as this sender.
        let _ = self.jobs.send(Box::new(job));
    }
}

/// Ends one upload from outside.
#[derive(Debug, Clone, Default)]
pub(super) struct UploadCancel(Arc<AtomicBool>);

impl UploadCancel {
    pub(super) fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// The uploads of one task that may be under way.
#[derive(Debug, Default)]
pub(super) struct RunningUploads(BTreeMap<CheckpointId, UploadCancel>);

impl RunningUploads {
    pub(super) fn begin(&mut self, id: CheckpointId) -> UploadCancel {
        self.0.entry(id).or_default().clone()
    }

    /// Checkpoint `id` and everything older needs no upload any more.
    pub(super) fn forget_up_to(&mut self, id: CheckpointId) {
        self.0.retain(|running, _| *running > id);
    }

    pub(super) fn cancel(&mut self, id: CheckpointId) {
        if let Some(cancel) = self.0.remove(&id) {
            cancel.0.store(true, Ordering::Relaxed);
        }
    }
}

impl Drop for RunningUploads {
    fn drop(&mut self) {
        for cancel in self.0.values() {
            cancel.0.store(true, Ordering::Relaxed);
        }
    }
}
