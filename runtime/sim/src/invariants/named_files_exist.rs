//! R20: every file that a completed snapshot names exists.

use streamkeeper_checkpoint::{JobState, files};
use streamkeeper_storage::Storage;

use super::Verdict;

/// Checks all snapshots that the log holds.
///
/// # Errors
/// A manifest or file is missing.
pub fn named_files_exist(storage: &dyn Storage, state: &JobState) -> Verdict {
    for completed in &state.completed {
        let fault = |error: &dyn std::fmt::Display| format!("checkpoint {} is not whole: {error}", completed.id);
        let manifest = files::read_completed(storage, completed).map_err(|error| fault(&error))?;
        files::check_files(storage, manifest.files()).map_err(|error| fault(&error))?;
    }
    Ok(())
}
