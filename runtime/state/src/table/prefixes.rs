//! Slots by scan prefix.

use std::collections::{BTreeSet, HashMap};

/// For each scan prefix in the cache, the slots that hold its keys.
#[derive(Debug)]
pub(super) struct PrefixIndex {
    by_bytes: HashMap<Box<[u8]>, u32>,
    entries: Vec<Entry>,
    free: Vec<u32>,
    /// By slot: its entry and its place in the entry's list.
    places: Vec<(u32, u32)>,
    /// Prefixes that the cold store may hold rows of, if the table keeps track.
    cold: Option<BTreeSet<Box<[u8]>>>,
}

#[derive(Debug, Default)]
struct Entry {
    bytes: Box<[u8]>,
    slots: Vec<u32>,
    live: u32,
}

impl PrefixIndex {
    /// Bytes that a slot costs here.
    pub(super) const SLOT_BYTES: usize = 12;

    pub(super) fn new(tracks_cold: bool) -> Self {
        Self {
            by_bytes: HashMap::new(),
            entries: Vec::new(),
            free: Vec::new(),
            places: Vec::new(),
            cold: tracks_cold.then(BTreeSet::new),
        }
    }

    pub(super) fn push_slot(&mut self) {
        self.places.push((u32::MAX, 0));
    }

    pub(super) fn add(&mut self, slot: u32, prefix: &[u8]) {
        let number = match self.by_bytes.get(prefix) {
            Some(number) => *number,
            None => self.new_entry(prefix),
        };
        let slots = &mut self.entries[number as usize].slots;
        self.places[slot as usize] = (number, slots.len() as u32);
        slots.push(slot);
    }

    fn new_entry(&mut self, prefix: &[u8]) -> u32 {
        let entry = Entry { bytes: prefix.into(), ..Entry::default() };
        let number = match self.free.pop() {
            Some(number) => {
                self.entries[number as usize] = entry;
                number
            }
            None => {
                self.entries.push(entry);
                (self.entries.len() - 1) as u32
            }
        };
        self.by_bytes.insert(prefix.into(), number);
        number
    }

    pub(super) fn remove(&mut self, slot: u32) {
        let (number, place) = self.places[slot as usize];
        let entry = &mut self.entries[number as usize];
        entry.slots.swap_remove(place as usize);
        if let Some(moved) = entry.slots.get(place as usize) {
            self.places[*moved as usize].1 = place;
        }
        self.places[slot as usize] = (u32::MAX, 0);
        if entry.slots.is_empty() {
            let entry = std::mem::take(entry);
            self.by_bytes.remove(&entry.bytes);
            self.free.push(number);
        }
    }

    pub(super) fn row_began(&mut self, slot: usize) {
        self.entries[self.places[slot].0 as usize].live += 1;
    }

    pub(super) fn row_ended(&mut self, slot: usize) {
        self.entries[self.places[slot].0 as usize].live -= 1;
    }

    /// Slots whose keys have this prefix, rows or not.
    pub(super) fn slots(&self, prefix: &[u8]) -> &[u32] {
        self.by_bytes.get(prefix).map_or(&[], |number| &self.entries[*number as usize].slots)
    }

    /// Prefixes of rows in the cache.
    pub(super) fn live(&self) -> impl Iterator<Item = &[u8]> {
        self.entries.iter().filter(|entry| entry.live > 0).map(|entry| &entry.bytes[..])
    }

    pub(super) fn is_live(&self, prefix: &[u8]) -> bool {
        self.by_bytes.get(prefix).is_some_and(|number| self.entries[*number as usize].live > 0)
    }

    /// Notes that the cold store gets a row with this prefix.
    pub(super) fn goes_cold(&mut self, prefix: &[u8]) {
        if let Some(cold) = &mut self.cold
            && !cold.contains(prefix)
        {
            cold.insert(prefix.into());
        }
    }

    /// Notes that the cold store gets the row in this slot.
    pub(super) fn goes_cold_at(&mut self, slot: usize) {
        let bytes = &self.entries[self.places[slot].0 as usize].bytes;
        if let Some(cold) = &mut self.cold
            && !cold.contains(bytes)
        {
            cold.insert(bytes.clone());
        }
    }

    /// Whether the cold store may hold rows with this prefix.
    pub(super) fn may_be_cold(&self, prefix: &[u8]) -> bool {
        self.cold.as_ref().is_none_or(|cold| cold.contains(prefix))
    }

    pub(super) fn cold(&self) -> impl Iterator<Item = &[u8]> {
        self.cold.iter().flatten().map(|prefix| &prefix[..])
    }

    /// The cold store holds no row with this prefix.
    pub(super) fn left_cold(&mut self, prefix: &[u8]) {
        if let Some(cold) = &mut self.cold {
            cold.remove(prefix);
        }
    }
}
