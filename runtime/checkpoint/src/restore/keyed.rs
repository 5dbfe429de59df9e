//! Keyed state: intersection of old handles with new key-group ranges.

use streamkeeper_types::{KeyGroupRange, snapshot::KeyedHandle};

/// The parts of `handles` that lie in `range`. Files keep their identity; only what counts of them gets narrower, so a
/// rescale moves no data and the next checkpoint may still refer to them.
pub(super) fn intersect<'a>(
    handles: impl IntoIterator<Item = &'a KeyedHandle>,
    range: KeyGroupRange,
) -> Vec<KeyedHandle> {
    handles.into_iter().filter_map(|handle| narrow(handle, range)).collect()
}

fn narrow(handle: &KeyedHandle, range: KeyGroupRange) -> Option<KeyedHandle> {
    let common = handle.range.intersect(&range);
    if common.is_empty() {
        return None;
    }
    let mut narrowed = handle.clone();
    narrowed.range = common;
    for table in &mut narrowed.tables {
        for base in &mut table.base {
            base.visible = base.visible.intersect(&common);
        }
        table.base.retain(|base| !base.visible.is_empty());
    }
    Some(narrowed)
}
