//! What happens between batches: dead slots are freed, expired rows end, and cold rows leave for the store below.

use streamkeeper_types::{Code, Error, Result};

use super::{Slot, Table, flag};
use crate::{
    ColdRows,
    bytes_store::{ByteStore, Gaps},
    row,
    snapshot::Section,
};

/// Slots whose TTL is looked at in one call.
const TTL_STEP: usize = 1024;

/// Part of the budget that an eviction frees beyond the excess. Each one makes a file of the cold store, and merging
/// files costs the less, the larger they are.
const EVICTION_DIVISOR: usize = 8;

/// An eviction frees no more than this beyond the excess: the task waits for it.
const MOST_EVICTION: usize = 8 << 20;

/// Strings may take more than the rows' estimate; what other tables hold is not ours to evict.
const EVICTION_ROUNDS: usize = 4;

impl Table {
    /// To be called between batches: frees slots without rows, ends some expired rows and, while the budget is
    /// exceeded, evicts rows that were not used lately. All slots become invalid.
    ///
    /// # Errors
    /// `MEMORY_EXCEEDED` if the budget is exceeded and there is no cold store; storage and disk errors.
    pub fn maintain(&mut self) -> Result<()> {
        self.generation += 1;
        self.sweep();
        self.expire_some();
        self.compact(Gaps::Half);
        if self.changes.bound(self.flags.len()) {
            self.dead.append(&mut self.dead_waiting);
        }
        self.reservation.set(self.cached_bytes());
        self.keep_budget()
    }

    /// Evicts if the budget is exceeded.
    pub(super) fn keep_budget(&mut self) -> Result<()> {
        let budget = self.reservation.budget().clone();
        let excess = budget.excess();
        if excess == 0 {
            return Ok(());
        }
        if self.cold.is_none() {
            let limit = budget.limit();
            return Err(Error::new(
                Code::MemoryExceeded,
                format!("state table {} does not fit into the {limit} bytes that state may use", self.spec.name),
            )
            .way_out("set `state.backend: rocksdb`, or give state more memory"));
        }
        // Rows of a fold under way count as well, and go first.
        self.complete_fold()?;
        let spare = (budget.limit() / EVICTION_DIVISOR).min(MOST_EVICTION);
        for _ in 0..EVICTION_ROUNDS {
            if budget.excess() == 0 {
                break;
            }
            self.evict(budget.excess() + spare)?;
            self.compact(Gaps::Eighth);
            self.reservation.set(self.cached_bytes());
        }
        Ok(())
    }

    fn compact(&mut self, gaps: Gaps) {
        self.keys.compact(gaps);
        self.columns.iter_mut().for_each(|column| column.compact(gaps));
    }

    /// Frees the slots of rows that ended and that neither a snapshot nor the cold store has to hear of any more.
    fn sweep(&mut self) {
        let folding = self.is_folding();
        let mut dead = std::mem::take(&mut self.dead);
        for slot in dead.drain(..) {
            let index = slot as usize;
            let flags = self.flags[index];
            if flags & flag::LIVE != 0 || flags & flag::USED == 0 {
                continue;
            }
            let stale_below = flags & flag::COLD_DIRTY != 0 || (folding && flags & flag::IN_COLD != 0);
            if stale_below || self.is_untold(index) {
                self.dead_waiting.push(slot);
            } else {
                self.release(slot);
            }
        }
        self.dead = dead;
    }

    /// Ends the expired among the next few rows of the cache.
    fn expire_some(&mut self) {
        if self.spec.ttl.is_none() || self.flags.is_empty() {
            return;
        }
        for _ in 0..TTL_STEP.min(self.flags.len()) {
            self.ttl_hand = (self.ttl_hand + 1) % self.flags.len();
            let index = self.ttl_hand;
            if self.flags[index] & flag::LIVE != 0 && self.is_expired(index) {
                self.remove(Slot(index as u32));
            }
        }
    }

    /// Takes about `bytes` bytes of rows out of the cache by the clock algorithm: rows used since the hand last came
    /// by get another round. Changed ones go to the cold store in key order, and to the next delta.
    pub(super) fn evict(&mut self, bytes: usize) -> Result<()> {
        self.complete_fold()?;
        let victims = self.choose_victims(bytes);
        if victims.is_empty() {
            return Ok(());
        }
        let mut rows = ColdRows::new();
        let mut untold = Vec::new();
        for slot in &victims {
            let index = slot.index();
            if self.flags[index] & flag::LIVE != 0 {
                let hash = self.hash_of(index);
                self.cold_keys.add(hash, self.reservation.budget());
            }
            if self.flags[index] & flag::COLD_DIRTY != 0 {
                self.write_cold(index, &mut rows);
            }
            if self.is_untold(index) {
                untold.push(*slot);
            }
        }
        if !untold.is_empty() {
            let batch = self.physical_rows(&untold)?;
            self.changes.spill(Section::encode(self.number, &batch)?.into_local_file(&self.work_dir)?);
        }
        rows.sort();
        if let Some(cold) = self.cold.as_ref().filter(|_| !rows.is_empty()) {
            cold.apply(self.number, &rows)?;
        }
        victims.iter().for_each(|slot| self.release(slot.0));
        self.changes.prune(&self.changed);
        self.dead.append(&mut self.dead_waiting);
        self.generation += 1;
        Ok(())
    }

    fn choose_victims(&mut self, bytes: usize) -> Vec<Slot> {
        let slots = self.flags.len();
        let slot_bytes = self.slot_bytes();
        let mut victims = Vec::new();
        let mut freed = 0;
        for _ in 0..slots * 2 {
            if freed >= bytes {
                break;
            }
            self.hand = (self.hand + 1) % slots;
            let flags = &mut self.flags[self.hand];
            if *flags & flag::USED == 0 || *flags & flag::VICTIM != 0 {
                continue;
            }
            if *flags & flag::RECENT != 0 {
                *flags &= !flag::RECENT;
                continue;
            }
            *flags |= flag::VICTIM;
            victims.push(Slot(self.hand as u32));
            freed += slot_bytes + self.keys.get(self.hand).len();
        }
        victims
    }

    /// Adds what the cold store has to hear of a row: its value or its end.
    fn write_cold(&mut self, index: usize, rows: &mut ColdRows) {
        let key = self.keys.get(index);
        if self.flags[index] & flag::LIVE == 0 {
            rows.delete(key);
            return;
        }
        let used_at = self.spec.ttl.map(|_| self.used_at[index]);
        rows.put(key, |out| row::encode(&self.columns, used_at, index, out));
        if let Some(prefixes) = &mut self.prefixes {
            prefixes.goes_cold_at(index);
        }
    }

    /// What the cold store does not have as it is here, in no order. It counts as having it from now on.
    pub(crate) fn take_cold_dirty(&mut self) -> ColdRows {
        let mut rows = ColdRows::new();
        for index in 0..self.flags.len() {
            let flags = self.flags[index];
            if flags & flag::COLD_DIRTY == 0 {
                continue;
            }
            self.write_cold(index, &mut rows);
            self.flags[index] &= !flag::COLD_DIRTY;
            self.flags[index] |= flag::IN_COLD;
        }
        rows
    }

    /// Whether the next delta has to tell a change of this row.
    fn is_untold(&self, index: usize) -> bool {
        let changed = self.changed[index];
        self.flags[index] & (flag::LIVE | flag::IN_SNAPSHOT) != 0
            && self.changes.is_pending(changed)
            && self.changes.lists(changed)
    }

    /// Whether rows that were taken out are not in the cold store yet: until then ended ones keep their slots, which
    /// hide what it still has.
    fn is_folding(&mut self) -> bool {
        if self.fold.as_ref().is_some_and(|fold| fold.is_complete()) {
            self.fold = None;
            self.dead.append(&mut self.dead_waiting);
        }
        self.fold.is_some()
    }

    /// Makes sure that the cold store has what [`Self::take_cold_dirty`] took out, before anything is written to it.
    fn complete_fold(&mut self) -> Result<()> {
        match self.fold.take() {
            Some(fold) => fold.complete(),
            None => Ok(()),
        }
    }

    /// Bytes that a slot costs, strings apart.
    pub(super) fn slot_bytes(&self) -> usize {
        1 + 4
            + ByteStore::SLOT_BYTES
            + super::SlotIndex::SLOT_BYTES
            + if self.spec.ttl.is_some() { 8 } else { 0 }
            + if self.prefixes.is_some() { super::PrefixIndex::SLOT_BYTES } else { 0 }
            + self.columns.iter().map(super::ValueColumn::slot_bytes).sum::<usize>()
    }
}
