//! A storage that fails on purpose, from a seed.

use std::{ops::Range, path::Path, sync::Arc};

use bytes::Bytes;
use parking_lot::Mutex;
use rand::{Rng, SeedableRng, rngs::SmallRng};
use streamkeeper_types::{Code, Error};

use crate::{ObjectMeta, PutMode, PutOutcome, SmallObjects, Storage, StorageError, StorageResult};

/// How often each kind of failure happens, each from 0 to 1; their sum is at most 1.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Faults {
    /// The call surely has no effect: [`StorageError::Other`].
    pub refused: f64,
    /// A write gets lost on its way, and the caller cannot know: [`StorageError::Unknown`].
    pub lost: f64,
    /// A write happens, but its answer gets lost: [`StorageError::Unknown`].
    pub answer_lost: f64,
}

impl Faults {
    pub const NONE: Self = Self { refused: 0.0, lost: 0.0, answer_lost: 0.0 };
}

/// Passes calls on to another storage, or lets them fail. The same seed and calls give the same failures.
#[derive(Debug)]
pub struct FaultyStorage {
    inner: Arc<dyn Storage>,
    state: Mutex<(SmallRng, Faults)>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Fate {
    Pass,
    Refused,
    Lost,
    AnswerLost,
}

impl FaultyStorage {
    #[must_use]
    pub fn new(inner: Arc<dyn Storage>, faults: Faults, seed: u64) -> Self {
        Self { inner, state: Mutex::new((SmallRng::seed_from_u64(seed), faults)) }
    }

    /// Changes how often calls fail from now on, [`Faults::NONE`] to heal.
    pub fn set_faults(&self, faults: Faults) {
        self.state.lock().1 = faults;
    }

    fn fate(&self) -> Fate {
        let (rng, faults) = &mut *self.state.lock();
        let dice: f64 = rng.random();
        let Faults { refused, lost, answer_lost } = *faults;
        match dice {
            d if d < refused => Fate::Refused,
            d if d < refused + lost => Fate::Lost,
            d if d < refused + lost + answer_lost => Fate::AnswerLost,
            _ => Fate::Pass,
        }
    }

    fn write<T>(&self, path: &str, write: impl FnOnce() -> StorageResult<T>) -> StorageResult<T> {
        match self.fate() {
            Fate::Pass => write(),
            Fate::Refused => Err(StorageError::Other(fault(path, "refused"))),
            Fate::Lost => Err(StorageError::Unknown(fault(path, "no answer"))),
            Fate::AnswerLost => {
                write()?;
                Err(StorageError::Unknown(fault(path, "no answer")))
            }
        }
    }

    /// A read without an answer is a read that failed.
    fn read<T>(&self, path: &str, read: impl FnOnce() -> StorageResult<T>) -> StorageResult<T> {
        match self.fate() {
            Fate::Pass => read(),
            Fate::Refused | Fate::Lost | Fate::AnswerLost => Err(StorageError::Other(fault(path, "refused"))),
        }
    }
}

fn fault(path: &str, what: &str) -> Error {
    Error::new(Code::Storage, format!("`{path}`: {what} (a fault injected on purpose)"))
}

impl Storage for FaultyStorage {
    fn put(&self, path: &str, bytes: Bytes, mode: PutMode) -> StorageResult<PutOutcome> {
        self.write(path, || self.inner.put(path, bytes, mode))
    }

    fn put_file(&self, path: &str, local: &Path, mode: PutMode) -> StorageResult<PutOutcome> {
        self.write(path, || self.inner.put_file(path, local, mode))
    }

    fn get(&self, path: &str) -> StorageResult<Bytes> {
        self.read(path, || self.inner.get(path))
    }

    fn get_range(&self, path: &str, range: Range<u64>) -> StorageResult<Bytes> {
        self.read(path, || self.inner.get_range(path, range))
    }

    fn get_to_file(&self, path: &str, local: &Path) -> StorageResult<()> {
        self.read(path, || self.inner.get_to_file(path, local))
    }

    fn list(&self, folder: &str) -> StorageResult<Vec<ObjectMeta>> {
        self.read(folder, || self.inner.list(folder))
    }

    fn delete(&self, path: &str) -> StorageResult<()> {
        self.write(path, || self.inner.delete(path))
    }

    fn head(&self, path: &str) -> StorageResult<Option<ObjectMeta>> {
        self.read(path, || self.inner.head(path))
    }

    fn small_objects(&self) -> SmallObjects {
        self.inner.small_objects()
    }
}
