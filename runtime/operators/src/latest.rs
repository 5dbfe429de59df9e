//! The latest row of each key within a batch.

use hashbrown::HashMap;
use streamkeeper_state::Slot;

/// Follows the keys of a batch, given by their slots in state; its buffer is used again.
#[derive(Debug, Default)]
pub(crate) struct Latest {
    rows: HashMap<Slot, u32>,
}

impl Latest {
    /// Forgets the batch before.
    pub(crate) fn begin(&mut self) {
        self.rows.clear();
    }

    /// The latest row of the key, if the batch had one.
    pub(crate) fn row(&self, slot: Slot) -> Option<u32> {
        self.rows.get(&slot).copied()
    }

    /// `row` is the key's latest from now on. Returns the one before.
    pub(crate) fn replace(&mut self, slot: Slot, row: u32) -> Option<u32> {
        self.rows.insert(slot, row)
    }

    /// The latest row of each key of the batch, in any order.
    pub(crate) fn rows(&self) -> impl Iterator<Item = (Slot, u32)> {
        self.rows.iter().map(|(slot, row)| (*slot, *row))
    }
}
