//! One subtask's database.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use rocksdb::{
    BottommostLevelCompaction, ColumnFamily, CompactOptions, DB, IngestExternalFileOptions, Options, ReadOptions,
    WaitForCompactOptions,
};
use streamkeeper_state::{ColdCut, ColdRows, ColdStore, ColdView, FoundVisitor, RowVisitor};
use streamkeeper_types::{Code, Error, Result};

use crate::{cut::Cut, options::bounded, sst, view};

/// A database and what goes with it; kept alive by views and cuts.
pub(crate) struct Inner {
    pub db: DB,
    /// By table; the writer of large files must agree with the column family.
    pub options: Vec<Options>,
    /// For the writer of small files, of any table.
    pub small_file: Options,
    /// For files on their way in and out, on the same file system as the database.
    pub scratch: PathBuf,
    next: AtomicU64,
}

/// Keyed state of one subtask in RocksDB.
pub(crate) struct Store {
    inner: Arc<Inner>,
    /// Files that one table may have before they are merged.
    most_files: u64,
    /// By table, the number of files that the last merge left.
    merged: Vec<AtomicU64>,
}

/// Files that wait to be merged by a compaction. With more of them every look-up is slow: who writes waits.
const MOST_WAITING: u64 = 64;

/// RocksDB's default.
const LEVELS: u32 = 7;

impl std::fmt::Debug for Store {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Store").field("path", &self.inner.db.path()).finish_non_exhaustive()
    }
}

/// Name of a table's column family: by number, since names are the user's.
pub(crate) fn family_name(table: usize) -> String {
    format!("t{table}")
}

/// An error of RocksDB as ours.
pub(crate) fn failed(doing: &str, error: &rocksdb::Error) -> Error {
    let text = error.to_string();
    if text.contains("No space left") {
        return Error::disk_full(format!("{doing}: {text}"));
    }
    Error::new(Code::Storage, format!("RocksDB failed while {doing}: {text}"))
}

impl Inner {
    pub(crate) fn new(db: DB, options: Vec<Options>, small_file: Options, scratch: PathBuf) -> Self {
        Self { db, options, small_file, scratch, next: AtomicU64::new(0) }
    }

    pub(crate) fn family(&self, table: usize) -> Result<&ColumnFamily> {
        self.db
            .cf_handle(&family_name(table))
            .ok_or_else(|| Error::internal(format!("state table {table} has no column family")))
    }

    /// A path in the scratch folder that nobody else uses.
    pub(crate) fn scratch_path(&self, kind: &str) -> PathBuf {
        self.scratch.join(format!("{kind}-{}", self.next.fetch_add(1, Ordering::Relaxed)))
    }

    /// Moves a finished SST file into the database.
    pub(crate) fn ingest(&self, table: usize, path: &Path) -> Result<()> {
        let mut options = IngestExternalFileOptions::default();
        options.set_move_files(true);
        self.db
            .ingest_external_file_cf_opts(self.family(table)?, &options, vec![path])
            .map_err(|error| failed("taking in an SST file", &error))
    }
}

impl Store {
    pub(crate) fn new(inner: Inner, most_files: u64) -> Self {
        let tables = inner.options.len();
        let merged = (0..tables).map(|_| AtomicU64::new(0)).collect();
        Self { inner: Arc::new(inner), most_files: (most_files / tables.max(1) as u64).max(1), merged }
    }

    /// Keeps the number of a table's files bounded (B18). Compaction alone does not: files whose keys only ever grow
    /// overlap nothing, so that RocksDB puts each of them at the bottom, however small.
    fn bound_files(&self, table: usize) -> Result<()> {
        let family = self.inner.family(table)?;
        let files = |level: u32| -> Result<u64> {
            let property = format!("rocksdb.num-files-at-level{level}");
            let count = self.inner.db.property_value_cf(family, &property);
            Ok(count.map_err(|error| failed("counting files", &error))?.and_then(|n| n.parse().ok()).unwrap_or(0))
        };
        if files(0)? > MOST_WAITING {
            let waited = self.inner.db.wait_for_compact(&WaitForCompactOptions::default());
            waited.map_err(|error| failed("waiting for a compaction", &error))?;
        }
        let total = || (0..LEVELS).map(files).sum::<Result<u64>>();
        // Large state has many files also after a merge; then the next one comes at twice their number.
        let merged = &self.merged[table];
        if total()? > self.most_files.max(merged.load(Ordering::Relaxed) * 2) {
            let mut options = CompactOptions::default();
            options.set_bottommost_level_compaction(BottommostLevelCompaction::Force);
            self.inner.db.compact_range_cf_opt(family, None::<&[u8]>, None::<&[u8]>, &options);
            merged.store(total()?, Ordering::Relaxed);
        }
        Ok(())
    }
}

impl ColdStore for Store {
    fn multi_get(&self, table: usize, keys: &[&[u8]], found: &mut FoundVisitor<'_>) -> Result<()> {
        let family = self.inner.family(table)?;
        let options = ReadOptions::default();
        let values = self.inner.db.batched_multi_get_cf_opt(family, keys.iter().copied(), true, &options);
        for (position, value) in values.into_iter().enumerate() {
            let value = value.map_err(|error| failed("reading state", &error))?;
            found(position, value.as_deref())?;
        }
        Ok(())
    }

    fn apply(&self, table: usize, rows: &ColdRows) -> Result<()> {
        if rows.is_empty() {
            return Ok(());
        }
        let path = self.inner.scratch_path("sst");
        sst::write(&self.inner.small_file, &path, rows)?;
        self.inner.ingest(table, &path)?;
        self.bound_files(table)
    }

    fn scan(&self, table: usize, from: &[u8], to: &[u8], row: &mut RowVisitor<'_>) -> Result<()> {
        view::scan(&self.inner.db, self.inner.family(table)?, bounded(from, to), from, row)
    }

    fn cut(&self) -> Result<Box<dyn ColdCut>> {
        Ok(Box::new(Cut::new(&self.inner)?))
    }

    fn view(&self) -> Result<Box<dyn ColdView>> {
        Ok(Box::new(view::View::new(self.inner.clone())))
    }

    fn disk_bytes(&self) -> u64 {
        let size = |table: usize| {
            let family = self.inner.family(table).ok()?;
            self.inner.db.property_int_value_cf(family, "rocksdb.total-sst-files-size").ok()?
        };
        (0..self.inner.options.len()).filter_map(size).sum()
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        // Compactions would go on into a folder that is about to be removed.
        self.db.cancel_all_background_work(true);
        if let Err(error) = fs::remove_dir_all(&self.scratch) {
            tracing::debug!(path = %self.scratch.display(), %error, "a scratch folder could not be removed");
        }
    }
}
