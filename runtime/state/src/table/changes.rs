//! Which rows changed since the last confirmed checkpoint, and their values as a delta carries them.
//!
//! Time is cut into epochs; one ends at each checkpoint's cut. A delta tells the changes of all epochs that no
//! confirmed checkpoint covers, so that after an aborted checkpoint the next one carries its changes too.

use arrow::array::RecordBatch;
use streamkeeper_types::Result;

use super::{Slot, Table, flag};
use crate::snapshot::{Section, physical_batch};

/// Rows in one record batch of a delta or base.
pub(crate) const BATCH_ROWS: usize = 64 << 10;

/// Evicted changes beyond this many bytes make the next checkpoint a base, which needs none of them.
const SPILL_LIMIT: u64 = 256 << 20;

/// The changes of a table by epoch.
#[derive(Debug)]
pub(crate) struct ChangeLog {
    epoch: u32,
    /// Covered by a confirmed checkpoint, this epoch and all before.
    confirmed: u32,
    /// Epochs up to here are not fully listed.
    lost_through: u32,
    current: Epoch,
    closed: Vec<(u32, Epoch)>,
}

#[derive(Debug, Default)]
struct Epoch {
    /// May hold a slot twice, and slots that changed again later or hold another key by now.
    slots: Vec<u32>,
    /// Changed rows that were evicted.
    spilled: Vec<Section>,
}

/// A table's part of a delta: first the evicted changes in order, then those in the cache.
#[derive(Debug, Default)]
pub(crate) struct Gathered {
    pub sections: Vec<Section>,
    pub batches: Vec<RecordBatch>,
}

impl Default for ChangeLog {
    fn default() -> Self {
        Self { epoch: 1, confirmed: 0, lost_through: 0, current: Epoch::default(), closed: Vec::new() }
    }
}

impl ChangeLog {
    #[inline]
    pub(super) fn record(&mut self, changed: &mut u32, slot: u32) {
        if *changed == self.epoch {
            return;
        }
        *changed = self.epoch;
        if self.lost_through < self.epoch {
            self.current.slots.push(slot);
        }
    }

    /// Whether a delta can tell the changes since the last confirmed checkpoint.
    pub(crate) fn is_complete(&self) -> bool {
        self.lost_through <= self.confirmed
    }

    /// Whether a snapshot still has to tell a change made in `epoch`.
    pub(super) fn is_pending(&self, epoch: u32) -> bool {
        epoch > self.confirmed
    }

    /// Whether the lists have the changes of `epoch`.
    pub(super) fn lists(&self, epoch: u32) -> bool {
        epoch > self.lost_through
    }

    /// Forgets which rows changed up to now: the next checkpoint must be a base.
    pub(crate) fn lose(&mut self) {
        self.lost_through = self.epoch;
        self.current = Epoch::default();
        self.closed.clear();
    }

    /// Takes rows out of the lists that were evicted or changed again later.
    pub(super) fn prune(&mut self, changed: &[u32]) {
        let current = (self.epoch, &mut self.current);
        for (number, epoch) in self.closed.iter_mut().map(|(number, epoch)| (*number, epoch)).chain([current]) {
            epoch.slots.retain(|slot| changed[*slot as usize] == number);
            epoch.slots.shrink_to(epoch.slots.len() * 2);
        }
    }

    pub(super) fn spill(&mut self, section: Section) {
        self.current.spilled.push(section);
    }

    /// Keeps the lists in proportion to the table, whose slots are `slots`, also when no checkpoint ever comes. Says
    /// whether it had to lose them.
    pub(super) fn bound(&mut self, slots: usize) -> bool {
        let epochs = || self.closed.iter().map(|(_, epoch)| epoch).chain([&self.current]);
        let listed: usize = epochs().map(|epoch| epoch.slots.len()).sum();
        let spilled: u64 = epochs().flat_map(|epoch| &epoch.spilled).map(Section::len).sum();
        let unbounded = listed > slots * 4 + BATCH_ROWS || spilled > SPILL_LIMIT;
        if unbounded {
            self.lose();
        }
        unbounded
    }

    /// Bytes in memory.
    pub(super) fn bytes(&self) -> usize {
        let epochs = self.closed.iter().map(|(_, epoch)| epoch).chain([&self.current]);
        epochs.map(|epoch| epoch.slots.len() * 4 + epoch.spilled.iter().map(Section::memory_bytes).sum::<usize>()).sum()
    }

    pub(crate) fn confirm(&mut self, epoch: u32) {
        self.confirmed = self.confirmed.max(epoch);
        self.closed.retain(|(closed, _)| *closed > epoch);
    }
}

impl Table {
    /// Whether the next checkpoint can be a delta.
    pub(crate) fn can_delta(&self) -> bool {
        self.changes.is_complete()
    }

    pub(crate) fn lose_changes(&mut self) {
        self.changes.lose();
    }

    /// Ends the epoch at a checkpoint's cut and gives its number. What lives now is part of that checkpoint.
    pub(crate) fn close_epoch(&mut self) -> u32 {
        if self.changes.lost_through == self.changes.epoch {
            for flags in &mut self.flags {
                *flags |= if *flags & flag::LIVE != 0 { flag::IN_SNAPSHOT } else { 0 };
            }
        }
        for slot in &self.changes.current.slots {
            let flags = &mut self.flags[*slot as usize];
            *flags |= if *flags & flag::LIVE != 0 { flag::IN_SNAPSHOT } else { 0 };
        }
        let epoch = self.changes.epoch;
        self.changes.closed.push((epoch, std::mem::take(&mut self.changes.current)));
        self.changes.epoch += 1;
        epoch
    }

    /// The checkpoint that ended `epoch` is confirmed.
    pub(crate) fn confirm_epoch(&mut self, epoch: u32) {
        self.changes.confirm(epoch);
        self.dead.append(&mut self.dead_waiting);
    }

    /// All changes since the last confirmed checkpoint, up to the last closed epoch: last value of each changed row.
    pub(crate) fn gather_changes(&self) -> Result<Gathered> {
        let mut seen = vec![0_u64; self.flags.len().div_ceil(64)];
        let mut slots = Vec::new();
        for (epoch, changes) in &self.changes.closed {
            for slot in &changes.slots {
                let index = *slot as usize;
                let told = self.flags[index] & (flag::LIVE | flag::IN_SNAPSHOT) != 0;
                let bit = 1 << (index % 64);
                if self.changed[index] == *epoch && told && seen[index / 64] & bit == 0 {
                    seen[index / 64] |= bit;
                    slots.push(Slot(*slot));
                }
            }
        }
        let sections = self.changes.closed.iter().flat_map(|(_, epoch)| epoch.spilled.iter().cloned()).collect();
        Ok(Gathered { sections, batches: self.batches(&slots)? })
    }

    /// Every row in the cache.
    pub(crate) fn gather_all(&self) -> Result<Vec<RecordBatch>> {
        self.batches(&self.live_slots())
    }

    pub(crate) fn live_slots(&self) -> Vec<Slot> {
        let live = |(slot, flags): (usize, &u8)| (flags & flag::LIVE != 0).then_some(Slot(slot as u32));
        self.flags.iter().enumerate().filter_map(live).collect()
    }

    fn batches(&self, slots: &[Slot]) -> Result<Vec<RecordBatch>> {
        slots.chunks(BATCH_ROWS).map(|slots| self.physical_rows(slots)).collect()
    }

    /// The rows in the form of deltas and base columns.
    pub(super) fn physical_rows(&self, slots: &[Slot]) -> Result<RecordBatch> {
        let keys = slots.iter().map(|slot| self.keys.get(slot.index()));
        let live = slots.iter().map(|slot| self.exists(*slot)).collect();
        let used_at = self.spec.ttl.map(|_| slots.iter().map(|slot| self.used_at[slot.index()]).collect::<Vec<_>>());
        physical_batch(keys, live, used_at, &self.columns, slots)
    }
}
