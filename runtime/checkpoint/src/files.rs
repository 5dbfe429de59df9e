//! Reading, writing and checking the objects of a snapshot.

use std::collections::HashSet;

use bytes::Bytes;
use streamkeeper_storage::{PutMode, PutOutcome, Storage, StorageError, StorageResult};
use streamkeeper_types::{Code, Error, FileRef, Result};

use crate::{CompletedCheckpoint, JobState, Manifest, manifest};

/// Folder for savepoints. Nothing below it is ever removed by itself.
pub const SAVEPOINTS: &str = "savepoints";

/// Folder of a checkpoint's private files.
#[must_use]
pub fn checkpoint_folder(id: streamkeeper_types::CheckpointId) -> String {
    format!("chk-{id}")
}

/// Path of the manifest in a snapshot's folder.
#[must_use]
pub fn manifest_path(folder: &str) -> String {
    format!("{folder}/{}", manifest::FILE_NAME)
}

/// Writes a manifest, create-if-absent.
///
/// # Errors
/// [`StorageError::Unknown`] if nobody knows whether it is there; [`StorageError::Other`] if it surely is not, or if
/// another one has its path.
pub fn write_manifest(storage: &dyn Storage, path: &str, bytes: Bytes) -> StorageResult<()> {
    match storage.put(path, bytes.clone(), PutMode::Create) {
        Ok(PutOutcome::Done) => return Ok(()),
        Ok(PutOutcome::Exists) => {}
        Err(StorageError::Unknown(error)) => {
            tracing::warn!(path, %error, "no answer to the write of a manifest; reading it back");
        }
        Err(error) => return Err(error),
    }
    match storage.get(path) {
        Ok(found) if found == bytes => Ok(()),
        Ok(_) => Err(StorageError::Other(
            Error::new(Code::Storage, format!("another manifest lies at `{path}`"))
                .way_out("choose another name for the savepoint"),
        )),
        Err(StorageError::NotFound { .. } | StorageError::Other(_) | StorageError::Unknown(_)) => Err(
            StorageError::Unknown(Error::new(Code::Storage, format!("`{path}`: nobody knows whether it was written"))),
        ),
    }
}

/// Reads the manifest of a completed checkpoint and checks that it is the one that the log names.
///
/// # Errors
/// `SNAPSHOT_CORRUPT` if it is missing or another one, those of [`Manifest::decode`], or storage errors. Never a reason
/// to take an older checkpoint (R33).
pub fn read_completed(storage: &dyn Storage, completed: &CompletedCheckpoint) -> Result<Manifest> {
    let bytes = read(storage, &completed.manifest)?;
    if manifest::checksum(&bytes) != completed.checksum {
        let cause = format!("`{}` is not the manifest that checkpoint {} wrote", completed.manifest, completed.id);
        return Err(Error::new(Code::SnapshotCorrupt, cause)
            .way_out("restore the file from a copy, or name another snapshot with --restore"));
    }
    Manifest::decode(&completed.manifest, &bytes)
}

/// Reads the manifest of a snapshot's folder.
///
/// # Errors
/// As [`read_completed`].
pub fn read_manifest(storage: &dyn Storage, folder: &str) -> Result<Manifest> {
    let path = manifest_path(folder.trim_end_matches('/'));
    Manifest::decode(&path, &read(storage, &path)?)
}

fn read(storage: &dyn Storage, path: &str) -> Result<Bytes> {
    storage.get(path).map_err(|error| match error {
        StorageError::NotFound { .. } => Error::new(Code::SnapshotCorrupt, format!("the manifest `{path}` is missing"))
            .way_out("restore the file from a copy, or name another snapshot with --restore"),
        error => error.into(),
    })
}

/// Checks that every file of the snapshot is there with its size, without reading it.
///
/// # Errors
/// `SNAPSHOT_CORRUPT` names the first file that is missing or has another size.
pub fn check_files<'a>(storage: &dyn Storage, files: impl IntoIterator<Item = &'a FileRef>) -> Result<()> {
    let mut seen = HashSet::new();
    for file in files.into_iter().filter(|file| seen.insert(file.path.as_str())) {
        let found = storage.head(&file.path)?.map(|meta| meta.size);
        if found != Some(file.size) {
            let found =
                found.map_or("is missing".to_owned(), |size| format!("has {size} instead of {} bytes", file.size));
            return Err(Error::new(Code::SnapshotCorrupt, format!("`{}` {found}", file.path))
                .way_out("restore the file from a copy, or name another snapshot with --restore"));
        }
    }
    Ok(())
}

/// Files that no snapshot in `state` names, out of what lay in the job's folder when the reign began: uploads of
/// checkpoints that never completed. `manifests` are those of all entries in `state`, discards included as far as they
/// can be read.
///
/// Safe because every lower reign was sealed before the listing and no higher one had begun: nobody will name them.
#[must_use]
pub fn orphans(listed: &[String], state: &JobState, manifests: &[Manifest]) -> Vec<String> {
    let mut named: HashSet<&str> = manifests.iter().flat_map(Manifest::files).map(|file| file.path.as_str()).collect();
    named.extend(state.completed.iter().map(|completed| completed.manifest.as_str()));
    named.extend(state.discards.iter().map(|discard| discard.manifest.as_str()));
    let ours = |path: &str| path.starts_with("chk-") || path.starts_with("shared/");
    listed.iter().filter(|path| ours(path) && !named.contains(path.as_str())).cloned().collect()
}
