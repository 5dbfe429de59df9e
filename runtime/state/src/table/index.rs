//! Hashes of keys to slots.

use hashbrown::HashTable;

/// Where the keys of the cache lie, by hash. An entry has its whole hash, so that growing reads nothing else, and that
/// a look-up touches a key's bytes only where they are almost surely the wanted ones.
#[derive(Debug, Default)]
pub(super) struct SlotIndex {
    entries: HashTable<Entry>,
}

/// A hash in two halves: 12 bytes instead of 16.
#[derive(Debug, Clone, Copy)]
struct Entry {
    low: u32,
    high: u32,
    slot: u32,
}

impl Entry {
    fn new(hash: u64, slot: u32) -> Self {
        Self { low: hash as u32, high: (hash >> 32) as u32, slot }
    }

    #[inline]
    fn hash(&self) -> u64 {
        u64::from(self.high) << 32 | u64::from(self.low)
    }
}

impl SlotIndex {
    /// Bytes for a slot: an entry and a control byte, at a load between 7/16 and 7/8.
    pub(super) const SLOT_BYTES: usize = 20;

    /// A slot whose key has this hash. Without any, the key is not there either.
    #[inline]
    pub(super) fn candidate(&self, hash: u64) -> Option<u32> {
        self.find(hash, |_| true)
    }

    /// The slot with this hash for which `is_wanted` holds.
    #[inline]
    pub(super) fn find(&self, hash: u64, is_wanted: impl Fn(u32) -> bool) -> Option<u32> {
        let entry = self.entries.find(hash, |entry| entry.hash() == hash && is_wanted(entry.slot));
        entry.map(|entry| entry.slot)
    }

    /// Adds a slot that is not there.
    pub(super) fn insert(&mut self, hash: u64, slot: u32) {
        self.entries.insert_unique(hash, Entry::new(hash, slot), Entry::hash);
    }

    pub(super) fn remove(&mut self, hash: u64, slot: u32) {
        if let Ok(entry) = self.entries.find_entry(hash, |entry| entry.slot == slot) {
            entry.remove();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_of_equal_hashes_are_told_apart_and_removed_alone() {
        let mut index = SlotIndex::default();
        for slot in 0..1000 {
            index.insert(u64::from(slot / 2) << 40, slot);
        }
        assert_eq!(index.find(7 << 40, |slot| slot == 15), Some(15));
        index.remove(7 << 40, 15);
        assert_eq!(index.find(7 << 40, |slot| slot == 15), None);
        assert_eq!(index.candidate(7 << 40), Some(14));
        assert_eq!(index.candidate(600 << 40), None);
    }
}
