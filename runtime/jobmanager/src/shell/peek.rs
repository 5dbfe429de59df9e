//! Reads a job's log without taking the job over.

use std::collections::BTreeMap;

use streamkeeper_checkpoint::{
    JobState,
    log::{Record, entry_path, parse_entry},
};
use streamkeeper_storage::Storage;
use streamkeeper_types::{Generation, Result};

/// What the log says, without claim or seal: good enough for what never changes again, such as that a job finished.
/// `None` if there is no log, or if a reign is just at work on it.
///
/// # Errors
/// Storage errors, and records that cannot be read.
pub fn peek(storage: &dyn Storage) -> Result<Option<JobState>> {
    let mut numbers: BTreeMap<Generation, Vec<u64>> = BTreeMap::new();
    for object in storage.list("log")? {
        if let Some((generation, number)) = parse_entry(&object.path) {
            numbers.entry(generation).or_default().push(number);
        }
    }
    // A generation with nothing but its claim has not started; what counts is in the one before.
    for (generation, mut numbers) in numbers.into_iter().rev() {
        numbers.sort_unstable();
        let mut state = None;
        for number in numbers {
            let path = entry_path(generation, number);
            let Ok(bytes) = storage.get(&path) else { return Ok(None) };
            match Record::decode(&path, &bytes)? {
                Record::Base(base) => state = Some(base),
                record => state.iter_mut().for_each(|state: &mut JobState| state.apply(&record)),
            }
        }
        if state.is_some() {
            return Ok(state);
        }
    }
    Ok(None)
}
