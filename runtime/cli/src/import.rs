//! Brings a snapshot that `--restore` names into the job's folder, where restoring finds it.

use std::path::{Path, PathBuf};

use bytes::Bytes;
use streamkeeper_checkpoint::{Manifest, files, manifest};
use streamkeeper_storage::{PutMode, PutOutcome, Storage, open};
use streamkeeper_types::{Code, Error, Result};

/// Path of the snapshot's folder within the job's folder; a snapshot from elsewhere, on this machine or under the URL of a
/// storage, is copied there under its own path.
///
/// # Errors
/// `FILE_UNREADABLE` if nothing is found under that name, `SNAPSHOT_CORRUPT` for files that are missing or torn, storage
/// errors.
pub fn into_job(name: &str, base_dir: &Path, job: &dyn Storage) -> Result<String> {
    for folder in [name.to_owned(), format!("{}/{name}", files::SAVEPOINTS)] {
        let valid = !folder.starts_with('/') && !folder.contains("..");
        if valid && job.head(&files::manifest_path(&folder)).is_ok_and(|found| found.is_some()) {
            return Ok(folder);
        }
    }
    let given = name.strip_prefix("file://").unwrap_or(name).trim_end_matches('/');
    if let Some((parent, folder)) = given.rsplit_once('/').filter(|_| given.contains("://")) {
        // Files of a checkpoint lie around its folder, those of a savepoint in it.
        return copy_remote(open(parent, base_dir)?.as_ref(), folder, job);
    }
    let candidates = [base_dir.join(given), PathBuf::from(given)];
    let Some(folder) = candidates.iter().find(|path| path.join(manifest::FILE_NAME).is_file()) else {
        return Err(Error::new(Code::FileUnreadable, format!("no snapshot is found under `{name}`"))
            .way_out("give the folder that holds `_metadata`; `streamkeeper state list <job's folder>` shows them"));
    };
    copy(folder, job)
}

/// The manifest in a snapshot's folder of this machine.
///
/// # Errors
/// `FILE_UNREADABLE`, or those of [`Manifest::decode`] with the file's path.
pub fn read_manifest(folder: &Path) -> Result<Manifest> {
    let path = folder.join(manifest::FILE_NAME);
    let bytes = std::fs::read(&path).map_err(|e| {
        Error::io(Code::FileUnreadable, path.display(), &e)
            .way_out("name a snapshot's folder: `streamkeeper state list <job's folder>` shows them")
    })?;
    Manifest::decode(&path.display().to_string(), &bytes)
}

/// Copies manifest and files to the paths that the manifest names, the manifest last.
fn copy(folder: &Path, job: &dyn Storage) -> Result<String> {
    let folder = folder.canonicalize().map_err(|e| Error::io(Code::FileUnreadable, folder.display(), &e))?;
    let read = read_manifest(&folder)?;
    let name = folder.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
    let target = if read.kind.is_savepoint() { format!("{}/{name}", files::SAVEPOINTS) } else { name };
    for file in read.files() {
        if job.head(&file.path)?.is_some_and(|found| found.size == file.size) {
            continue;
        }
        let local = locate(&folder, &file.path).ok_or_else(|| {
            Error::new(
                Code::SnapshotCorrupt,
                format!("`{}` of the snapshot in {} is missing", file.path, folder.display()),
            )
            .way_out("copy the whole job's folder, or take a savepoint, which stands alone")
        })?;
        taken(&file.path, job.put_file(&file.path, &local, PutMode::Create)?)?;
    }
    let path = folder.join(manifest::FILE_NAME);
    let bytes = std::fs::read(&path).map_err(|e| Error::io(Code::FileUnreadable, path.display(), &e))?;
    // Create-if-absent with read-back: the same manifest may lie there from an earlier try.
    files::write_manifest(job, &files::manifest_path(&target), Bytes::from(bytes))?;
    Ok(target)
}

/// As [`copy`], out of the storage that holds the snapshot's folder and, for a checkpoint, what lies around it.
fn copy_remote(parent: &dyn Storage, folder: &str, job: &dyn Storage) -> Result<String> {
    let path = files::manifest_path(folder);
    let bytes = parent.get(&path)?;
    let read = Manifest::decode(&path, &bytes)?;
    let target = if read.kind.is_savepoint() { format!("{}/{folder}", files::SAVEPOINTS) } else { folder.to_owned() };
    // The same manifest under the same path: the URL names a snapshot of this very job.
    if job.get(&files::manifest_path(&target)).is_ok_and(|found| found == bytes) {
        return Ok(target);
    }
    let local = tempfile::tempdir().map_err(|e| Error::io(Code::NotWritable, "the folder for temporary files", &e))?;
    for (number, file) in read.files().enumerate() {
        if job.head(&file.path)?.is_some_and(|found| found.size == file.size) {
            continue;
        }
        let beside = format!("{folder}/{}", file.path.rsplit('/').next().unwrap_or(&file.path));
        let source = if parent.head(&beside)?.is_some() { &beside } else { &file.path };
        // Storage may link the local file, so that each has its own.
        let copy = local.path().join(number.to_string());
        parent.get_to_file(source, &copy)?;
        taken(&file.path, job.put_file(&file.path, &copy, PutMode::Create)?)?;
        std::fs::remove_file(&copy).map_err(|e| Error::io(Code::NotWritable, copy.display(), &e))?;
    }
    files::write_manifest(job, &files::manifest_path(&target), bytes)?;
    Ok(target)
}

fn taken(path: &str, outcome: PutOutcome) -> Result<()> {
    match outcome {
        PutOutcome::Done => Ok(()),
        PutOutcome::Exists => {
            Err(Error::new(Code::SnapshotForeign, format!("another file lies at `{path}` in the job's folder"))
                .way_out("rename the snapshot's folder, or give the job another --storage"))
        }
    }
}

/// A file of the snapshot: beside the manifest, or below the job's folder that the manifest lies in.
fn locate(folder: &Path, path: &str) -> Option<PathBuf> {
    let beside = folder.join(path.rsplit('/').next().unwrap_or(path));
    let below_job = folder.ancestors().skip(1).take(2).map(|ancestor| ancestor.join(path));
    std::iter::once(beside).chain(below_job).find(|candidate| candidate.is_file())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use streamkeeper_checkpoint::{ManifestOperator, manifest::ManifestSubtask};
    use streamkeeper_protocol::{CheckpointKind, SnapshotFormat};
    use streamkeeper_storage::MemoryStorage;
    use streamkeeper_types::{
        CheckpointId, FileRef, FileScope, KeyGroupRange, OperatorId, key_group,
        snapshot::{KeyedHandle, StateFormat},
    };

    use super::*;

    /// A snapshot of one file, which lies at `path` of the job that wrote it.
    fn snapshot(kind: CheckpointKind, path: &str) -> Manifest {
        let file = FileRef { path: path.to_owned(), size: 5, checksum: 0, scope: FileScope::Private };
        let keyed = KeyedHandle {
            range: KeyGroupRange::all(128),
            format: StateFormat::Columns,
            tables: vec![],
            deltas: vec![file],
        };
        let subtask = ManifestSubtask { keyed: Some(keyed), ..ManifestSubtask::default() };
        let operator =
            ManifestOperator { id: OperatorId(1), name: "g".to_owned(), coordinator: None, subtasks: vec![subtask] };
        Manifest {
            job: "default/a".to_owned(),
            checkpoint: CheckpointId(3),
            kind,
            format: SnapshotFormat::Native,
            time: 0,
            max_parallelism: 128,
            hash_version: key_group::HASH_VERSION,
            program: String::new(),
            operators: vec![operator],
        }
    }

    fn put(storage: &dyn Storage, path: &str, bytes: impl Into<Bytes>) {
        assert!(storage.put(path, bytes.into(), PutMode::Create).is_ok(), "{path}");
    }

    #[test]
    fn a_snapshot_under_a_url_is_copied_with_its_files_and_may_be_copied_again() {
        for (kind, from, folder, target) in [
            (CheckpointKind::Savepoint, "friday/a", "friday", "savepoints/friday"),
            (CheckpointKind::Checkpoint, "shared/a", "chk-3", "chk-3"),
        ] {
            let (parent, job) = (MemoryStorage::new(), MemoryStorage::new());
            let path = if kind.is_savepoint() { "savepoints/friday/a" } else { "shared/a" };
            put(&parent, from, "state");
            put(&parent, &files::manifest_path(folder), snapshot(kind, path).encode());
            for _ in 0..2 {
                assert_eq!(copy_remote(&parent, folder, &job).unwrap(), target);
            }
            assert_eq!(job.get(path).unwrap(), "state");
            assert_eq!(files::read_manifest(&job, target).unwrap(), snapshot(kind, path));
        }
    }

    #[test]
    fn a_snapshot_with_the_name_of_another_one_is_refused() {
        let (parent, job) = (MemoryStorage::new(), MemoryStorage::new());
        put(&parent, "friday/a", "state");
        let manifest = snapshot(CheckpointKind::Savepoint, "savepoints/friday/a").encode();
        put(&parent, "friday/_metadata", manifest);
        put(&job, "savepoints/friday/_metadata", "another");
        assert!(copy_remote(&parent, "friday", &job).is_err());
        assert_eq!(job.get("savepoints/friday/_metadata").unwrap(), "another");
    }
}
