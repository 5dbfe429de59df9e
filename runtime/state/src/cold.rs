//! What a table needs of a store below its cache: ordered bytes, sorted writes, cuts and views.

use std::{
    fmt::Debug,
    ops::ControlFlow,
    path::{Path, PathBuf},
    sync::{Arc, atomic::AtomicI64},
};

use streamkeeper_storage::Storage;
use streamkeeper_types::{FileRef, KeyGroupRange, Result, snapshot::BaseFile};

use crate::{MemoryBudget, TableSpec, key::leading};

/// Called for each row of a scan, with key and value; `Break` ends the scan.
pub type RowVisitor<'a> = dyn FnMut(&[u8], &[u8]) -> ControlFlow<()> + 'a;

/// Called for each key of a look-up, with its position and the value that was found.
pub type FoundVisitor<'a> = dyn FnMut(usize, Option<&[u8]>) -> Result<()> + 'a;

/// A process's kind of keyed state, from which every subtask gets its own.
pub trait Backend: Send + Sync + Debug {
    /// As in `state.backend`: `memory` or `rocksdb`.
    fn name(&self) -> &'static str;

    /// The budget that all state of the process shares.
    fn budget(&self) -> &Arc<MemoryBudget>;

    /// Opens the store below the cache of one subtask's tables; `None` if all state is in the cache.
    ///
    /// # Errors
    /// `SNAPSHOT_CORRUPT` for base files that are missing or not what they should be, else storage and disk errors.
    fn open_cold(&self, request: &OpenCold<'_>) -> Result<Option<OpenedCold>>;
}

/// What a [`ColdStore`] is opened for.
#[derive(Debug)]
pub struct OpenCold<'a> {
    /// A table is known by its place here.
    pub tables: &'a [TableSpec],
    /// Key groups that the subtask owns.
    pub range: KeyGroupRange,
    /// An empty folder of the local machine for this store alone.
    pub dir: &'a Path,
    /// For each table, the base files of each old subtask that has some of our groups.
    pub sources: Vec<Vec<ColdSource<'a>>>,
    /// Where the base files lie.
    pub storage: &'a dyn Storage,
    /// Milliseconds since 1970, for TTL; the owner keeps it current.
    pub clock: Arc<AtomicI64>,
}

/// Base files of one table from one old subtask.
#[derive(Debug, Clone)]
pub struct ColdSource<'a> {
    pub files: &'a [BaseFile],
    /// Key groups to take: those of the old handle that are ours now.
    pub visible: KeyGroupRange,
}

/// A store and what it took over as it was.
#[derive(Debug)]
pub struct OpenedCold {
    pub store: Arc<dyn ColdStore>,
    /// Local files with the content of a base file, by [`CutFile::identity`]: they need no second upload.
    pub known: Vec<(u64, FileRef)>,
    /// How each table's sources came in, for logs and tests.
    pub steps: Vec<RestoreStep>,
}

/// A step of the ladder by which a table's base was put in place (runtime-rules.md X7), cheapest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RestoreStep {
    /// Nothing to restore.
    Empty,
    /// (a), (b): the files of one old subtask as they are.
    Reopen,
    /// (c): the files of several old subtasks as they are.
    Import,
    /// (d): rows scanned and written anew, next to files taken as they are.
    Rewrite,
}

/// Ordered bytes for each table of one subtask. Written by sorted batches only, by one thread at a time; reads may
/// come from any thread.
pub trait ColdStore: Send + Sync + Debug {
    /// Looks up `keys`, which are sorted and distinct, and says for each position what is there.
    ///
    /// # Errors
    /// `STORAGE` if the store fails, or the visitor's error.
    fn multi_get(&self, table: usize, keys: &[&[u8]], found: &mut FoundVisitor<'_>) -> Result<()>;

    /// Writes sorted puts and deletes; they are seen at once.
    ///
    /// # Errors
    /// `STORAGE` or `DISK_FULL`.
    fn apply(&self, table: usize, rows: &ColdRows) -> Result<()>;

    /// Visits the rows with `from <= key < to` in key order, as they are when the call begins.
    ///
    /// # Errors
    /// `STORAGE` if the store fails.
    fn scan(&self, table: usize, from: &[u8], to: &[u8], row: &mut RowVisitor<'_>) -> Result<()>;

    /// Keeps the files that hold the content as it is now.
    ///
    /// # Errors
    /// `STORAGE` or `DISK_FULL`.
    fn cut(&self) -> Result<Box<dyn ColdCut>>;

    /// A view of the content as it is now, which later writes do not change.
    ///
    /// # Errors
    /// `STORAGE` if the store fails.
    fn view(&self) -> Result<Box<dyn ColdView>>;

    /// Bytes on the local disk, about.
    fn disk_bytes(&self) -> u64;
}

/// Files that hold a store's content at one moment, kept until this is dropped.
pub trait ColdCut: Send + Debug {
    /// Files of one table, in any order.
    fn files(&self, table: usize) -> &[CutFile];
}

/// One immutable file of a cut.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CutFile {
    pub path: PathBuf,
    /// The same for the same physical file over the life of the store, and for no other one.
    pub identity: u64,
    /// Bytes.
    pub size: u64,
    pub level: u32,
    pub smallest: Vec<u8>,
    pub largest: Vec<u8>,
    pub smallest_seq: u64,
    pub largest_seq: u64,
}

/// A store's content at one moment.
pub trait ColdView: Send {
    /// As [`ColdStore::scan`].
    ///
    /// # Errors
    /// `STORAGE` if the store fails.
    fn scan(&self, table: usize, from: &[u8], to: &[u8], row: &mut RowVisitor<'_>) -> Result<()>;
}

/// Rows on their way to a [`ColdStore`]: keys with encoded values, or deleted.
#[derive(Debug, Clone, Default)]
pub struct ColdRows {
    /// Key and value of each row, one behind the other.
    bytes: Vec<u8>,
    rows: Vec<ColdRow>,
}

#[derive(Debug, Clone, Copy)]
struct ColdRow {
    /// Of the key, to sort by.
    leading: u128,
    start: usize,
    key: u32,
    /// [`DELETED`], or the value's length.
    value: u32,
}

/// Instead of the length of a value: the row is deleted. Values are shorter, since Arrow's are.
const DELETED: u32 = u32::MAX;

impl ColdRow {
    fn key<'a>(&self, bytes: &'a [u8]) -> &'a [u8] {
        &bytes[self.start..self.start + self.key as usize]
    }

    fn value<'a>(&self, bytes: &'a [u8]) -> Option<&'a [u8]> {
        let start = self.start + self.key as usize;
        (self.value != DELETED).then(|| &bytes[start..start + self.value as usize])
    }
}

impl ColdRows {
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    #[must_use]
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Bytes in memory.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        self.bytes.len() + self.rows.len() * size_of::<ColdRow>()
    }

    /// Adds a row; `value` appends its bytes.
    pub fn put(&mut self, key: &[u8], value: impl FnOnce(&mut Vec<u8>)) {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(key);
        let value_start = self.bytes.len();
        value(&mut self.bytes);
        let length = u32::try_from(self.bytes.len() - value_start).unwrap_or(DELETED - 1);
        self.rows.push(ColdRow { leading: leading(key), start, key: key.len() as u32, value: length });
    }

    pub fn delete(&mut self, key: &[u8]) {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(key);
        self.rows.push(ColdRow { leading: leading(key), start, key: key.len() as u32, value: DELETED });
    }

    /// Brings the rows into key order.
    pub fn sort(&mut self) {
        let bytes = &self.bytes;
        let rest = |a: &ColdRow, b: &ColdRow| a.key(bytes).cmp(b.key(bytes));
        self.rows.sort_unstable_by(|a, b| a.leading.cmp(&b.leading).then_with(|| rest(a, b)));
    }

    /// Keys with values, `None` for deleted rows.
    pub fn iter(&self) -> impl Iterator<Item = (&[u8], Option<&[u8]>)> {
        self.rows.iter().map(|row| (row.key(&self.bytes), row.value(&self.bytes)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_come_in_key_order_also_where_keys_differ_only_behind_their_leading_bytes() {
        let long = |end: &[u8]| [&[7_u8; 16][..], end].concat();
        let keys = [long(b"b"), long(b""), vec![7; 15], long(b"a"), vec![], vec![7, 0], vec![7], vec![8]];
        let mut rows = ColdRows::new();
        for (number, key) in (0_u8..).zip(&keys) {
            if number % 2 == 0 { rows.put(key, |out| out.push(number)) } else { rows.delete(key) }
        }
        rows.sort();
        let mut expected: Vec<(Vec<u8>, Option<u8>)> =
            (0_u8..).zip(keys).map(|(number, key)| (key, (number % 2 == 0).then_some(number))).collect();
        expected.sort();
        let found: Vec<_> = rows.iter().map(|(key, value)| (key.to_vec(), value.map(|value| value[0]))).collect();
        assert_eq!(found, expected);
    }
}
