//! What all databases of a process share.

use std::sync::Arc;

use rocksdb::{Cache, WriteBufferManager};
use streamkeeper_state::{Backend, MemoryBudget, OpenCold, OpenedCold, Reservation};
use streamkeeper_types::Result;

use crate::restore;

/// Part of the state's budget that RocksDB's blocks, indexes, filters and write buffers get; tables cache the rest.
/// Ten times the cached rows need about a third of the cache's size for their filters and indexes alone.
const SHARE_DIVISOR: usize = 3;

/// Least block cache with which RocksDB still works.
const LEAST_CACHE: usize = 64 << 10;

/// Keyed state with RocksDB below the cache.
pub struct RocksdbBackend {
    budget: Arc<MemoryBudget>,
    shared: Shared,
    most_files: u64,
    /// Held for as long as the cache exists.
    reservation: Reservation,
}

/// `state.rocksdb.max-files-per-snapshot`, if nobody says otherwise.
const MOST_FILES: u64 = 2000;

/// Handles that every database is opened with.
#[derive(Clone)]
pub(crate) struct Shared {
    pub cache: Cache,
    pub write_buffers: WriteBufferManager,
}

impl std::fmt::Debug for RocksdbBackend {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RocksdbBackend").field("budget", &self.budget).finish_non_exhaustive()
    }
}

impl RocksdbBackend {
    /// Takes RocksDB's share out of `budget`. One for each process.
    #[must_use]
    pub fn new(budget: Arc<MemoryBudget>) -> Self {
        let bytes = (budget.limit() / SHARE_DIVISOR).max(LEAST_CACHE.min(budget.limit()));
        let cache = Cache::new_lru_cache(bytes);
        let write_buffers = WriteBufferManager::new_write_buffer_manager_with_cache(bytes / 4, false, cache.clone());
        let reservation = budget.reserve(bytes);
        Self { budget, shared: Shared { cache, write_buffers }, most_files: MOST_FILES, reservation }
    }

    /// `state.rocksdb.max-files-per-snapshot`: files of one subtask from which small ones are merged.
    #[must_use]
    pub fn with_most_files(mut self, files: u64) -> Self {
        self.most_files = files;
        self
    }

    /// Bytes that RocksDB holds in its cache now, write buffers included.
    #[must_use]
    pub fn cache_bytes(&self) -> usize {
        self.shared.cache.get_usage()
    }

    /// Bytes of the budget that RocksDB has.
    #[must_use]
    pub fn reserved_bytes(&self) -> usize {
        self.reservation.bytes()
    }
}

impl Backend for RocksdbBackend {
    fn name(&self) -> &'static str {
        "rocksdb"
    }

    fn budget(&self) -> &Arc<MemoryBudget> {
        &self.budget
    }

    fn open_cold(&self, request: &OpenCold<'_>) -> Result<Option<OpenedCold>> {
        restore::open(&self.shared, self.most_files, request).map(Some)
    }
}
