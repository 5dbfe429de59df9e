//! The snapshot that `plan --against` names: a folder, an object store's URL, or what a running job has newest.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use streamkeeper_checkpoint::{Manifest, files, manifest};
use streamkeeper_protocol::rest::JobView;
use streamkeeper_storage::open;
use streamkeeper_types::{Code, Error, Result};

use crate::{
    import,
    job_file::JobFile,
    launch::job_folder,
    rest::{Client, read_token},
};

/// How long the JobManager may take.
const TIMEOUT: Duration = Duration::from_secs(10);

/// A snapshot, and where it lies.
#[derive(Debug)]
pub struct Against {
    pub manifest: Manifest,
    /// Path or URL of its folder.
    pub location: String,
}

/// Reads the manifest only; nothing is changed or copied. `place` is a path, a name below the job's `savepoints`, the URL of
/// a folder, or the REST URL of the JobManager that runs the job of `file`.
///
/// # Errors
/// `FILE_UNREADABLE`, storage errors, those of [`Manifest::decode`]; those of [`Client::get`], and `NOT_FOUND` if the
/// running job has no snapshot yet.
pub fn find(place: &str, token_file: Option<&Path>, file: &JobFile) -> Result<Against> {
    if !place.starts_with("http://") && !place.starts_with("https://") {
        return read(place, file);
    }
    let token = token_file.map(read_token).transpose()?;
    let client = Client::new(place, token, TIMEOUT)?;
    let id = format!("{}.{}", file.job.namespace, file.job.name);
    let view: JobView = client.get(&["jobs", &id])?;
    let location = view.checkpoints.last.and_then(|last| last.location).ok_or_else(|| {
        Error::new(Code::NotFound, format!("the running job {id} has completed no checkpoint yet"))
            .way_out("take a savepoint first: `streamkeeper job savepoint`")
    })?;
    read(&location, file).map_err(|error| error.at(format!("the newest snapshot of the running job {id}")))
}

fn read(place: &str, file: &JobFile) -> Result<Against> {
    let place = place.trim_end_matches('/');
    let path = place.strip_prefix("file://").unwrap_or(place);
    if path.contains("://") {
        return read_remote(place, &file.base_dir());
    }
    let job = job_folder(file, None);
    let candidates =
        [PathBuf::from(path), file.base_dir().join(path), job.join(path), job.join(files::SAVEPOINTS).join(path)];
    let found = candidates.iter().find(|folder| folder.join(manifest::FILE_NAME).is_file());
    // If none is there, the error names what was given.
    let folder = found.unwrap_or(&candidates[0]);
    Ok(Against { manifest: import::read_manifest(folder)?, location: folder.display().to_string() })
}

fn read_remote(url: &str, base_dir: &Path) -> Result<Against> {
    let storage = open(url, base_dir)?;
    let bytes = storage.get(manifest::FILE_NAME)?;
    let manifest = Manifest::decode(&format!("{url}/{}", manifest::FILE_NAME), &bytes)?;
    Ok(Against { manifest, location: url.to_owned() })
}
