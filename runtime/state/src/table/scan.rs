//! Rows by prefix: slots of the cache merged with the cold store, chunk by chunk.

use std::ops::ControlFlow;

use streamkeeper_types::{Error, KeyGroup, KeyGroupRange, Result, key_group};

use super::{Slot, Table, flag};
use crate::{ColdRows, ColdStore, KeyPrefix};

/// In which order a scan gives rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ScanOrder {
    /// Whatever is cheapest.
    Any,
    /// By row bytes: by key group, and within one by the key columns.
    Key,
}

/// A scan under way; see [`Table::scan`].
#[derive(Debug)]
pub struct Scan {
    prefix: KeyPrefix,
    source: Source,
    generation: u64,
    chunks: usize,
}

#[derive(Debug)]
enum Source {
    /// Slots as they were at the start: the cold store holds no row with the prefix.
    Cache { slots: Vec<u32>, at: usize },
    /// Slots sorted by key, and the cold store behind the last key given.
    Merge { slots: Vec<u32>, at: usize, last: Option<Vec<u8>>, done: bool },
}

impl Table {
    /// Begins a scan over all rows whose key begins with `prefix`; [`Self::next_chunk`] gives them. Rows that begin
    /// during the scan may or may not come. No [`Self::maintain`] may lie between its chunks.
    #[must_use]
    pub fn scan(&self, prefix: KeyPrefix, order: ScanOrder) -> Scan {
        let slots = self.slots_with(&prefix, None);
        let source = if self.may_be_cold(&prefix) {
            Source::Merge { slots: self.sorted(slots), at: 0, last: None, done: false }
        } else if order == ScanOrder::Key {
            Source::Cache { slots: self.sorted(slots), at: 0 }
        } else {
            Source::Cache { slots, at: 0 }
        };
        Scan { prefix, source, generation: self.generation, chunks: 0 }
    }

    /// Replaces `slots` by the next rows, at most `limit`; `false` and none at the end. From the second chunk on, the
    /// slots of earlier chunks and look-ups in this table become invalid: a scan may be larger than the cache.
    ///
    /// # Errors
    /// `INTERNAL` if `maintain` was called since the scan began; storage errors.
    pub fn next_chunk(&mut self, scan: &mut Scan, limit: usize, slots: &mut Vec<Slot>) -> Result<bool> {
        slots.clear();
        scan.chunks += 1;
        if let Source::Cache { slots: cached, at } = &mut scan.source {
            if scan.generation != self.generation {
                return Err(Error::internal("`maintain` was called while a scan was under way"));
            }
            while slots.len() < limit && *at < cached.len() {
                let slot = Slot(cached[*at]);
                *at += 1;
                if self.reads(slot) {
                    slots.push(slot);
                }
            }
            return Ok(!slots.is_empty());
        }
        if scan.chunks > 1 {
            self.reservation.set(self.cached_bytes());
            self.keep_budget()?;
        }
        while slots.is_empty() && self.merge_step(scan, limit, slots)? {}
        Ok(!slots.is_empty())
    }

    /// Adds the rows among the next keys; `false` at the end.
    fn merge_step(&mut self, scan: &mut Scan, limit: usize, out: &mut Vec<Slot>) -> Result<bool> {
        let Source::Merge { slots, at, last, done } = &mut scan.source else { return Ok(false) };
        if *done {
            return Ok(false);
        }
        if scan.generation != self.generation {
            scan.generation = self.generation;
            *slots = self.sorted(self.slots_with(&scan.prefix, last.as_deref()));
            *at = 0;
        }
        let cold = self.cold_rows(&scan.prefix, last.as_deref(), limit)?;
        let cold_ended = cold.len() < limit;
        let mut cold = cold.iter().peekable();
        let mut left = limit;
        while left > 0 {
            left -= 1;
            let cached = slots.get(*at).copied();
            let cached_key = cached.map(|slot| self.keys.get(slot as usize));
            let from_cache = match (cached_key, cold.peek()) {
                (Some(_), None) if !cold_ended => break,
                (Some(_), None) => true,
                (Some(cached), Some((cold, _))) => cached <= *cold,
                (None, Some(_)) => false,
                (None, None) => {
                    *done = cold_ended;
                    break;
                }
            };
            let slot = match cached.filter(|_| from_cache) {
                Some(slot) => {
                    *at += 1;
                    let key = self.keys.get(slot as usize);
                    cold.next_if(|(cold, _)| *cold == key);
                    slot
                }
                None => {
                    let Some((key, Some(value))) = cold.next() else { continue };
                    self.cold_slot(key, value)?
                }
            };
            *last = Some(self.keys.get(slot as usize).to_vec());
            if self.reads(Slot(slot)) {
                out.push(Slot(slot));
            }
        }
        Ok(!*done)
    }

    /// The slot of a row that a scan found in the cold store.
    fn cold_slot(&mut self, key: &[u8], value: &[u8]) -> Result<u32> {
        self.group_of(key)?;
        let hash = key_group::hash(&key[2..]);
        if let Some(slot) = self.find(key, hash) {
            return Ok(slot);
        }
        let slot = self.insert(key, hash);
        self.fill(slot, value)?;
        Ok(slot)
    }

    /// Whether a scan gives the row, which counts as a read of it.
    fn reads(&mut self, slot: Slot) -> bool {
        if !self.exists(slot) {
            return false;
        }
        if self.spec.ttl.is_some() {
            if self.is_expired(slot.index()) {
                self.remove(slot);
                return false;
            }
            self.touch(slot.index());
        }
        true
    }

    /// The scan prefixes of which rows exist, for tables whose scanned columns lie before the hashed ones: after a
    /// restore, the open windows, say.
    ///
    /// # Errors
    /// Storage errors.
    pub fn prefixes(&mut self) -> Result<Vec<KeyPrefix>> {
        let Some(prefixes) = &self.prefixes else { return Ok(Vec::new()) };
        let mut found: Vec<Box<[u8]>> = prefixes.live().map(Into::into).collect();
        let cold: Vec<Box<[u8]>> = prefixes.cold().filter(|prefix| !prefixes.is_live(prefix)).map(Into::into).collect();
        let mut slots = Vec::new();
        for bytes in cold {
            let mut scan = self.scan(KeyPrefix { group: None, bytes: bytes.clone() }, ScanOrder::Key);
            if self.next_chunk(&mut scan, 64, &mut slots)? {
                found.push(bytes);
            } else if let Some(prefixes) = &mut self.prefixes {
                prefixes.left_cold(&bytes);
            }
        }
        found.sort_unstable();
        Ok(found.into_iter().map(|bytes| KeyPrefix { group: None, bytes }).collect())
    }

    /// Learns from the cold store which prefixes it holds rows of, by skipping from one to the next.
    pub(crate) fn discover_prefixes(&mut self) -> Result<()> {
        let Some(cold) = self.cold.clone().filter(|_| self.spec.key.tracks_prefixes()) else { return Ok(()) };
        for group in self.range.iter() {
            let (mut from, to) = bounds(Some(group), &[], self.range);
            while let Some(prefix) = self.first_prefix(cold.as_ref(), &from, &to)? {
                from = bounds(Some(group), &prefix, self.range).1;
                if let Some(prefixes) = &mut self.prefixes {
                    prefixes.goes_cold(&prefix);
                }
            }
        }
        Ok(())
    }

    fn first_prefix(&self, cold: &dyn ColdStore, from: &[u8], to: &[u8]) -> Result<Option<Box<[u8]>>> {
        let mut first = None;
        cold.scan(self.number, from, to, &mut |key, _| {
            first = self.spec.key.scan_prefix(key).map(Into::into);
            ControlFlow::Break(())
        })?;
        Ok(first)
    }

    fn may_be_cold(&self, prefix: &KeyPrefix) -> bool {
        let tracked = self.prefixes.as_ref().filter(|_| !prefix.bytes.is_empty());
        self.cold.is_some() && tracked.is_none_or(|prefixes| prefixes.may_be_cold(&prefix.bytes))
    }

    /// Slots of the cache whose keys have the prefix and come after `after`.
    fn slots_with(&self, prefix: &KeyPrefix, after: Option<&[u8]>) -> Vec<u32> {
        let later = |slot: &u32| after.is_none_or(|after| self.keys.get(*slot as usize) > after);
        match &self.prefixes {
            Some(prefixes) if !prefix.bytes.is_empty() => {
                prefixes.slots(&prefix.bytes).iter().copied().filter(later).collect()
            }
            _ => {
                let used = (0..self.flags.len() as u32).filter(|s| self.flags[*s as usize] & flag::USED != 0);
                used.filter(later).collect()
            }
        }
    }

    fn sorted(&self, mut slots: Vec<u32>) -> Vec<u32> {
        slots.sort_unstable_by(|a, b| self.keys.get(*a as usize).cmp(self.keys.get(*b as usize)));
        slots
    }

    /// Up to `limit` rows of the cold store with the prefix, after the key `after`.
    fn cold_rows(&self, prefix: &KeyPrefix, after: Option<&[u8]>, limit: usize) -> Result<ColdRows> {
        let mut rows = ColdRows::new();
        let Some(cold) = &self.cold else { return Ok(rows) };
        let read = |from: &[u8], to: &[u8], rows: &mut ColdRows| {
            let from = match after {
                Some(after) if after >= from => [after, &[0]].concat(),
                _ => from.to_vec(),
            };
            if from.as_slice() >= to {
                return Ok(());
            }
            cold.scan(self.number, &from, to, &mut |key, value| {
                rows.put(key, |out| out.extend_from_slice(value));
                if rows.len() < limit { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
            })
        };
        if prefix.group.is_some() || prefix.bytes.is_empty() {
            let (from, to) = bounds(prefix.group, &prefix.bytes, self.range);
            read(&from, &to, &mut rows)?;
            return Ok(rows);
        }
        let first = after.and_then(|key| key.first_chunk::<2>()).map_or(0, |group| u16::from_be_bytes(*group));
        for group in self.range.iter().filter(|group| group.0 >= first) {
            let (from, to) = bounds(Some(group), &prefix.bytes, self.range);
            read(&from, &to, &mut rows)?;
            if rows.len() >= limit {
                break;
            }
        }
        Ok(rows)
    }
}

/// The half-open range of row bytes that have the prefix: in one key group, or all of `range`.
fn bounds(group: Option<KeyGroup>, prefix: &[u8], range: KeyGroupRange) -> (Vec<u8>, Vec<u8>) {
    let Some(group) = group else { return table_bounds(range) };
    let from = [&group.0.to_be_bytes(), prefix].concat();
    let mut to = from.clone();
    // The next byte string that does not begin with the prefix: groups are below 2^15, so it always exists.
    while let Some(last) = to.pop() {
        if last < 0xff {
            to.push(last + 1);
            break;
        }
    }
    (from, to)
}

/// The half-open range of row bytes that lie in the key groups.
pub(crate) fn table_bounds(range: KeyGroupRange) -> (Vec<u8>, Vec<u8>) {
    let end = u16::try_from(range.end()).unwrap_or(u16::MAX);
    (range.start().to_be_bytes().to_vec(), end.to_be_bytes().to_vec())
}
