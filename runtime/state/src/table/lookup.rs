//! Keys of a batch to slots.

use streamkeeper_types::{Code, Error, Result};

use super::{Missing, Slot, Table, flag};
use crate::{KeyRows, key::leading, row};

/// Keys whose index entries are read before the first of them is compared: so the processor waits for many at once.
const AHEAD: usize = 64;

/// A key of the batch that the cache does not hold but the cold store may.
#[derive(Debug)]
pub(super) struct MissingKey {
    /// Of the key, to sort by.
    leading: u128,
    row: u32,
    /// Where the row goes if there is one.
    slot: u32,
}

impl Table {
    /// Finds the slots of all keys: those in the cache at once, the others by one sorted multi-get from the cold store.
    /// Equal keys get equal slots. Replaces `slots`, one a row.
    ///
    /// # Errors
    /// `STORAGE` if the cold store fails, `SNAPSHOT_CORRUPT` if it holds bytes that are no row.
    pub fn lookup(&mut self, keys: &KeyRows, missing: Missing, slots: &mut Vec<Slot>) -> Result<()> {
        slots.clear();
        slots.reserve(keys.len());
        self.missing.clear();
        let mut candidates = [None; AHEAD];
        for (chunk, hashes) in keys.hashes().chunks(AHEAD).enumerate() {
            for (candidate, hash) in candidates.iter_mut().zip(hashes) {
                *candidate = self.index.candidate(*hash);
            }
            for (i, (hash, candidate)) in hashes.iter().zip(&candidates).enumerate() {
                let row = chunk * AHEAD + i;
                let key = keys.key(row);
                let candidate = candidate.filter(|slot| self.keys.get(*slot as usize) == key);
                let slot = match candidate.or_else(|| self.find(key, *hash)) {
                    Some(slot) => self.hit(slot),
                    // Else an absent key needs no slot: no row is below, and none may begin.
                    None if missing == Missing::Insert || self.cold_keys.may_hold(*hash) => self.miss(row, key, *hash),
                    None => Slot::NONE,
                };
                slots.push(slot);
            }
        }
        self.load_missing(keys)?;
        if missing == Missing::Skip {
            for slot in slots.iter_mut() {
                if !slot.is_none() && !self.exists(*slot) {
                    *slot = Slot::NONE;
                }
            }
        }
        Ok(())
    }

    #[inline]
    pub(super) fn find(&self, key: &[u8], hash: u64) -> Option<u32> {
        self.index.find(hash, |slot| self.keys.get(slot as usize) == key)
    }

    #[inline]
    fn hit(&mut self, slot: u32) -> Slot {
        let index = slot as usize;
        if self.spec.ttl.is_none() {
            self.flags[index] |= flag::RECENT;
            return Slot(slot);
        }
        if self.exists(Slot(slot)) {
            if self.is_expired(index) {
                self.remove(Slot(slot));
            } else {
                self.touch(index);
            }
        }
        Slot(slot)
    }

    fn miss(&mut self, row: usize, key: &[u8], hash: u64) -> Slot {
        let slot = self.insert(key, hash);
        self.dead.push(slot);
        if self.cold_keys.may_hold(hash) {
            self.missing.push(MissingKey { leading: leading(key), row: row as u32, slot });
        }
        Slot(slot)
    }

    /// Fills the slots that this batch's absent keys got from the cold store, by one sorted multi-get.
    fn load_missing(&mut self, keys: &KeyRows) -> Result<()> {
        let Some(cold) = self.cold.clone().filter(|_| !self.missing.is_empty()) else { return Ok(()) };
        let mut missing = std::mem::take(&mut self.missing);
        let key = |missing: &MissingKey| keys.key(missing.row as usize);
        missing.sort_unstable_by(|a, b| a.leading.cmp(&b.leading).then_with(|| key(a).cmp(key(b))));
        let wanted: Vec<&[u8]> = missing.iter().map(key).collect();
        let loaded = cold.multi_get(self.number, &wanted, &mut |position, value| match value {
            Some(value) => {
                let slot = missing[position].slot;
                self.fill(slot, value)?;
                self.hit(slot);
                Ok(())
            }
            None => Ok(()),
        });
        self.missing = missing;
        loaded
    }

    /// Puts a row of the cold store into a slot that holds its key.
    pub(super) fn fill(&mut self, slot: u32, value: &[u8]) -> Result<()> {
        let index = slot as usize;
        let has_ttl = self.spec.ttl.is_some();
        let Some(used_at) = row::decode(value, has_ttl, &mut self.columns, index) else {
            let table = &self.spec.name;
            return Err(Error::new(Code::SnapshotCorrupt, format!("a row of state table {table} is malformed")));
        };
        self.flags[index] |= flag::LIVE | flag::IN_COLD | flag::IN_SNAPSHOT;
        self.begin_life(index);
        if let Some(used_at) = used_at {
            self.used_at[index] = used_at;
            if self.is_expired(index) {
                self.remove(Slot(slot));
            }
        }
        Ok(())
    }
}
