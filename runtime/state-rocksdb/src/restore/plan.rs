//! Which files of old subtasks come in as they are, and whose rows must be written anew. Decides only.
//!
//! A file may enter a database only if it holds no invisible rows of groups that the database owns (X5): else rows
//! that were deleted or changed elsewhere would come back.

use std::collections::HashSet;

use streamkeeper_state::{ColdSource, RestoreStep};
use streamkeeper_types::{Code, Error, FileRef, KeyGroupRange, Result, hex, snapshot::BaseFile};

/// How one table's base is put in place.
#[derive(Debug)]
pub(super) struct Plan<'a> {
    pub step: RestoreStep,
    /// Files to import together.
    pub direct: Vec<File<'a>>,
    /// Old subtasks to read row by row.
    pub rewrite: Vec<Source<'a>>,
}

/// One old subtask's files with rows for us.
#[derive(Debug, Clone)]
pub(super) struct Source<'a> {
    pub visible: KeyGroupRange,
    pub files: Vec<File<'a>>,
}

#[derive(Debug, Clone)]
pub(super) struct File<'a> {
    pub base: &'a BaseFile,
    pub smallest: Vec<u8>,
    pub largest: Vec<u8>,
    /// Key groups that its keys span.
    span: KeyGroupRange,
    /// Key groups of it that count for us.
    visible: KeyGroupRange,
}

impl<'a> Plan<'a> {
    /// # Errors
    /// `SNAPSHOT_CORRUPT` if the key range of a file is unreadable.
    pub(super) fn new(sources: &[ColdSource<'a>], owned: KeyGroupRange) -> Result<Self> {
        let mut sources = sources.iter().map(Source::new).collect::<Result<Vec<_>>>()?;
        sources.retain(|source| !source.files.is_empty());
        if sources.is_empty() {
            return Ok(Self { step: RestoreStep::Empty, direct: Vec::new(), rewrite: Vec::new() });
        }
        if sources.iter().all(|source| source.fits(owned)) && go_together(&sources) {
            let step = if sources.len() == 1 { RestoreStep::Reopen } else { RestoreStep::Import };
            let direct = sources.into_iter().flat_map(|source| source.files).collect();
            return Ok(Self { step, direct, rewrite: Vec::new() });
        }
        let direct = match base(&sources, owned) {
            Some(base) => sources.remove(base).files,
            None => Vec::new(),
        };
        Ok(Self { step: RestoreStep::Rewrite, direct, rewrite: sources })
    }

    pub(super) fn files(&self) -> impl Iterator<Item = &FileRef> {
        self.direct.iter().chain(self.rewrite.iter().flat_map(|source| &source.files)).map(|file| &file.base.file)
    }
}

/// X8: of the old subtasks whose files fit as they are, the one with the most groups of ours, then the one with the
/// largest share of its groups ours, then the first.
fn base(sources: &[Source<'_>], owned: KeyGroupRange) -> Option<usize> {
    let fitting = sources.iter().enumerate().filter(|(_, source)| source.fits(owned));
    fitting
        .max_by_key(|(index, source)| {
            let whole = source.files.iter().map(|file| file.base.visible.len()).max().unwrap_or(1);
            let share = u64::from(source.visible.len()) * 1_000_000 / u64::from(whole.max(1));
            (source.visible.len(), share, std::cmp::Reverse(*index))
        })
        .map(|(index, _)| index)
}

/// Whether files of several old subtasks make one consistent column family: below level 0 no two of a level overlap.
fn go_together(sources: &[Source<'_>]) -> bool {
    if sources.len() == 1 {
        return true;
    }
    let mut files: Vec<&File<'_>> = sources.iter().flat_map(|source| &source.files).collect();
    let distinct: HashSet<&str> = files.iter().map(|file| &file.base.file.path[..]).collect();
    if distinct.len() < files.len() {
        return false;
    }
    files.retain(|file| file.base.level > 0);
    files.sort_by(|a, b| (a.base.level, &a.smallest).cmp(&(b.base.level, &b.smallest)));
    files.windows(2).all(|pair| pair[0].base.level != pair[1].base.level || pair[0].largest < pair[1].smallest)
}

impl<'a> Source<'a> {
    fn new(source: &ColdSource<'a>) -> Result<Self> {
        let mut files = source.files.iter().map(|base| File::new(base, source.visible)).collect::<Result<Vec<_>>>()?;
        files.retain(|file| !file.span.intersect(&file.visible).is_empty());
        Ok(Self { visible: source.visible, files })
    }

    fn fits(&self, owned: KeyGroupRange) -> bool {
        self.files.iter().all(|file| {
            let ours = file.span.intersect(&owned);
            ours == ours.intersect(&file.visible)
        })
    }
}

impl<'a> File<'a> {
    fn new(base: &'a BaseFile, visible: KeyGroupRange) -> Result<Self> {
        let corrupt = || {
            let path = &base.file.path;
            Error::new(Code::SnapshotCorrupt, format!("the key range of state file `{path}` is unreadable"))
        };
        let smallest = hex::decode(&base.smallest).ok_or_else(corrupt)?;
        let largest = hex::decode(&base.largest).ok_or_else(corrupt)?;
        let group = |key: &[u8]| key.first_chunk::<2>().map(|group| u16::from_be_bytes(*group)).ok_or_else(corrupt);
        let span = KeyGroupRange::new(group(&smallest)?, u32::from(group(&largest)?) + 1);
        Ok(Self { base, smallest, largest, span, visible: visible.intersect(&base.visible) })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use streamkeeper_types::FileScope;

    use super::*;

    fn file(path: &str, level: u32, groups: (u16, u16), visible: (u16, u32)) -> BaseFile {
        let key = |group: u16| hex::encode(&[&group.to_be_bytes()[..], b"k"].concat());
        BaseFile {
            file: FileRef { path: path.into(), size: 1, checksum: 0, scope: FileScope::Shared },
            level,
            smallest: key(groups.0),
            largest: key(groups.1),
            smallest_seq: 0,
            largest_seq: 0,
            visible: KeyGroupRange::new(visible.0, visible.1),
        }
    }

    fn check(
        sources: &[(&[BaseFile], (u16, u32))],
        owned: (u16, u32),
        step: RestoreStep,
        direct: &[&str],
        rewrite: &[&str],
    ) {
        let sources: Vec<_> = sources
            .iter()
            .map(|(files, visible)| ColdSource { files, visible: KeyGroupRange::new(visible.0, visible.1) })
            .collect();
        let plan = Plan::new(&sources, KeyGroupRange::new(owned.0, owned.1)).unwrap();
        let paths = |files: &[File<'_>]| files.iter().map(|f| f.base.file.path.clone()).collect::<Vec<_>>();
        assert_eq!(plan.step, step);
        assert_eq!(paths(&plan.direct), direct);
        assert_eq!(plan.rewrite.iter().flat_map(|s| paths(&s.files)).collect::<Vec<_>>(), rewrite);
    }

    #[test]
    fn x7a_the_same_range_is_reopened() {
        let files = [file("a", 1, (0, 63), (0, 64))];
        check(&[(&files, (0, 64))], (0, 64), RestoreStep::Reopen, &["a"], &[]);
    }

    #[test]
    fn x7b_one_handle_with_a_narrower_range_is_reopened_without_files_that_hold_nothing_of_it() {
        let files = [file("a", 1, (0, 31), (0, 64)), file("b", 1, (32, 63), (0, 64)), file("c", 0, (0, 63), (0, 64))];
        check(&[(&files, (0, 32))], (0, 32), RestoreStep::Reopen, &["a", "c"], &[]);
    }

    #[test]
    fn x7c_disjoint_files_of_several_handles_are_imported() {
        let left = [file("a", 1, (0, 31), (0, 32))];
        let right = [file("b", 1, (32, 63), (32, 64))];
        check(&[(&left, (0, 32)), (&right, (32, 64))], (0, 64), RestoreStep::Import, &["a", "b"], &[]);
    }

    #[test]
    fn x5_a_file_with_invisible_rows_of_owned_groups_is_rewritten() {
        let left = [file("a", 1, (0, 63), (0, 32))];
        let right = [file("b", 1, (32, 63), (32, 64))];
        check(&[(&left, (0, 32)), (&right, (32, 64))], (0, 64), RestoreStep::Rewrite, &["b"], &["a"]);
    }

    #[test]
    fn x5_a_file_that_two_handles_share_is_rewritten() {
        let left = [file("a", 1, (0, 63), (0, 32))];
        let right = [file("a", 1, (0, 63), (32, 64))];
        check(&[(&left, (0, 32)), (&right, (32, 64))], (0, 64), RestoreStep::Rewrite, &[], &["a", "a"]);
    }

    #[test]
    fn x8_the_base_is_the_handle_with_most_owned_groups() {
        let small = [file("a", 1, (0, 9), (0, 10))];
        let large = [file("b", 1, (10, 63), (10, 64))];
        let partial = [file("c", 1, (0, 127), (64, 128))];
        check(
            &[(&small, (0, 10)), (&large, (10, 64)), (&partial, (64, 100))],
            (0, 100),
            RestoreStep::Rewrite,
            &["b"],
            &["a", "c"],
        );
    }

    #[test]
    fn unreadable_key_ranges_are_refused() {
        for bad in ["", "0", "00", "zz00"] {
            let files = [BaseFile { smallest: bad.into(), ..file("a", 0, (0, 1), (0, 2)) }];
            let source = ColdSource { files: &files, visible: KeyGroupRange::new(0, 2) };
            let error = Plan::new(&[source], KeyGroupRange::new(0, 2)).unwrap_err();
            assert_eq!(error.code, Code::SnapshotCorrupt);
        }
    }
}
