//! A TaskManager never runs more subtasks of a vertex than it has slots.

use std::collections::BTreeMap;

use streamkeeper_types::AttemptId;

use super::Verdict;

/// Checks the attempts that live on one TaskManager.
///
/// # Errors
/// More of one vertex than slots.
pub fn slots_suffice(slots: u32, live: impl Iterator<Item = AttemptId>) -> Verdict {
    let mut used: BTreeMap<_, Vec<AttemptId>> = BTreeMap::new();
    live.for_each(|attempt| used.entry(attempt.subtask.vertex).or_default().push(attempt));
    match used.values().find(|attempts| attempts.len() > slots as usize) {
        Some(attempts) => Err(format!("{attempts:?} run at once in {slots} slots")),
        None => Ok(()),
    }
}
