//! Which files a table consists of.

use std::{
    fs::{self, Metadata},
    path::{Path, PathBuf},
    time::UNIX_EPOCH,
};

use regex::Regex;
use serde::{Deserialize, Serialize};
use streamkeeper_types::{Code, Error, Result};

use crate::{registry::TableDefinition, settings::Settings};

/// A file, a folder or a pattern, with a filter.
#[derive(Debug)]
pub(super) struct Location {
    pub(super) path: PathBuf,
    filter: Option<Regex>,
    no_match: NoMatch,
}

/// What a pattern means that no file matches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum NoMatch {
    /// The path is wrong.
    Fault,
    /// The first file is yet to come, or the last one was moved away (monitored folders).
    Empty,
}

/// A file of the table.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Found {
    pub(super) path: PathBuf,
    pub(super) mark: Mark,
}

/// What tells a file from a changed one of the same name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) struct Mark {
    /// Bytes.
    pub(super) size: u64,
    /// Nanoseconds since 1970 at which it was last written to; 0 if the file system does not know.
    pub(super) modified: u64,
}

impl Mark {
    fn of(meta: &Metadata) -> Self {
        let since = meta.modified().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
        let modified = since.and_then(|since| u64::try_from(since.as_nanos()).ok()).unwrap_or_default();
        Self { size: meta.len(), modified }
    }
}

impl Location {
    pub(super) fn new(table: &TableDefinition, settings: Settings<'_>) -> Result<Self> {
        let key = "source.path.regex-pattern";
        let filter = settings.text(key).map(|text| Regex::new(&format!("^(?:{text})$")));
        let filter = filter.transpose().map_err(|e| settings.fault(key, e, "write a regular expression"))?;
        let no_match = if settings.is_given("source.monitor-interval") { NoMatch::Empty } else { NoMatch::Fault };
        Ok(Self { path: resolve(table, settings, "path")?, filter, no_match })
    }

    /// All files, sorted by path.
    ///
    /// # Errors
    /// `FILE_UNREADABLE` if the path does not exist or cannot be listed, or nothing matches a pattern.
    pub(super) fn list(&self) -> Result<Vec<Found>> {
        let mut found = Vec::new();
        match fs::metadata(&self.path) {
            Ok(meta) if meta.is_dir() => walk(&self.path, &mut found)?,
            Ok(meta) => found.push(Found { path: self.path.clone(), mark: Mark::of(&meta) }),
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
            visit(path, found)?;
        }
        if matched || self.no_match == NoMatch::Empty {
            Ok(())
        } else {
            Err(unreadable(&self.path, &"no file matches this pattern"))
        }
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
        visit(entry.map_err(|e| unreadable(folder, &e))?.path(), found)?;
    }
    Ok(())
}

/// Takes a file, or what lies below a folder, unless its name says that it is not for readers.
fn visit(path: PathBuf, found: &mut Vec<Found>) -> Result<()> {
    if is_unfinished(&path) {
        return Ok(());
    }
    match fs::metadata(&path) {
        Ok(meta) if meta.is_dir() => walk(&path, found),
        Ok(meta) => {
            found.push(Found { path, mark: Mark::of(&meta) });
            Ok(())
        }
        // It was moved away while the folder was read.
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(unreadable(&path, &error)),
    }
}

/// Endings that writers and copying tools give to files which are not whole yet.
const UNFINISHED: [&str; 5] = [".tmp", ".part", ".partial", ".inprogress", "._COPYING_"];

/// Files that others are still writing, and ours that are not committed, have such names.
fn is_unfinished(path: &Path) -> bool {
    let Some(name) = path.file_name().map(|name| name.to_string_lossy()) else { return false };
    name.starts_with(['.', '_']) || UNFINISHED.iter().any(|ending| name.ends_with(ending))
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
        Location { path, filter: None, no_match: NoMatch::Fault }
    }

    fn names(location: &Location) -> Vec<String> {
        location.list().unwrap().iter().map(|f| f.path.file_name().unwrap().to_string_lossy().into_owned()).collect()
    }

    #[test]
    fn files_folders_and_patterns_are_listed_without_hidden_and_unfinished_names() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        fs::create_dir_all(root.join("d=1")).unwrap();
        fs::create_dir_all(root.join(".staging-x")).unwrap();
        let read = ["b.csv", "a.csv", "a.json", "d=1/c.csv"];
        let not_read = ["_tmp.csv", ".hidden.csv", ".staging-x/z.csv", "e.csv.tmp", "e.part", "d=1/e.csv.inprogress"];
        for name in read.iter().chain(&not_read) {
            fs::write(root.join(name), "1\n").unwrap();
        }
        assert_eq!(names(&location(root.to_owned())), ["a.csv", "a.json", "b.csv", "c.csv"]);
        assert_eq!(names(&location(root.join("*.csv"))), ["a.csv", "b.csv"]);
        assert_eq!(names(&location(root.join("a.json"))), ["a.json"]);
        let filter = Some(Regex::new("^(?:.*/d=1/.*)$").unwrap());
        assert_eq!(names(&Location { filter, ..location(root.to_owned()) }), ["c.csv"]);
        // Named by itself, a file is read whatever its name.
        assert_eq!(names(&location(root.join("e.part"))), ["e.part"]);
    }

    #[test]
    fn a_path_that_is_not_there_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        for missing in ["nothing.csv", "*.csv"] {
            let error = location(folder.path().join(missing)).list().unwrap_err();
            assert_eq!(error.code, Code::FileUnreadable);
        }
    }

    #[test]
    fn a_monitored_pattern_may_match_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let monitored = Location { no_match: NoMatch::Empty, ..location(folder.path().join("*.csv")) };
        assert_eq!(monitored.list().unwrap(), []);
    }
}
