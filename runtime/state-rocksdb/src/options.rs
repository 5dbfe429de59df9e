//! How databases and column families are set up, and why.

use std::sync::{
    Arc,
    atomic::{AtomicI64, Ordering},
};

use rocksdb::{BlockBasedOptions, CompactionDecision, DBCompressionType, LogLevel, Options, ReadOptions};
use streamkeeper_state::{TableSpec, Ttl};
use streamkeeper_types::KeyGroupRange;

use crate::{backend::Shared, raw};

/// `state.rocksdb.background-threads`.
const BACKGROUND_THREADS: i32 = 2;

/// Bits of bloom filter for each key: one look-up in a hundred for an absent key reads a block.
const BLOOM_BITS: f64 = 10.0;

/// Whether compaction cuts files at key-group borders, so that a rescale can take whole files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Partition {
    No,
    ByKeyGroup,
}

/// From this much state for each key group, a file for each group is worth having.
const PARTITION_FROM: u64 = 1 << 20;

/// More groups would be too many files.
const PARTITION_UP_TO: u32 = 512;

impl Partition {
    /// What pays for state of about `bytes` over `range`.
    pub(crate) fn for_size(bytes: u64, range: KeyGroupRange) -> Self {
        let groups = range.len();
        if groups <= PARTITION_UP_TO && bytes / u64::from(groups.max(1)) >= PARTITION_FROM {
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
    pub range: KeyGroupRange,
    pub ttl: Option<Ttl>,
    pub clock: Arc<AtomicI64>,
}

impl Garbage {
    fn decide(&self, key: &[u8], value: &[u8]) -> CompactionDecision {
        let Some((group, _)) = key.split_first_chunk::<2>() else { return CompactionDecision::Keep };
        if !self.range.contains(streamkeeper_types::KeyGroup(u16::from_be_bytes(*group))) {
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

pub(crate) fn column_family(shared: &Shared, table: &TableSpec, garbage: Garbage, partition: Partition) -> Options {
    let mut block = BlockBasedOptions::default();
    block.set_block_cache(&shared.cache);
    block.set_bloom_filter(BLOOM_BITS, false);
    block.set_cache_index_and_filter_blocks(true);
    block.set_cache_index_and_filter_blocks_with_high_priority(true);
    block.set_pin_l0_filter_and_index_blocks_in_cache(true);
    block.set_format_version(5);

    let mut options = Options::default();
    options.set_block_based_table_factory(&block);
    options.set_compression_type(DBCompressionType::Lz4);
    options.set_write_buffer_size(64 << 10);
    options.set_target_file_size_base(64 << 20);
    // Evictions bring many small files in a burst; a stall would stop the task, more files only slow reads a little.
    options.set_level_zero_slowdown_writes_trigger(64);
    options.set_level_zero_stop_writes_trigger(256);
    debug_assert_eq!(garbage.ttl, table.ttl());
    options.set_compaction_filter("streamkeeper.garbage", move |_level, key, value| garbage.decide(key, value));
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
