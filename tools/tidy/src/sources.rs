//! Rust files of the repository, and the rules about what may stand in them.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::code::{code_only, has_words};

/// Lines that a file may have.
pub const MAX_LINES: usize = 600;

/// Folders that hold Rust code.
const FOLDERS: [&str; 4] = ["operator", "runtime", "tools", "fuzz"];

/// The only crate that calls C++.
const UNSAFE_CRATE: &str = "runtime/state-rocksdb";

/// Parts that only decide: no clock, no I/O, so nothing to wait for.
const DECIDING: [&str; 2] = ["runtime/checkpoint/src", "runtime/jobmanager/src/engine"];

/// One Rust file.
#[derive(Debug)]
pub struct Source {
    /// Below the root of the checkout.
    pub path: PathBuf,
    pub text: String,
}

/// Every Rust file below the folders with code, in order.
///
/// # Errors
/// A folder or file that cannot be read.
pub fn all(root: &Path) -> Result<Vec<Source>> {
    let mut sources = Vec::new();
    for folder in FOLDERS {
        collect(root, Path::new(folder), &mut sources)?;
    }
    sources.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(sources)
}

fn collect(root: &Path, folder: &Path, sources: &mut Vec<Source>) -> Result<()> {
    let full = root.join(folder);
    for entry in fs::read_dir(&full).with_context(|| full.display().to_string())? {
        let entry = entry?;
        let path = folder.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            if entry.file_name() != "target" {
                collect(root, &path, sources)?;
            }
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = fs::read_to_string(entry.path()).with_context(|| path.display().to_string())?;
            sources.push(Source { path, text });
        }
    }
    Ok(())
}

/// Files that are too long, with their number of lines.
pub fn too_long(sources: &[Source]) -> impl Iterator<Item = String> {
    sources.iter().filter_map(|source| {
        let lines = source.text.lines().count();
        (lines > MAX_LINES).then(|| format!("{}: {lines} lines, at most {MAX_LINES}", source.path.display()))
    })
}

/// Files with `unsafe` code outside the crate that may have it.
pub fn with_unsafe_code(sources: &[Source]) -> impl Iterator<Item = String> {
    let suspects = sources.iter().filter(|source| !source.path.starts_with(UNSAFE_CRATE));
    let guilty = suspects.filter(|source| has_words(&code_only(&source.text), &["unsafe"]));
    guilty.map(|source| format!("{}: only {UNSAFE_CRATE} may be unsafe", source.path.display()))
}

/// Files of deciding parts that could wait for something.
pub fn waiting_deciders(sources: &[Source]) -> impl Iterator<Item = String> {
    let suspects = sources.iter().filter(|source| DECIDING.iter().any(|folder| source.path.starts_with(folder)));
    let guilty = suspects.filter(|source| has_words(&code_only(&source.text), &["async", "fn"]));
    guilty.map(|source| format!("{}: this part only decides, it has no async fn", source.path.display()))
}
