//! The trait that every kind of storage implements.

use std::{fmt::Debug, ops::Range, path::Path};

use bytes::Bytes;

use crate::StorageResult;

/// What to do if an object with this path exists.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PutMode {
    /// Leave it alone and answer [`PutOutcome::Exists`]. Of several writers exactly one gets `Done`.
    Create,
    /// Replace it; readers see the old or the new content, never a mixture.
    Overwrite,
}

/// Answer of a write whose outcome is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use = "`Exists` means that somebody else's object lies there"]
pub enum PutOutcome {
    /// The object is there, whole and durable.
    Done,
    /// With [`PutMode::Create`]: another object has this path; it was not touched.
    Exists,
}

/// What many small objects cost in a storage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SmallObjects {
    /// Milliseconds each.
    Quick,
    /// Half a second each, as on HDFS: checkpoint intervals below 5 s cannot be kept.
    Slow,
}

/// One listed object.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct ObjectMeta {
    pub path: String,
    /// Bytes.
    pub size: u64,
}

/// Objects under paths such as `shared/ab12.delta`: relative, parts joined by `/`, no part empty, `.`, `..` or hidden.
/// No object's path may be the folder of another: files and some servers cannot hold both.
///
/// Calls block; tasks and JobManager call from their own threads. Kinds that are asynchronous underneath bridge inside.
/// A list, head or get made after a write returned sees that write.
///
/// # Errors
/// Every call: [`StorageError::Other`](crate::StorageError::Other) if it surely had no effect. Writes also
/// [`Unknown`](crate::StorageError::Unknown); gets also [`NotFound`](crate::StorageError::NotFound).
#[expect(clippy::missing_errors_doc, reason = "said once, above")]
pub trait Storage: Send + Sync + Debug {
    /// Stores `bytes`. Atomic and, once it returned, durable.
    fn put(&self, path: &str, bytes: Bytes, mode: PutMode) -> StorageResult<PutOutcome>;

    /// Stores the content of a local file, which must not change afterwards: it may be linked instead of copied.
    fn put_file(&self, path: &str, local: &Path, mode: PutMode) -> StorageResult<PutOutcome>;

    fn get(&self, path: &str) -> StorageResult<Bytes>;

    /// Bytes `range` of the object; a range that ends behind the object is an error.
    fn get_range(&self, path: &str, range: Range<u64>) -> StorageResult<Bytes>;

    /// Puts the object's content at `local`, replacing what is there. Nobody may write to `local` afterwards: it may
    /// be a link to the object itself.
    fn get_to_file(&self, path: &str, local: &Path) -> StorageResult<()>;

    /// Everything below the folder `folder` at any depth, sorted by path; everything at all for `""`. A folder that
    /// does not exist is empty.
    fn list(&self, folder: &str) -> StorageResult<Vec<ObjectMeta>>;

    /// Removes the object. One that is absent counts as removed.
    fn delete(&self, path: &str) -> StorageResult<()>;

    /// Removes many objects, in few requests where the storage can. All are tried; the first failure is the answer.
    fn delete_all(&self, paths: &[String]) -> StorageResult<()> {
        let mut first = Ok(());
        for path in paths {
            first = first.and(self.delete(path));
        }
        first
    }

    /// The object's size, or `None` if there is none.
    fn head(&self, path: &str) -> StorageResult<Option<ObjectMeta>>;

    /// What many small objects cost here.
    fn small_objects(&self) -> SmallObjects {
        SmallObjects::Quick
    }
}
