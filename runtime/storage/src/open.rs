//! From a URL to a storage.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use streamkeeper_types::{Code, Error, Result};

use crate::{
    Environment, FileStorage, Storage, StorageOptions, path,
    remote::{Address, RemoteStorage},
};

/// Opens the storage that `url` names with default limits: a path (relative ones from `base_dir`) or `file://` with one,
/// `s3://`, `gs://`, `abfss://`, `az://` or `hdfs://`. Remote servers are asked nothing yet.
///
/// # Errors
/// The URL is no storage's, the environment's settings are wrong, or the folder cannot be created.
pub fn open(url: &str, base_dir: &Path) -> Result<Arc<dyn Storage>> {
    open_with(url, base_dir, &StorageOptions::default(), &Environment::of_process())
}

/// [`open`] with limits, and with endpoints and credentials from `environment`.
///
/// # Errors
/// As [`open`].
pub fn open_with(
    url: &str,
    base_dir: &Path,
    options: &StorageOptions,
    environment: &Environment,
) -> Result<Arc<dyn Storage>> {
    Place::of(url, base_dir)?.open(options, environment)
}

/// Opens the folder of one job, `<url>/<namespace>/<name>`, with default limits.
///
/// # Errors
/// As [`open`], or namespace or name cannot be part of a path.
pub fn open_job(url: &str, base_dir: &Path, namespace: &str, name: &str) -> Result<Arc<dyn Storage>> {
    open_job_with(url, base_dir, (namespace, name), &StorageOptions::default(), &Environment::of_process())
}

/// [`open_job`] for the job `(namespace, name)`, with limits, and with endpoints and credentials from `environment`.
///
/// # Errors
/// As [`open_job`].
pub fn open_job_with(
    url: &str,
    base_dir: &Path,
    (namespace, name): (&str, &str),
    options: &StorageOptions,
    environment: &Environment,
) -> Result<Arc<dyn Storage>> {
    for part in [namespace, name] {
        if part.contains('/') || path::check(part).is_err() {
            return Err(Error::new(Code::JobInvalid, format!("`{part}` cannot be the name of a job or namespace"))
                .way_out("use letters, digits and `-`"));
        }
    }
    Place::of(url, base_dir)?.below(&format!("{namespace}/{name}")).open(options, environment)
}

/// What a URL names.
#[derive(Debug, PartialEq, Eq)]
enum Place {
    Folder(PathBuf),
    Remote(Address),
}

impl Place {
    fn of(url: &str, base_dir: &Path) -> Result<Self> {
        if let Some(address) = Address::parse(url)? {
            return Ok(Self::Remote(address));
        }
        let path = match url.split_once("://") {
            None => url,
            Some(("file", path)) => path,
            Some((kind, _)) => {
                return Err(Error::new(Code::JobInvalid, format!("there is no storage of the kind `{kind}://`"))
                    .way_out("write s3://…, gs://…, abfss://…, hdfs://…, file:///… or a path"));
            }
        };
        if path.is_empty() {
            return Err(Error::new(Code::JobInvalid, format!("checkpoint storage `{url}` names no folder"))
                .way_out("write a folder, as in `file:///var/lib/streamkeeper` or `.streamkeeper`"));
        }
        // `join` of an absolute path is that path.
        Ok(Self::Folder(base_dir.join(path)))
    }

    fn below(self, folder: &str) -> Self {
        match self {
            Self::Folder(path) => Self::Folder(path.join(folder)),
            Self::Remote(address) => Self::Remote(address.below(folder)),
        }
    }

    fn open(self, options: &StorageOptions, environment: &Environment) -> Result<Arc<dyn Storage>> {
        Ok(match self {
            Self::Folder(path) => Arc::new(FileStorage::new(path)?),
            Self::Remote(address) => Arc::new(RemoteStorage::open(address, options, environment)?),
        })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn paths_and_file_urls_name_folders() {
        let base = Path::new("/jobs/a");
        for (url, folder) in [
            (".streamkeeper", "/jobs/a/.streamkeeper"),
            ("/var/lib/sk", "/var/lib/sk"),
            ("file:///var/lib/sk", "/var/lib/sk"),
            ("file://state", "/jobs/a/state"),
        ] {
            assert_eq!(Place::of(url, base).unwrap(), Place::Folder(folder.into()), "{url}");
        }
    }

    #[test]
    fn what_is_no_storage_is_refused_with_a_way_out() {
        for url in ["ftp://x", "S3://bucket", "", "file://", "s3://", "hdfs://"] {
            let error = Place::of(url, Path::new("/")).unwrap_err();
            assert_eq!(error.code, Code::JobInvalid, "{url}");
            assert!(error.way_out.is_some(), "{url}");
        }
    }
}
