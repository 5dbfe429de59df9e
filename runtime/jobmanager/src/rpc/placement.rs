//! Which TaskManager runs which slot.

use std::collections::BTreeMap;

/// Gives each of `parallelism` slots a TaskManager. A slot stays where it was, so that local copies of its state can be
/// used; the others go to where the most room is left, in a stable order. `None` if there is too little room.
pub(super) fn place(parallelism: u32, room: &BTreeMap<String, u32>, previous: &[String]) -> Option<Vec<String>> {
    let mut left = room.clone();
    let mut placed: Vec<Option<String>> = vec![None; parallelism as usize];
    for (slot, manager) in placed.iter_mut().zip(previous) {
        if let Some(left) = left.get_mut(manager).filter(|left| **left > 0) {
            *left -= 1;
            *slot = Some(manager.clone());
        }
    }
    for slot in placed.iter_mut().filter(|slot| slot.is_none()) {
        // The first of those with the most room: `max_by_key` would take the last.
        let (manager, left) = left.iter_mut().rev().max_by_key(|(_, left)| **left).filter(|(_, left)| **left > 0)?;
        *left -= 1;
        *slot = Some(manager.clone());
    }
    placed.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn room(slots: &[u32]) -> BTreeMap<String, u32> {
        slots.iter().enumerate().map(|(index, slots)| (format!("tm{index}"), *slots)).collect()
    }

    fn names(indices: &[usize]) -> Vec<String> {
        indices.iter().map(|index| format!("tm{index}")).collect()
    }

    #[test]
    fn slots_spread_over_the_task_managers() {
        assert_eq!(place(4, &room(&[2, 2]), &[]), Some(names(&[0, 1, 0, 1])));
        assert_eq!(place(2, &room(&[4, 4]), &[]), Some(names(&[0, 1])));
        assert_eq!(place(3, &room(&[1, 1]), &[]), None);
    }

    #[test]
    fn a_slot_stays_where_it_was_and_only_the_lost_ones_move() {
        assert_eq!(place(3, &room(&[2, 0, 2]), &names(&[0, 1, 2])), Some(names(&[0, 0, 2])));
        assert_eq!(place(4, &room(&[2, 2]), &names(&[1])), Some(names(&[1, 0, 0, 1])));
    }

    proptest! {
        #[test]
        fn no_task_manager_gets_more_than_its_room_and_room_is_always_found(
            slots in prop::collection::vec(0u32..4, 1..6),
            parallelism in 1u32..12,
            previous in prop::collection::vec(0usize..7, 0..12),
        ) {
            let room = room(&slots);
            let placed = place(parallelism, &room, &names(&previous));
            prop_assert_eq!(placed.is_some(), slots.iter().sum::<u32>() >= parallelism);
            for (manager, slots) in &room {
                let used = placed.iter().flatten().filter(|placed| *placed == manager).count();
                prop_assert!(used <= *slots as usize);
            }
            prop_assert!(placed.is_none_or(|placed| placed.len() == parallelism as usize));
        }
    }
}
