//! Files that are made from types: written on demand, compared in CI.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

/// A generated file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct File {
    /// Below the root of the checkout.
    pub path: PathBuf,
    pub content: String,
}

/// Writes the files, and returns those that changed.
///
/// # Errors
/// A file that cannot be written.
pub fn write(root: &Path, files: &[File]) -> Result<Vec<PathBuf>> {
    let changed = stale(root, files);
    for file in files.iter().filter(|file| changed.contains(&file.path)) {
        let path = root.join(&file.path);
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
        }
        fs::write(&path, &file.content).with_context(|| path.display().to_string())?;
    }
    Ok(changed)
}

/// The files that are missing or differ.
#[must_use]
pub fn stale(root: &Path, files: &[File]) -> Vec<PathBuf> {
    let fresh = |file: &&File| fs::read_to_string(root.join(&file.path)).is_ok_and(|found| found == file.content);
    files.iter().filter(|file| !fresh(file)).map(|file| file.path.clone()).collect()
}
