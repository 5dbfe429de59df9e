//! What a reign finds when it begins: the files of every checkpoint in its log, and what nobody names.

use streamkeeper_protocol::CheckpointKind;
use streamkeeper_storage::{Storage, StorageError};
use streamkeeper_types::{CheckpointId, FileRef, Result};

use crate::{JobState, Manifest, files};

/// Files of the job's folder, by who uses them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Inventory {
    /// Files of each checkpoint in the log, replaced ones included as far as their manifests still exist. Savepoints
    /// are not read: their files are theirs alone, and their owners may have moved or removed them.
    pub files: Vec<(CheckpointId, Vec<FileRef>)>,
    /// Paths that no snapshot will ever name: uploads of checkpoints that did not complete. Delete them.
    pub orphans: Vec<String>,
}

impl Inventory {
    /// Reads the manifests. `listed` is what [`JobLog::open`](crate::log::JobLog::open) returned beside the log.
    ///
    /// # Errors
    /// A checkpoint that is retained cannot be read, or storage fails.
    pub fn take(storage: &dyn Storage, state: &JobState, listed: &[String]) -> Result<Self> {
        let mut manifests = Vec::new();
        for completed in state.completed.iter().filter(|completed| completed.kind == CheckpointKind::Checkpoint) {
            match files::read_completed(storage, completed) {
                Ok(manifest) => manifests.push(manifest),
                // It was given up by a restore from elsewhere, and nothing of it will be used.
                Err(error) if completed.id < state.floor => {
                    tracing::warn!(checkpoint = completed.id.0, %error, "an old checkpoint cannot be read");
                }
                Err(error) => return Err(error),
            }
        }
        for discard in &state.discards {
            match storage.get(&discard.manifest) {
                Ok(bytes) => match Manifest::decode(&discard.manifest, &bytes) {
                    Ok(manifest) => manifests.push(manifest),
                    // What it alone named is among the orphans then, and goes with them.
                    Err(error) => tracing::warn!(manifest = discard.manifest, %error, "a replaced checkpoint is torn"),
                },
                // Removed but for its entry in the log; the manifest goes last.
                Err(StorageError::NotFound { .. }) => {}
                Err(error) => return Err(error.into()),
            }
        }
        let orphans = files::orphans(listed, state, &manifests);
        let files = manifests.iter().map(|m| (m.checkpoint, m.files().cloned().collect())).collect();
        Ok(Self { files, orphans })
    }
}
