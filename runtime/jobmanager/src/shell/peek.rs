//! Reads a job's log without taking the job over.

use std::collections::BTreeMap;

use streamkeeper_checkpoint::{
    JobResult, JobState,
    log::{Record, entry_path, parse_entry},
};
use streamkeeper_storage::Storage;
use streamkeeper_types::{Generation, Result};

use super::JobOutcome;

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

/// How the job ended under the leader that was just there; `None` if it is to go on.
///
/// # Errors
/// As [`peek`].
pub fn ended(storage: &dyn Storage) -> Result<Option<JobOutcome>> {
    let Some(state) = peek(storage)? else { return Ok(None) };
    Ok(match state.result {
        None => None,
        Some(JobResult::Finished { .. }) => Some(JobOutcome::AlreadyFinished),
        Some(JobResult::Cancelled { .. }) => Some(JobOutcome::Cancelled),
        Some(JobResult::Stopped { savepoint, .. }) => {
            state.completed.into_iter().find(|taken| taken.id == savepoint).map(|s| JobOutcome::Stopped(Box::new(s)))
        }
    })
}

/// Where the newest claimant of the job can be reached; it leads, or led. `None` if nobody ever claimed it, or the claimant
/// runs everything in its own process.
///
/// # Errors
/// Storage errors, and a claim that cannot be read.
pub fn leader(storage: &dyn Storage) -> Result<Option<String>> {
    let listed = storage.list("log")?;
    let Some(newest) = listed.iter().filter_map(|object| parse_entry(&object.path)).map(|(g, _)| g).max() else {
        return Ok(None);
    };
    let path = entry_path(newest, 0);
    let Record::Claim { instance, .. } = Record::decode(&path, &storage.get(&path)?)? else { return Ok(None) };
    Ok(instance.split_once('@').map(|(_, address)| address.to_owned()))
}
