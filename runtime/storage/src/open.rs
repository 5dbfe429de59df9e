//! From a URL to a storage.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use streamkeeper_types::{Code, Error, Result};

use crate::{FileStorage, Storage, path};

/// Opens the storage that `url` names: a path (relative ones from `base_dir`) or `file://` with one.
///
/// # Errors
/// The URL's kind is unknown or comes with a later release, or the folder cannot be created.
pub fn open(url: &str, base_dir: &Path) -> Result<Arc<dyn Storage>> {
    Ok(Arc::new(FileStorage::new(folder_of(url, base_dir)?)?))
}

/// Opens the folder of one job, `<url>/<namespace>/<name>`.
///
/// # Errors
/// As [`open`], or namespace or name cannot be part of a path.
pub fn open_job(url: &str, base_dir: &Path, namespace: &str, name: &str) -> Result<Arc<dyn Storage>> {
    for part in [namespace, name] {
        if part.contains('/') || path::check(part).is_err() {
            return Err(Error::new(Code::JobInvalid, format!("`{part}` cannot be the name of a job or namespace"))
                .way_out("use letters, digits and `-`"));
        }
    }
    Ok(Arc::new(FileStorage::new(folder_of(url, base_dir)?.join(namespace).join(name))?))
}

fn folder_of(url: &str, base_dir: &Path) -> Result<PathBuf> {
    let path = match url.split_once("://") {
        None => url,
        Some(("file", path)) => path,
        Some((kind @ ("s3" | "s3a" | "gs" | "abfs" | "abfss" | "hdfs"), _)) => {
            return Err(Error::new(
                Code::JobInvalid,
                format!("checkpoint storage `{url}`: {kind} comes with a later release"),
            )
            .way_out("use a folder for now, as in `file:///var/lib/streamkeeper` or `.streamkeeper`"));
        }
        Some((kind, _)) => {
            return Err(Error::new(Code::JobInvalid, format!("checkpoint storage `{url}`: there is no kind `{kind}`"))
                .way_out("write a folder, as in `file:///var/lib/streamkeeper` or `.streamkeeper`"));
        }
    };
    if path.is_empty() {
        return Err(Error::new(Code::JobInvalid, format!("checkpoint storage `{url}` names no folder"))
            .way_out("write a folder, as in `file:///var/lib/streamkeeper` or `.streamkeeper`"));
    }
    // `join` of an absolute path is that path.
    Ok(base_dir.join(path))
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
            assert_eq!(folder_of(url, base).unwrap(), Path::new(folder), "{url}");
        }
    }

    #[test]
    fn other_kinds_are_refused_with_a_way_out() {
        for url in ["s3://bucket/x", "gs://b", "abfs://c@a/x", "hdfs://nn/x", "ftp://x", "", "file://"] {
            let error = folder_of(url, Path::new("/")).unwrap_err();
            assert_eq!(error.code, Code::JobInvalid, "{url}");
            assert!(error.way_out.is_some(), "{url}");
        }
        assert!(open("s3://bucket/x", Path::new("/")).unwrap_err().cause.contains("later release"));
    }
}
