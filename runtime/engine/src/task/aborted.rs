//! The checkpoints that were aborted before this task met them (A2).
//!
//! Bounded: of the highest aborts a few are remembered one by one; ids far below the highest count as aborted.

use std::collections::BTreeSet;

use streamkeeper_types::CheckpointId;

/// How many aborts are remembered one by one. More pending checkpoints than this never exist at once.
const REMEMBERED: usize = 128;

#[derive(Debug, Default)]
pub(super) struct AbortedIds {
    ids: BTreeSet<CheckpointId>,
    /// Every id at or below it counts as aborted.
    floor: Option<CheckpointId>,
}

impl AbortedIds {
    pub(super) fn insert(&mut self, id: CheckpointId) {
        self.ids.insert(id);
        while self.ids.len() > REMEMBERED {
            self.floor = self.ids.pop_first().max(self.floor);
        }
    }

    pub(super) fn contains(&self, id: CheckpointId) -> bool {
        self.floor.is_some_and(|floor| id <= floor) || self.ids.contains(&id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a2_the_set_of_aborts_is_bounded_and_old_ids_count_as_aborted() {
        let mut aborted = AbortedIds::default();
        aborted.insert(CheckpointId(7));
        assert!(aborted.contains(CheckpointId(7)));
        assert!(!aborted.contains(CheckpointId(6)));
        for id in 1000..1000 + REMEMBERED as u64 {
            aborted.insert(CheckpointId(id));
        }
        assert!(aborted.contains(CheckpointId(6)), "far below the highest");
        assert_eq!(aborted.ids.len(), REMEMBERED);
    }
}
