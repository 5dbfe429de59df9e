//! Brings a snapshot that `--restore` names into the job's folder, where restoring finds it.

use std::path::{Path, PathBuf};

use bytes::Bytes;
use streamkeeper_checkpoint::{Manifest, files, manifest};
use streamkeeper_storage::{PutMode, PutOutcome, Storage};
use streamkeeper_types::{Code, Error, Result};

/// Path of the snapshot's folder within the job's folder; a snapshot from elsewhere is copied there under its own path.
///
/// # Errors
/// `FILE_UNREADABLE` if nothing is found under that name, `SNAPSHOT_CORRUPT` for files that are missing or torn.
pub fn into_job(name: &str, base_dir: &Path, job: &dyn Storage) -> Result<String> {
    for folder in [name.to_owned(), format!("{}/{name}", files::SAVEPOINTS)] {
        let valid = !folder.starts_with('/') && !folder.contains("..");
        if valid && job.head(&files::manifest_path(&folder)).is_ok_and(|found| found.is_some()) {
            return Ok(folder);
        }
    }
    let given = name.strip_prefix("file://").unwrap_or(name).trim_end_matches('/');
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
