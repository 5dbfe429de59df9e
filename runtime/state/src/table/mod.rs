//! A state table: a vectorised write-back cache of typed columns over an optional cold store.
//!
//! ```text
//!   key bytes ──hash──▶ index ──▶ slot ──▶ columns[c].values[slot], .valid[slot]
//!                                    └───▶ flags[slot]: live, must go to the cold store, …
//!   not in the index ──▶ filter ──▶ one sorted multi-get for the batch's missing keys ──▶ cold store
//! ```
//! A slot is valid until [`Table::maintain`], which alone evicts between batches. A row that is removed, or looked up
//! and absent, keeps a slot with `exists(slot) == false` until then.

mod changes;
mod cold_keys;
mod evict;
mod index;
mod load;
mod lookup;
mod prefixes;
mod scan;

use std::{path::PathBuf, sync::Arc};

use arrow::array::ArrayRef;
use streamkeeper_types::{Error, KeyGroupRange, Millis, Result, key_group};

pub(crate) use changes::{BATCH_ROWS, Gathered};
pub(crate) use scan::table_bounds;
pub use scan::{Scan, ScanOrder};

use crate::{
    ColdStore, MemoryBudget, TableSpec, budget::Reservation, bytes_store::ByteStore, column::ValueColumn,
    fold::FoldJob, spec::TtlRefresh,
};
use changes::ChangeLog;
use cold_keys::ColdKeys;
use index::SlotIndex;
use lookup::MissingKey;
use prefixes::PrefixIndex;

/// A row's place in a [`Table`], valid until the next [`Table::maintain`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Slot(pub u32);

impl Slot {
    /// No row.
    pub const NONE: Self = Self(u32::MAX);

    #[must_use]
    #[inline]
    pub fn index(self) -> usize {
        self.0 as usize
    }

    #[must_use]
    pub fn is_none(self) -> bool {
        self == Self::NONE
    }
}

/// What [`Table::lookup`] does with a key that has no row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Missing {
    /// Gives a slot with the columns' initial values. The row begins to exist with [`Table::mark_dirty`].
    Insert,
    /// Gives [`Slot::NONE`].
    Skip,
}

/// Bits of `flags[slot]`.
mod flag {
    /// The slot holds a key.
    pub const USED: u8 = 1;
    /// The row is part of the state.
    pub const LIVE: u8 = 1 << 1;
    /// The cold store may hold a row with this key.
    pub const IN_COLD: u8 = 1 << 2;
    /// The cold store does not have the row as it is here.
    pub const COLD_DIRTY: u8 = 1 << 3;
    /// An earlier snapshot may hold a row with this key, so that removing it must be told.
    pub const IN_SNAPSHOT: u8 = 1 << 4;
    /// Used since the clock hand last passed.
    pub const RECENT: u8 = 1 << 5;
    /// Chosen by the eviction under way.
    pub const VICTIM: u8 = 1 << 6;
}

/// One state table of one subtask.
#[derive(Debug)]
pub struct Table {
    spec: TableSpec,
    /// Its place among the subtask's tables.
    number: usize,
    range: KeyGroupRange,
    index: SlotIndex,
    keys: ByteStore,
    flags: Vec<u8>,
    /// Epoch of the last change; 0 for none that a snapshot still has to tell.
    changed: Vec<u32>,
    columns: Vec<ValueColumn>,
    /// Time of last use in milliseconds; empty without TTL.
    used_at: Vec<Millis>,
    free: Vec<u32>,
    /// Slots that held no row when last seen, to be freed by `maintain`.
    dead: Vec<u32>,
    /// Such slots that a snapshot or the cold store still waits for.
    dead_waiting: Vec<u32>,
    live: usize,
    prefixes: Option<PrefixIndex>,
    changes: ChangeLog,
    cold: Option<Arc<dyn ColdStore>>,
    cold_keys: ColdKeys,
    /// Rows that a snapshot took out as clean but that are not in the cold store yet.
    fold: Option<Arc<FoldJob>>,
    now: Millis,
    hand: usize,
    ttl_hand: usize,
    /// Counts the moments at which slots became invalid: a scan under way collects its slots anew after one.
    generation: u64,
    reservation: Reservation,
    missing: Vec<MissingKey>,
    /// For evicted changes that wait for the next checkpoint.
    work_dir: PathBuf,
}

impl Table {
    pub(crate) fn new(
        spec: TableSpec,
        number: usize,
        range: KeyGroupRange,
        cold: Option<Arc<dyn ColdStore>>,
        budget: &Arc<MemoryBudget>,
        now: Millis,
        work_dir: PathBuf,
    ) -> Self {
        let prefixes = (spec.key.scan() > 0).then(|| PrefixIndex::new(spec.key.tracks_prefixes()));
        Self {
            columns: spec.physical.iter().map(|physical| ValueColumn::new(*physical)).collect(),
            spec,
            number,
            range,
            index: SlotIndex::default(),
            keys: ByteStore::default(),
            flags: Vec::new(),
            changed: Vec::new(),
            used_at: Vec::new(),
            free: Vec::new(),
            dead: Vec::new(),
            dead_waiting: Vec::new(),
            live: 0,
            prefixes,
            changes: ChangeLog::default(),
            cold,
            cold_keys: ColdKeys::none(),
            fold: None,
            now,
            hand: 0,
            ttl_hand: 0,
            generation: 0,
            reservation: budget.reserve(0),
            missing: Vec::new(),
            work_dir,
        }
    }

    #[must_use]
    pub fn spec(&self) -> &TableSpec {
        &self.spec
    }

    /// Rows in the cache, not counting those only in the cold store.
    #[must_use]
    pub fn cached_rows(&self) -> usize {
        self.live
    }

    /// Bytes that the cache accounts for.
    #[must_use]
    pub fn cached_bytes(&self) -> usize {
        (self.flags.len() - self.free.len()) * self.slot_bytes()
            + self.keys.bytes()
            + self.columns.iter().map(ValueColumn::string_bytes).sum::<usize>()
            + self.changes.bytes()
            + self.cold_keys.bytes()
    }

    /// The clock for TTL, in milliseconds since 1970: rows whose time has passed at `now` are gone.
    pub(crate) fn set_now(&mut self, now: Millis) {
        self.now = now;
    }

    /// Whether the row is part of the state: it was found, or was marked dirty since, and was not removed.
    #[must_use]
    #[inline]
    pub fn exists(&self, slot: Slot) -> bool {
        self.flags[slot.index()] & flag::LIVE != 0
    }

    /// Says that the row's values were written: it exists from now on and is part of the next snapshot.
    #[inline]
    pub fn mark_dirty(&mut self, slot: Slot) {
        let index = slot.index();
        let flags = self.flags[index];
        if flags & flag::LIVE == 0 {
            self.begin_life(index);
        }
        self.flags[index] |= flag::LIVE | flag::COLD_DIRTY | flag::RECENT;
        self.changes.record(&mut self.changed[index], slot.0);
        if !self.used_at.is_empty() {
            self.used_at[index] = self.now;
        }
    }

    /// Ends the row. Its slot keeps the columns' initial values; `mark_dirty` begins the row anew.
    pub fn remove(&mut self, slot: Slot) {
        let index = slot.index();
        let flags = self.flags[index];
        if flags & flag::LIVE == 0 {
            return;
        }
        self.end_life(index);
        self.flags[index] &= !(flag::LIVE | flag::COLD_DIRTY);
        if flags & flag::IN_COLD != 0 {
            self.flags[index] |= flag::COLD_DIRTY;
        }
        self.reset_values(index);
        if flags & flag::IN_SNAPSHOT != 0 {
            self.changes.record(&mut self.changed[index], slot.0);
        }
        self.dead.push(slot.0);
    }

    /// Value columns in the spec's order. Whoever writes a value calls [`Self::mark_dirty`] for the slot.
    #[must_use]
    pub fn columns(&self) -> &[ValueColumn] {
        &self.columns
    }

    /// As [`Self::columns`], to write. The number of slots must not change.
    #[must_use]
    pub fn columns_mut(&mut self) -> &mut [ValueColumn] {
        &mut self.columns
    }

    /// Value column `column` of the rows as an Arrow array of the declared type.
    ///
    /// # Errors
    /// `SNAPSHOT_CORRUPT` if restored bytes are no value of the type.
    pub fn gather(&self, column: usize, slots: &[Slot]) -> Result<ArrayRef> {
        self.columns[column].gather(slots, &self.spec.values[column].data_type)
    }

    /// All key columns of the rows.
    ///
    /// # Errors
    /// `SNAPSHOT_CORRUPT` if restored bytes are no key.
    pub fn gather_keys(&self, slots: &[Slot]) -> Result<Vec<ArrayRef>> {
        self.spec.key.decode(slots.iter().map(|slot| self.keys.get(slot.index())))
    }

    /// Sets value column `column` of `slots[i]` to row `rows[i]` of `array`. Marks nothing dirty.
    ///
    /// # Errors
    /// `INTERNAL` for an array of another type.
    pub fn scatter(&mut self, column: usize, array: &ArrayRef, rows: &[u32], slots: &[Slot]) -> Result<()> {
        if rows.len() != slots.len() {
            return Err(Error::internal("scatter with unequal numbers of rows and slots"));
        }
        self.columns[column].scatter(array, &self.spec.values[column].data_type, rows, slots)
    }

    /// Row bytes of the key: key group, then the columns.
    #[must_use]
    pub fn key_bytes(&self, slot: Slot) -> &[u8] {
        self.keys.get(slot.index())
    }

    /// Times of last use in milliseconds; none without TTL.
    pub(crate) fn used_at(&self, slots: &[Slot]) -> impl Iterator<Item = Millis> {
        slots.iter().filter(|_| !self.used_at.is_empty()).map(|slot| self.used_at[slot.index()])
    }

    /// The cold store came with rows.
    pub(crate) fn begin_with_cold_rows(&mut self) {
        self.cold_keys = ColdKeys::Any;
    }

    /// Evictions must wait for `fold`, or do it.
    pub(crate) fn wait_for(&mut self, fold: Arc<FoldJob>) {
        self.fold = Some(fold);
    }

    /// A slot without a key, in all arrays.
    fn allocate(&mut self) -> u32 {
        if let Some(slot) = self.free.pop() {
            return slot;
        }
        if self.flags.len() == self.flags.capacity() {
            self.reserve_slots();
        }
        self.keys.push_slot();
        self.flags.push(0);
        self.changed.push(0);
        self.columns.iter_mut().for_each(ValueColumn::push_slot);
        if self.spec.ttl.is_some() {
            self.used_at.push(0);
        }
        if let Some(prefixes) = &mut self.prefixes {
            prefixes.push_slot();
        }
        (self.flags.len() - 1) as u32
    }

    /// Puts a key that the cache does not hold into a slot of its own. No row exists yet.
    fn insert(&mut self, key: &[u8], hash: u64) -> u32 {
        let slot = self.allocate();
        let index = slot as usize;
        self.keys.set(index, key);
        self.flags[index] = flag::USED | flag::RECENT;
        self.changed[index] = 0;
        self.reset_values(index);
        self.index.insert(hash, slot);
        if let Some(prefixes) = &mut self.prefixes {
            // A key without the prefix's columns cannot come from our encoder, and restored keys were checked.
            prefixes.add(slot, self.spec.key.scan_prefix(key).unwrap_or_default());
        }
        slot
    }

    /// Takes the key out of its slot.
    fn release(&mut self, slot: u32) {
        let index = slot as usize;
        if self.flags[index] & flag::LIVE != 0 {
            self.end_life(index);
        }
        self.index.remove(self.hash_of(index), slot);
        if let Some(prefixes) = &mut self.prefixes {
            prefixes.remove(slot);
        }
        self.reset_values(index);
        self.keys.clear(index);
        self.flags[index] = 0;
        self.changed[index] = 0;
        self.free.push(slot);
    }

    /// Hash of the key in a slot that has one, as [`KeyRows::hashes`](crate::KeyRows::hashes) gives it.
    fn hash_of(&self, index: usize) -> u64 {
        key_group::hash(&self.keys.get(index)[2..])
    }

    fn begin_life(&mut self, index: usize) {
        self.live += 1;
        if let Some(prefixes) = &mut self.prefixes {
            prefixes.row_began(index);
        }
    }

    fn end_life(&mut self, index: usize) {
        self.live -= 1;
        if let Some(prefixes) = &mut self.prefixes {
            prefixes.row_ended(index);
        }
    }

    fn reset_values(&mut self, index: usize) {
        for (column, field) in self.columns.iter_mut().zip(&self.spec.values) {
            column.reset(index, field.initial);
        }
    }

    fn reserve_slots(&mut self) {
        // Steps of a quarter: doubling would overshoot the budget of a large table.
        let more = (self.flags.len() / 4).max(1024);
        self.flags.reserve_exact(more);
        self.changed.reserve_exact(more);
    }

    fn is_expired(&self, index: usize) -> bool {
        self.spec.ttl.is_some_and(|ttl| ttl.is_expired(self.used_at[index], self.now))
    }

    /// A read of an existing row.
    fn touch(&mut self, index: usize) {
        self.flags[index] |= flag::RECENT;
        let Some(ttl) = self.spec.ttl else { return };
        if ttl.refresh == TtlRefresh::OnReadAndWrite && self.used_at[index] != self.now {
            self.used_at[index] = self.now;
            self.flags[index] |= flag::COLD_DIRTY;
            self.changes.record(&mut self.changed[index], index as u32);
        }
    }
}
