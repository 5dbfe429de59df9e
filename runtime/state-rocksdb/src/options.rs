//! How databases and column families are set up, and why.

use std::sync::{
    Arc,
    atomic::{AtomicI64, Ordering},
};

use rocksdb::{
    BlockBasedIndexType, BlockBasedOptions, CompactionDecision, DBCompressionType, LogLevel, Options, ReadOptions,
};
use streamkeeper_state::{TableSpec, Ttl};
use streamkeeper_types::{KeyGroup, KeyGroupRange};

use crate::{backend::Shared, raw};

/// `state.rocksdb.background-threads`.
const BACKGROUND_THREADS: i32 = 2;

/// Bits of bloom filter for each key: one look-up in a hundred for an absent key reads a block.
const BLOOM_BITS: f64 = 10.0;

/// Files of evictions and folds that are merged at once into those of all rows. A merge rewrites what lies below, so
/// that more files make a written row cheaper and a look-up dearer, by one filter each.
const MERGE_FROM: i32 = 8;

/// Whether compaction cuts files at key-group borders, so that a rescale can take whole files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Partition {
    No,
    ByKeyGroup,
}

/// From this much state for each key group, a file for each group is worth having.
const PARTITION_FROM: u64 = 1 << 20;

/// More groups than this part of the files that a snapshot may have would be too many files.
const PARTITION_DIVISOR: u64 = 4;

impl Partition {
    /// What pays for state of about `bytes` over `range`, of at most `most_files` files.
    pub(crate) fn for_size(bytes: u64, range: KeyGroupRange, most_files: u64) -> Self {
        let groups = u64::from(range.len().max(1));
        if groups <= most_files / PARTITION_DIVISOR && bytes / groups >= PARTITION_FROM {
            Self::ByKeyGroup
        } else {
            Self::No
        }
    }
}

pub(crate) fn database(shared: &Shared) -> Options {
    let mut options = Options::default();
    options.create_if_missing(true);
    options.create_missing_column_families(true);
    options.set_write_buffer_manager(&shared.write_buffers);
    options.set_max_background_jobs(BACKGROUND_THREADS);
    // The files are of this attempt alone: checkpoints are what survives a crash.
    options.set_use_fsync(false);
    options.set_keep_log_file_num(1);
    options.set_log_level(LogLevel::Error);
    options.set_max_open_files(512);
    options
}

/// What tells the compaction which rows nobody will read again.
#[derive(Debug, Clone)]
pub(crate) struct Garbage {
    /// Groups of rows to keep; `None` if no others ever come in.
    pub range: Option<KeyGroupRange>,
    pub ttl: Option<Ttl>,
    pub clock: Arc<AtomicI64>,
}

impl Garbage {
    fn decide(&self, key: &[u8], value: &[u8]) -> CompactionDecision {
        let Some((group, _)) = key.split_first_chunk::<2>() else { return CompactionDecision::Keep };
        if self.range.is_some_and(|range| !range.contains(KeyGroup(u16::from_be_bytes(*group)))) {
            return CompactionDecision::Remove;
        }
        let Some((ttl, (used_at, _))) = self.ttl.zip(value.split_first_chunk::<8>()) else {
            return CompactionDecision::Keep;
        };
        if ttl.is_expired(i64::from_le_bytes(*used_at), self.clock.load(Ordering::Relaxed)) {
            return CompactionDecision::Remove;
        }
        CompactionDecision::Keep
    }
}

/// How a file's index and filter are laid out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Layout {
    /// In one block each, which a look-up finds at once: for files of one eviction or fold.
    Whole,
    /// In parts, which are cached like other blocks: for files that compaction makes. A whole filter of such a file may
    /// exceed a small cache, a shard of it even more so, and then would be read anew for every few keys.
    Parts,
}

fn table_factory(shared: &Shared, layout: Layout) -> BlockBasedOptions {
    let mut block = BlockBasedOptions::default();
    block.set_block_cache(&shared.cache);
    block.set_bloom_filter(BLOOM_BITS, false);
    block.set_cache_index_and_filter_blocks(true);
    block.set_cache_index_and_filter_blocks_with_high_priority(true);
    block.set_pin_l0_filter_and_index_blocks_in_cache(true);
    block.set_format_version(5);
    if layout == Layout::Parts {
        block.set_index_type(BlockBasedIndexType::TwoLevelIndexSearch);
        block.set_partition_filters(true);
        block.set_pin_top_level_index_and_filter(true);
    }
    block
}

/// For the writer of a file of one eviction or fold.
pub(crate) fn small_file(shared: &Shared) -> Options {
    let mut options = Options::default();
    options.set_block_based_table_factory(&table_factory(shared, Layout::Whole));
    options.set_compression_type(DBCompressionType::Lz4);
    options
}

pub(crate) fn column_family(shared: &Shared, table: &TableSpec, garbage: Garbage, partition: Partition) -> Options {
    let mut options = Options::default();
    options.set_block_based_table_factory(&table_factory(shared, Layout::Parts));
    options.set_compression_type(DBCompressionType::Lz4);
    options.set_write_buffer_size(64 << 10);
    options.set_target_file_size_base(64 << 20);
    options.set_level_zero_file_num_compaction_trigger(MERGE_FROM);
    debug_assert_eq!(garbage.ttl, table.ttl());
    // The filter is called for each row of each merge: not where it has nothing to say.
    if garbage.range.is_some() || garbage.ttl.is_some() {
        options.set_compaction_filter("streamkeeper.garbage", move |_level, key, value| garbage.decide(key, value));
    }
    if partition == Partition::ByKeyGroup {
        raw::partition_by_prefix(&mut options, 2);
    }
    options
}

/// Reads that keep within `from..to`.
pub(crate) fn bounded(from: &[u8], to: &[u8]) -> ReadOptions {
    let mut options = ReadOptions::default();
    options.set_iterate_lower_bound(from);
    options.set_iterate_upper_bound(to);
    options.set_total_order_seek(true);
    options
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use rocksdb::{BottommostLevelCompaction, Cache, ColumnFamilyDescriptor, CompactOptions, DB, WriteBufferManager};
    use streamkeeper_state::{ColdRows, KeySchema};

    use super::*;
    use crate::{
        sst,
        store::{Inner, family_name},
    };

    #[test]
    fn files_are_cut_at_key_groups_only_where_groups_are_few_and_large() {
        let check = |bytes, groups, expected| {
            assert_eq!(Partition::for_size(bytes, KeyGroupRange::all(groups), 2000), expected, "{bytes} in {groups}");
        };
        check(0, 1, Partition::No);
        check(128 << 20, 128, Partition::ByKeyGroup);
        check((128 << 20) - 1, 128, Partition::No);
        check(1 << 40, 500, Partition::ByKeyGroup);
        check(1 << 40, 501, Partition::No);
    }

    #[test]
    fn no_file_of_a_partitioned_table_crosses_a_key_groups_border() {
        let dir = tempfile::tempdir().unwrap();
        let cache = Cache::new_lru_cache(64 << 10);
        let write_buffers = WriteBufferManager::new_write_buffer_manager_with_cache(16 << 10, false, cache.clone());
        let shared = Shared { cache, write_buffers };
        let table = TableSpec::new("t", KeySchema::new(Vec::new()).unwrap(), Vec::new()).unwrap();
        let family = || {
            let garbage = Garbage { range: None, ttl: None, clock: Arc::default() };
            column_family(&shared, &table, garbage, Partition::ByKeyGroup)
        };
        let descriptor = ColumnFamilyDescriptor::new(family_name(0), family());
        let db = DB::open_cf_descriptors(&database(&shared), dir.path().join("db"), [descriptor]).unwrap();
        let inner = Inner::new(db, vec![family()], small_file(&shared), dir.path().join("scratch"));
        std::fs::create_dir(&inner.scratch).unwrap();
        for file in 0..3_u8 {
            let mut rows = ColdRows::new();
            for group in 0..8 {
                (0..100).for_each(|key| rows.put(&[0, group, file, key], |out| out.push(key)));
            }
            let path = inner.scratch_path("sst");
            sst::write(&inner.small_file, &path, &rows).unwrap();
            inner.ingest(0, &path).unwrap();
        }
        let mut force = CompactOptions::default();
        force.set_bottommost_level_compaction(BottommostLevelCompaction::Force);
        inner.db.compact_range_cf_opt(inner.family(0).unwrap(), None::<&[u8]>, None::<&[u8]>, &force);
        let files = raw::export(&inner.db, inner.family(0).unwrap(), &dir.path().join("cut")).unwrap();
        let groups: std::collections::BTreeSet<&[u8]> = files.iter().map(|file| &file.smallest[..2]).collect();
        assert_eq!((files.len(), groups.len()), (8, 8));
        assert!(files.iter().all(|file| file.smallest[..2] == file.largest[..2]));
    }
}
