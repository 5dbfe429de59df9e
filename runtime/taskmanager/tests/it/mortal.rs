//! Death of the process at a counted instant: from then on nothing that it does reaches the outside.

use std::{
    ops::Range,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering},
        mpsc,
    },
};

use bytes::Bytes;
use parking_lot::Mutex;
use streamkeeper_storage::{ObjectMeta, PutMode, PutOutcome, Storage, StorageError, StorageResult};
use streamkeeper_types::{Code, Error};

/// Counts steps down; all steps behind the last one are those of a dead process.
#[derive(Debug, Clone)]
pub struct Fuse(Arc<State>);

#[derive(Debug)]
struct State {
    left: AtomicI64,
    blown: Mutex<Option<mpsc::Sender<()>>>,
}

impl Fuse {
    pub fn endless() -> Self {
        Self(Arc::new(State { left: AtomicI64::new(i64::MAX), blown: Mutex::new(None) }))
    }

    /// A new life of `steps` steps; the receiver hears of its end.
    pub fn reset(&self, steps: i64) -> mpsc::Receiver<()> {
        let (sender, receiver) = mpsc::channel();
        *self.0.blown.lock() = Some(sender);
        self.0.left.store(steps, Ordering::SeqCst);
        receiver
    }

    /// One step; whether the process still lives.
    pub fn step(&self) -> bool {
        let left = self.0.left.fetch_sub(1, Ordering::SeqCst);
        if left == 0
            && let Some(sender) = self.0.blown.lock().take()
        {
            let _ = sender.send(());
        }
        left > 0
    }

    pub fn is_alive(&self) -> bool {
        self.0.left.load(Ordering::SeqCst) > 0
    }
}

/// A storage of a process that may die: a write at the instant of death may or may not have happened.
#[derive(Debug)]
pub struct MortalStorage {
    pub inner: Arc<dyn Storage>,
    pub fuse: Fuse,
}

fn dead() -> StorageError {
    StorageError::Other(Error::new(Code::Storage, "the process is dead"))
}

impl MortalStorage {
    fn write<T>(&self, write: impl FnOnce() -> StorageResult<T>) -> StorageResult<T> {
        if !self.fuse.step() {
            return Err(dead());
        }
        let outcome = write();
        if self.fuse.step() { outcome } else { Err(dead()) }
    }
}

impl Storage for MortalStorage {
    fn put(&self, path: &str, bytes: Bytes, mode: PutMode) -> StorageResult<PutOutcome> {
        self.write(|| self.inner.put(path, bytes, mode))
    }

    fn put_file(&self, path: &str, local: &Path, mode: PutMode) -> StorageResult<PutOutcome> {
        self.write(|| self.inner.put_file(path, local, mode))
    }

    fn get(&self, path: &str) -> StorageResult<Bytes> {
        self.inner.get(path)
    }

    fn get_range(&self, path: &str, range: Range<u64>) -> StorageResult<Bytes> {
        self.inner.get_range(path, range)
    }

    fn get_to_file(&self, path: &str, local: &Path) -> StorageResult<()> {
        self.inner.get_to_file(path, local)
    }

    fn list(&self, folder: &str) -> StorageResult<Vec<ObjectMeta>> {
        self.inner.list(folder)
    }

    fn delete(&self, path: &str) -> StorageResult<()> {
        self.write(|| self.inner.delete(path))
    }

    fn head(&self, path: &str) -> StorageResult<Option<ObjectMeta>> {
        self.inner.head(path)
    }
}
