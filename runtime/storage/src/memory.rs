//! Storage in memory, for tests and the simulator. Clones share their objects.

use std::{collections::BTreeMap, fs, ops::Range, path::Path, sync::Arc};

use bytes::Bytes;
use parking_lot::Mutex;
use streamkeeper_types::{Code, Error};

use crate::{ObjectMeta, PutMode, PutOutcome, Storage, StorageError, StorageResult, path};

/// Objects in a map. Linearisable: every call is one step.
#[derive(Debug, Clone, Default)]
pub struct MemoryStorage {
    objects: Arc<Mutex<BTreeMap<String, Bytes>>>,
}

impl MemoryStorage {
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }
}

/// The part of `bytes` that `range` names.
pub(crate) fn slice(path: &str, bytes: &Bytes, range: Range<u64>) -> StorageResult<Bytes> {
    let bounds = usize::try_from(range.start).ok().zip(usize::try_from(range.end).ok());
    match bounds {
        Some((start, end)) if start <= end && end <= bytes.len() => Ok(bytes.slice(start..end)),
        _ => Err(StorageError::Other(out_of_range(path, &range, bytes.len() as u64))),
    }
}

/// A range that the object does not have.
pub(crate) fn out_of_range(path: &str, range: &Range<u64>, size: u64) -> Error {
    Error::new(Code::Storage, format!("`{path}` has {size} bytes, but bytes {}..{} are wanted", range.start, range.end))
}

impl Storage for MemoryStorage {
    fn put(&self, path: &str, bytes: Bytes, mode: PutMode) -> StorageResult<PutOutcome> {
        path::check(path).map_err(StorageError::Other)?;
        let mut objects = self.objects.lock();
        if mode == PutMode::Create && objects.contains_key(path) {
            return Ok(PutOutcome::Exists);
        }
        objects.insert(path.to_owned(), bytes);
        Ok(PutOutcome::Done)
    }

    fn put_file(&self, path: &str, local: &Path, mode: PutMode) -> StorageResult<PutOutcome> {
        let bytes = fs::read(local).map_err(|e| StorageError::Other(Error::io(Code::Storage, local.display(), &e)))?;
        self.put(path, bytes.into(), mode)
    }

    fn get(&self, path: &str) -> StorageResult<Bytes> {
        self.objects.lock().get(path).cloned().ok_or_else(|| StorageError::not_found(path))
    }

    fn get_range(&self, path: &str, range: Range<u64>) -> StorageResult<Bytes> {
        slice(path, &self.get(path)?, range)
    }

    fn get_to_file(&self, path: &str, local: &Path) -> StorageResult<()> {
        let bytes = self.get(path)?;
        fs::write(local, bytes).map_err(|e| StorageError::Other(Error::io(Code::Storage, local.display(), &e)))
    }

    fn list(&self, folder: &str) -> StorageResult<Vec<ObjectMeta>> {
        path::check_folder(folder).map_err(StorageError::Other)?;
        let objects = self.objects.lock();
        let below = objects.range(folder.to_owned()..).take_while(|(path, _)| path.starts_with(folder));
        Ok(below
            .filter(|(path, _)| path::is_below(path, folder))
            .map(|(path, bytes)| ObjectMeta { path: path.clone(), size: bytes.len() as u64 })
            .collect())
    }

    fn delete(&self, path: &str) -> StorageResult<()> {
        path::check(path).map_err(StorageError::Other)?;
        self.objects.lock().remove(path);
        Ok(())
    }

    fn head(&self, path: &str) -> StorageResult<Option<ObjectMeta>> {
        let objects = self.objects.lock();
        Ok(objects.get(path).map(|bytes| ObjectMeta { path: path.to_owned(), size: bytes.len() as u64 }))
    }
}
