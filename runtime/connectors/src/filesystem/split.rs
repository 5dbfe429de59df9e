//! Splits: a range of bytes of one file, with how far it was read.

use serde::{Deserialize, Serialize};
use streamkeeper_engine::Split;
use streamkeeper_types::Result;

use super::location::Found;
use crate::versioned;

const VERSION: u8 = 1;

/// A file is not cut into parts smaller than this: opening one costs more than it gains.
const LEAST_SPLIT: u64 = 64 << 10;

/// With this many files for each reader there is no need to cut any.
const FILES_PER_READER: u64 = 4;

/// Records of `path` that begin in `start..end`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct FileSplit {
    pub(super) path: String,
    /// Bytes of the whole file when it was found; what was appended later is not read.
    pub(super) size: u64,
    pub(super) start: u64,
    pub(super) end: u64,
    pub(super) position: Position,
}

/// How far a split was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Position {
    /// Not begun.
    Start,
    /// Byte at which the next record begins; in a compressed file, of its content.
    Byte(u64),
    /// Rows read (parquet).
    Rows(u64),
}

impl FileSplit {
    /// Unique in a table, stable over restarts.
    pub(super) fn id(&self) -> String {
        format!("{}:{}", self.path, self.start)
    }

    pub(super) fn to_split(&self) -> Result<Split> {
        Ok(Split { id: self.id(), state: versioned::encode(VERSION, self)? })
    }

    pub(super) fn from_split(split: &Split) -> Result<Self> {
        versioned::decode(VERSION, &split.state, &format!("split {}", split.id))
    }

    pub(super) fn is_compressed(&self) -> bool {
        is_compressed(&self.path)
    }
}

/// How far a part of a file was read, for people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FilePosition {
    pub path: String,
    /// Byte at which the part begins.
    pub start: u64,
    /// Byte at which the next part begins.
    pub end: u64,
    /// Byte of the next record to be read, or its row in a parquet file.
    pub next: u64,
}

/// The position in `split`; `None` for a split of another connector or version.
#[must_use]
pub fn file_position(split: &Split) -> Option<FilePosition> {
    let file = FileSplit::from_split(split).ok().filter(|file| file.id() == split.id)?;
    let next = match file.position {
        Position::Start => file.start,
        Position::Byte(byte) => byte,
        Position::Rows(rows) => rows,
    };
    Some(FilePosition { path: file.path, start: file.start, end: file.end, next })
}

fn is_compressed(path: &str) -> bool {
    path.ends_with(".gz")
}

/// Whether files may be cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Cut {
    /// At most one part for each reader (decision 14).
    PerReader(u32),
    Never,
}

/// Splits of newly found files, in their order.
pub(super) fn plan(files: &[Found], cut: Cut) -> Vec<FileSplit> {
    let readers = match cut {
        Cut::PerReader(readers) => u64::from(readers.max(1)),
        Cut::Never => 1,
    };
    let readers = if files.len() as u64 >= readers * FILES_PER_READER { 1 } else { readers };
    let mut splits = Vec::with_capacity(files.len());
    for file in files {
        let path = super::text_of(&file.path);
        let size = file.mark.size;
        let parts = if is_compressed(&path) { 1 } else { readers.min(size / LEAST_SPLIT).max(1) };
        let bound = |part: u64| (u128::from(size) * u128::from(part) / u128::from(parts)) as u64;
        splits.extend((0..parts).map(|part| FileSplit {
            path: path.clone(),
            size,
            start: bound(part),
            end: bound(part + 1),
            position: Position::Start,
        }));
    }
    splits
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::{super::location::Mark, *};

    fn found(path: &str, size: u64) -> Found {
        Found { path: path.into(), mark: Mark { size, modified: 0 } }
    }

    fn bounds(size: u64, path: &str, cut: Cut) -> Vec<(u64, u64)> {
        plan(&[found(path, size)], cut).iter().map(|s| (s.start, s.end)).collect()
    }

    #[test]
    fn a_file_is_cut_into_at_most_one_part_a_reader() {
        assert_eq!(bounds(300_000, "a.csv", Cut::PerReader(3)), [(0, 100_000), (100_000, 200_000), (200_000, 300_000)]);
        assert_eq!(bounds(300_000, "a.csv", Cut::Never), [(0, 300_000)]);
        assert_eq!(bounds(300_000, "a.csv.gz", Cut::PerReader(3)), [(0, 300_000)]);
        assert_eq!(bounds(70_000, "a.csv", Cut::PerReader(3)), [(0, 70_000)]);
        assert_eq!(bounds(0, "a.csv", Cut::PerReader(3)), [(0, 0)]);
    }

    #[test]
    fn a_position_is_read_from_the_splits_of_files_only() {
        let file = FileSplit { path: "a.csv".into(), size: 90, start: 10, end: 50, position: Position::Byte(20) };
        let split = file.to_split().unwrap();
        let expected = FilePosition { path: "a.csv".into(), start: 10, end: 50, next: 20 };
        assert_eq!(file_position(&split), Some(expected));
        assert_eq!(file_position(&Split { id: "0".into(), ..split }), None);
        assert_eq!(file_position(&Split { id: "0".into(), state: vec![1, 2] }), None);
    }

    #[test]
    fn many_files_are_not_cut() {
        let files: Vec<Found> = (0..8).map(|i| found(&i.to_string(), 1 << 30)).collect();
        assert_eq!(plan(&files, Cut::PerReader(2)).len(), 8);
        assert_eq!(plan(&files[..7], Cut::PerReader(2)).len(), 14);
    }
}
