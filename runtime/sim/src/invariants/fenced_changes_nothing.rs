//! B7, R25: once a reign has begun, nothing that a lower one still does reaches what the job stands on.

use std::collections::BTreeSet;

use streamkeeper_checkpoint::{JobState, files};
use streamkeeper_storage::Storage;
use streamkeeper_types::Generation;

use super::Verdict;

/// The files of the snapshots of the newest reign.
#[derive(Debug, Default)]
pub struct FencedChangesNothing {
    newest: Generation,
    files: BTreeSet<String>,
}

impl FencedChangesNothing {
    /// The log has this state now, by this reign.
    pub fn stands_on(&mut self, generation: Generation, storage: &dyn Storage, state: &JobState) {
        if generation < self.newest {
            return;
        }
        self.newest = generation;
        self.files.clear();
        for completed in &state.completed {
            self.files.insert(completed.manifest.clone());
            // One that is not whole is another invariant's to tell.
            let Ok(manifest) = files::read_completed(storage, completed) else { continue };
            self.files.extend(manifest.files().map(|file| file.path.clone()));
        }
    }

    /// A reign removes a file.
    ///
    /// # Errors
    /// A snapshot of the newest reign needs it.
    pub fn deleted(&self, generation: Generation, path: &str) -> Verdict {
        if !self.files.contains(path) {
            return Ok(());
        }
        Err(format!("generation {generation} removed `{path}`, on which generation {} stands", self.newest))
    }
}
