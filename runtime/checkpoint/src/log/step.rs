//! How the deciding parts of the log ask for I/O.

use bytes::Bytes;
use streamkeeper_types::Generation;

/// Folder of the log in the job's folder.
pub(crate) const FOLDER: &str = "log";

/// One storage call. A call that surely failed is repeated by whoever executes it; only outcomes come back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Request {
    /// Paths of all objects below `folder`; waits for [`Reply::Listed`].
    List { folder: String },
    /// Content, or that there is none; waits for [`Reply::Got`].
    Get { path: String },
    /// Create-if-absent; waits for [`Reply::Created`].
    Create { path: String, bytes: Bytes },
}

/// Outcome of a [`Request`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reply {
    Listed(Vec<String>),
    Got(Option<Bytes>),
    Created(Created),
}

/// Outcome of create-if-absent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Created {
    Done,
    /// Something lies there; it may be an earlier try of ours.
    Exists,
    Unknown,
}

/// Where a deciding part stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step<T> {
    /// Execute this and come back with the reply.
    Ask(Request),
    Done(T),
}

/// Path of the log entry `number` of a generation.
#[must_use]
pub fn entry_path(generation: Generation, number: u64) -> String {
    format!("{FOLDER}/{generation}/{number}")
}

/// The reverse of [`entry_path`]. Anything else in the folder is none of ours and is passed over (B12).
#[must_use]
pub fn parse_entry(path: &str) -> Option<(Generation, u64)> {
    let (generation, number) = path.strip_prefix(FOLDER)?.strip_prefix('/')?.split_once('/')?;
    let entry = (Generation(generation.parse().ok()?), number.parse().ok()?);
    (entry_path(entry.0, entry.1) == path).then_some(entry)
}

/// Entries in order.
pub(crate) fn entries(paths: &[String]) -> Vec<(Generation, u64)> {
    let mut entries: Vec<_> = paths.iter().filter_map(|path| parse_entry(path)).collect();
    entries.sort_unstable();
    entries
}

/// Numbers of one generation in order.
pub(crate) fn numbers(paths: &[String], generation: Generation) -> Vec<u64> {
    entries(paths).into_iter().filter(|(g, _)| *g == generation).map(|(_, number)| number).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_one_spelling_of_an_entry_is_read() {
        assert_eq!(parse_entry("log/3/12"), Some((Generation(3), 12)));
        for other in ["log/3", "log/03/1", "log/3/+1", "log/3/1/2", "log/x/1", "chk-3/1", "log/3/1.tmp"] {
            assert_eq!(parse_entry(other), None, "{other}");
        }
    }
}
