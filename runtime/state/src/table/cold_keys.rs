//! Which keys the cold store may hold, told by their hashes: a new key then costs a look into memory instead of one
//! into the store.

use std::sync::Arc;

use crate::{MemoryBudget, budget::FilterReservation};

/// Each layer has so many times the bytes of the one before. Every look-up asks all of them, so few are better.
const GROWTH: usize = 4;

/// The first layer has this part of what all filters may have: three layers are then all of it.
const FIRST_LAYER_DIVISOR: usize = 1 + GROWTH + GROWTH * GROWTH;

/// A key has a bit in each of a block's eight words. At 10 bits a key, a layer takes one absent key in 80 for present.
const BITS_PER_KEY: usize = 10;

type Block = [u32; 8];

/// Odd multipliers, one for each word of a block, that spread a hash over its bits.
const MULTIPLIERS: Block =
    [0x9e37_79b1, 0x85eb_ca77, 0xc2b2_ae3d, 0x27d4_eb2f, 0x1656_67b1, 0xd3a2_646d, 0xfd70_46c5, 0xb55a_4f09];

/// A Bloom filter that grows by layers until the filters of all tables have their share of the budget.
#[derive(Debug)]
pub(super) enum ColdKeys {
    /// Each key that the cold store alone holds is in one of the layers.
    Listed(Vec<Layer>),
    /// The cold store came with rows, or has too many: it may hold any key.
    Any,
}

#[derive(Debug)]
pub(super) struct Layer {
    blocks: Vec<Block>,
    /// Keys that it can still take.
    room: usize,
    reservation: FilterReservation,
}

impl ColdKeys {
    /// Those of an empty cold store.
    pub(super) fn none() -> Self {
        Self::Listed(Vec::new())
    }

    /// Whether a key with this hash may be in the cold store.
    #[inline]
    pub(super) fn may_hold(&self, hash: u64) -> bool {
        match self {
            Self::Listed(layers) => layers.iter().any(|layer| layer.may_hold(hash)),
            Self::Any => true,
        }
    }

    /// Notes that a key with this hash leaves the cache for the cold store.
    pub(super) fn add(&mut self, hash: u64, budget: &Arc<MemoryBudget>) {
        let Self::Listed(layers) = self else { return };
        if layers.iter().any(|layer| layer.may_hold(hash)) {
            return;
        }
        if layers.last().is_none_or(|layer| layer.room == 0) {
            let first = budget.filter_limit() / FIRST_LAYER_DIVISOR;
            let bytes = layers.last().map_or(first, |layer| layer.reservation.bytes() * GROWTH);
            match budget.reserve_filter(bytes) {
                Some(reservation) => layers.push(Layer::new(reservation)),
                None => *self = Self::Any,
            }
        }
        if let Self::Listed(layers) = self
            && let Some(layer) = layers.last_mut()
        {
            layer.add(hash);
        }
    }

    /// Bytes in memory.
    pub(super) fn bytes(&self) -> usize {
        match self {
            Self::Listed(layers) => layers.iter().map(|layer| layer.reservation.bytes()).sum(),
            Self::Any => 0,
        }
    }
}

impl Layer {
    fn new(reservation: FilterReservation) -> Self {
        let blocks = (reservation.bytes() / size_of::<Block>()).max(1);
        Self { blocks: vec![[0; 8]; blocks], room: blocks * size_of::<Block>() * 8 / BITS_PER_KEY, reservation }
    }

    /// The block of a key, and what chooses its bits there. Key groups are hashes modulo a number, so that a subtask's
    /// hashes are not spread evenly until they are mixed once more.
    #[inline]
    fn place(&self, hash: u64) -> (usize, u32) {
        let mixed = hash.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let block = ((mixed >> 32) * self.blocks.len() as u64) >> 32;
        (block as usize, (mixed >> 8) as u32 ^ (hash >> 32) as u32)
    }

    #[inline]
    fn may_hold(&self, hash: u64) -> bool {
        let (block, bits) = self.place(hash);
        self.blocks[block].iter().zip(MULTIPLIERS).all(|(word, by)| word & bit(bits, by) != 0)
    }

    fn add(&mut self, hash: u64) {
        let (block, bits) = self.place(hash);
        for (word, by) in self.blocks[block].iter_mut().zip(MULTIPLIERS) {
            *word |= bit(bits, by);
        }
        self.room = self.room.saturating_sub(1);
    }
}

/// The bit of a word that a key has.
#[inline]
fn bit(bits: u32, multiplier: u32) -> u32 {
    1 << (bits.wrapping_mul(multiplier) >> 27)
}

#[cfg(test)]
mod tests {
    use streamkeeper_types::key_group;

    use super::*;

    fn hash(key: u32) -> u64 {
        key_group::hash(&key.to_le_bytes())
    }

    #[test]
    fn added_keys_are_never_missed_and_others_seldom_taken_for_present() {
        let budget = MemoryBudget::new(8 << 20);
        let mut keys = ColdKeys::none();
        assert!(!keys.may_hold(hash(0)));
        (0..300_000).for_each(|key| keys.add(hash(key), &budget));
        assert!((0..300_000).all(|key| keys.may_hold(hash(key))));
        let wrong = (1_000_000..1_100_000).filter(|key| keys.may_hold(hash(*key))).count();
        assert!(wrong < 5000, "{wrong} of 100,000 absent keys");
    }

    #[test]
    fn keys_of_one_key_group_are_spread_as_well() {
        let budget = MemoryBudget::new(8 << 20);
        let of_group = |from: u32| (from..).map(hash).filter(|hash| hash % 128 == 5).take(20_000);
        let mut keys = ColdKeys::none();
        of_group(0).for_each(|hash| keys.add(hash, &budget));
        let wrong = of_group(1 << 30).filter(|hash| keys.may_hold(*hash)).count();
        assert!(wrong < 600, "{wrong} of 20,000 absent keys");
    }

    #[test]
    fn a_filter_that_would_exceed_the_share_of_all_filters_gives_its_memory_back_and_rules_nothing_out() {
        let budget = MemoryBudget::new(64 << 10);
        let (mut first, mut second) = (ColdKeys::none(), ColdKeys::none());
        second.add(hash(0), &budget);
        let mut key = 0;
        while first.bytes() > 0 || key == 0 {
            first.add(hash(key), &budget);
            assert!(first.bytes() + second.bytes() <= budget.filter_limit());
            key += 1;
        }
        assert!(first.may_hold(hash(u32::MAX)));
        assert!(budget.reserve_filter(budget.filter_limit() - second.bytes()).is_some());
    }
}
