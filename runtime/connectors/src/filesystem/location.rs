//! Which files a table consists of.

use std::{
    fs,
    path::{Path, PathBuf},
};

use regex::Regex;
use streamkeeper_types::{Code, Error, Result};

use crate::{registry::TableDefinition, settings::Settings};

/// A file, a folder or a pattern, with a filter.
#[derive(Debug)]
pub(super) struct Location {
    pub(super) path: PathBuf,
    filter: Option<Regex>,
}

/// A file of the table.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Found {
    pub(super) path: PathBuf,
    /// Bytes.
    pub(super) size: u64,
}

impl Location {
    pub(super) fn new(table: &TableDefinition, settings: Settings<'_>) -> Result<Self> {
        let key = "source.path.regex-pattern";
        let filter = settings.text(key).map(|text| Regex::new(&format!("^(?:{text})$")));
        let filter = filter.transpose().map_err(|e| settings.fault(key, e, "write a regular expression"))?;
        Ok(Self { path: resolve(table, settings, "path")?, filter })
    }

    /// All files, sorted by path.
    ///
    /// # Errors
    /// `FILE_UNREADABLE` if the path does not exist or cannot be listed, or nothing matches a pattern.
    pub(super) fn list(&self) -> Result<Vec<Found>> {
        let mut found = Vec::new();
        match fs::metadata(&self.path) {
            Ok(meta) if meta.is_dir() => walk(&self.path, &mut found)?,
            Ok(meta) => found.push(Found { path: self.path.clone(), size: meta.len() }),
            Err(_) if is_pattern(&self.path) => self.expand(&mut found)?,
            Err(error) => return Err(unreadable(&self.path, &error)),
        }
        found.retain(|file| self.filter.as_ref().is_none_or(|filter| filter.is_match(&file.path.to_string_lossy())));
        found.sort_unstable();
        found.dedup();
        Ok(found)
    }

    fn expand(&self, found: &mut Vec<Found>) -> Result<()> {
        let pattern = self.path.to_string_lossy();
        let paths = glob::glob(&pattern).map_err(|e| unreadable(&self.path, &e))?;
        let mut matched = false;
        for path in paths {
            let path = path.map_err(|e| unreadable(e.path(), e.error()))?;
            matched = true;
            if is_hidden(&path) {
                continue;
            }
            let meta = fs::metadata(&path).map_err(|e| unreadable(&path, &e))?;
            if meta.is_dir() {
                walk(&path, found)?;
            } else {
                found.push(Found { path, size: meta.len() });
            }
        }
        if matched { Ok(()) } else { Err(unreadable(&self.path, &"no file matches this pattern")) }
    }
}

/// The path that an option names. Relative ones are resolved from the StreamJob's folder.
pub(super) fn resolve(table: &TableDefinition, settings: Settings<'_>, key: &str) -> Result<PathBuf> {
    let text = settings.text(key).unwrap_or_default();
    let path = text.strip_prefix("file://").or_else(|| text.strip_prefix("file:")).unwrap_or(text);
    if let Some((scheme, _)) = path.split_once("://") {
        return Err(settings.fault(key, format!("`{scheme}` is no file system of this version"), "write a local path"));
    }
    if path.is_empty() {
        return Err(settings.fault(key, "it is empty", "write a local path"));
    }
    Ok(table.base_dir.join(path))
}

/// Files below a folder, at any depth.
fn walk(folder: &Path, found: &mut Vec<Found>) -> Result<()> {
    for entry in fs::read_dir(folder).map_err(|e| unreadable(folder, &e))? {
        let path = entry.map_err(|e| unreadable(folder, &e))?.path();
        if is_hidden(&path) {
            continue;
        }
        match fs::metadata(&path) {
            Ok(meta) if meta.is_dir() => walk(&path, found)?,
            Ok(meta) => found.push(Found { path, size: meta.len() }),
            // It was moved away while the folder was read.
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => return Err(unreadable(&path, &error)),
        }
    }
    Ok(())
}

/// Files that others are still writing, and ours that are not committed, have such names.
fn is_hidden(path: &Path) -> bool {
    path.file_name().is_some_and(|name| matches!(name.as_encoded_bytes().first(), Some(b'.' | b'_')))
}

fn is_pattern(path: &Path) -> bool {
    path.to_string_lossy().contains(['*', '?', '['])
}

fn unreadable(path: &Path, error: &dyn std::fmt::Display) -> Error {
    Error::new(Code::FileUnreadable, format!("{}: {error}", path.display()))
        .way_out("see whether 'path' is right (relative paths are resolved from the StreamJob's file) and can be read")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn location(path: PathBuf) -> Location {
        Location { path, filter: None }
    }

    fn names(location: &Location) -> Vec<String> {
        location.list().unwrap().iter().map(|f| f.path.file_name().unwrap().to_string_lossy().into_owned()).collect()
    }

    #[test]
    fn files_folders_and_patterns_are_listed_without_hidden_names() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        fs::create_dir_all(root.join("d=1")).unwrap();
        fs::create_dir_all(root.join(".staging-x")).unwrap();
        for name in ["b.csv", "a.csv", "a.json", "_tmp.csv", ".hidden.csv", "d=1/c.csv", ".staging-x/z.csv"] {
            fs::write(root.join(name), "1\n").unwrap();
        }
        assert_eq!(names(&location(root.to_owned())), ["a.csv", "a.json", "b.csv", "c.csv"]);
        assert_eq!(names(&location(root.join("*.csv"))), ["a.csv", "b.csv"]);
        assert_eq!(names(&location(root.join("a.json"))), ["a.json"]);
        let filtered = Location { path: root.to_owned(), filter: Some(Regex::new("^(?:.*/d=1/.*)$").unwrap()) };
        assert_eq!(names(&filtered), ["c.csv"]);
    }

    #[test]
    fn a_path_that_is_not_there_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        for missing in ["nothing.csv", "*.csv"] {
            let error = location(folder.path().join(missing)).list().unwrap_err();
            assert_eq!(error.code, Code::FileUnreadable);
        }
    }
}
