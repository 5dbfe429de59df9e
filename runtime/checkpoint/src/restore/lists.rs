//! Operator state: dealt out again by its mode.

use std::collections::{BTreeMap, BTreeSet};

use streamkeeper_types::snapshot::{ListMode, ListState};

type Items = Vec<Vec<u8>>;

/// Items by name for each of `parallelism` new subtasks, from one map for each old subtask.
///
/// With an unchanged parallelism split lists stay where they are. Otherwise the subtask that takes the first of a
/// list's remainder moves on from name to name, so that subtask 0 does not get every one.
pub(super) fn deal(old: &[&BTreeMap<String, ListState>], parallelism: usize) -> Vec<BTreeMap<String, Items>> {
    let mut new = vec![BTreeMap::new(); parallelism];
    let names: BTreeSet<&String> = old.iter().flat_map(|lists| lists.keys()).collect();
    let mut first_receiver = 0;
    for name in names {
        let copies: Vec<Option<&ListState>> = old.iter().map(|lists| lists.get(name)).collect();
        let Some(mode) = copies.iter().flatten().map(|list| list.mode).next() else { continue };
        for (index, items) in deal_one(mode, &copies, parallelism, &mut first_receiver).into_iter().enumerate() {
            new[index].insert(name.clone(), items);
        }
    }
    new
}

fn deal_one(
    mode: ListMode,
    copies: &[Option<&ListState>],
    parallelism: usize,
    first_receiver: &mut usize,
) -> Vec<Items> {
    let items_of = |copy: &Option<&ListState>| copy.map(|list| list.items.clone()).unwrap_or_default();
    match mode {
        ListMode::Union => {
            let all: Items = copies.iter().flat_map(items_of).collect();
            vec![all; parallelism]
        }
        ListMode::Broadcast => {
            // A subtask that finished or never registered the state has no copy.
            let copies: Vec<&ListState> = copies.iter().copied().flatten().collect();
            (0..parallelism).map(|i| copies[i % copies.len()].items.clone()).collect()
        }
        ListMode::Split if copies.len() == parallelism => copies.iter().map(items_of).collect(),
        ListMode::Split => {
            let all: Items = copies.iter().flat_map(items_of).collect();
            let (share, remainder) = (all.len() / parallelism, all.len() % parallelism);
            let mut all = all.into_iter();
            let dealt = (0..parallelism)
                .map(|i| {
                    let extra = (i + parallelism - *first_receiver) % parallelism < remainder;
                    all.by_ref().take(share + usize::from(extra)).collect()
                })
                .collect();
            *first_receiver = (*first_receiver + remainder) % parallelism;
            dealt
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(mode: ListMode, items: &[u8]) -> ListState {
        ListState { mode, items: items.iter().map(|item| vec![*item]).collect() }
    }

    fn check(mode: ListMode, old: &[(&str, &[u8])], parallelism: usize, expected: &[&[u8]]) {
        let old: Vec<BTreeMap<_, _>> =
            old.iter().map(|(n, items)| [((*n).to_owned(), list(mode, items))].into()).collect();
        let new = deal(&old.iter().collect::<Vec<_>>(), parallelism);
        let new: Vec<Vec<u8>> = new.iter().map(|lists| lists["s"].concat()).collect();
        assert_eq!(new, expected, "{mode:?} on {parallelism}");
    }

    #[test]
    fn split_lists_stay_or_are_dealt_out_evenly() {
        let old: [(&str, &[u8]); 2] = [("s", &[1, 2, 3, 4]), ("s", &[5])];
        check(ListMode::Split, &old, 2, &[&[1, 2, 3, 4], &[5]]);
        check(ListMode::Split, &old, 1, &[&[1, 2, 3, 4, 5]]);
        check(ListMode::Split, &old, 3, &[&[1, 2], &[3, 4], &[5]]);
        check(ListMode::Split, &old, 6, &[&[1], &[2], &[3], &[4], &[5], &[]]);
    }

    #[test]
    fn union_lists_reach_everybody_even_without_a_rescale() {
        check(ListMode::Union, &[("s", &[1]), ("s", &[2])], 2, &[&[1, 2], &[1, 2]]);
        check(ListMode::Union, &[("s", &[1]), ("s", &[2])], 1, &[&[1, 2]]);
    }

    #[test]
    fn broadcast_copies_go_round() {
        check(ListMode::Broadcast, &[("s", &[1]), ("s", &[1])], 3, &[&[1], &[1], &[1]]);
    }

    #[test]
    fn the_remainder_moves_on_from_name_to_name() {
        let one: BTreeMap<_, _> =
            ["a", "b", "c"].map(|name| (name.to_owned(), list(ListMode::Split, &[1]))).into_iter().collect();
        let new = deal(&[&one], 2);
        let sizes: Vec<Vec<usize>> = new.iter().map(|lists| lists.values().map(Vec::len).collect()).collect();
        assert_eq!(sizes, [[1, 0, 1], [0, 1, 0]]);
    }
}
