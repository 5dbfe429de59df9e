//! Which shared files are in use, and since when not any more.
//!
//! Guarantees: a file is given out for deletion once, and only when its last-used id lies below the lowest retained
//! checkpoint (R20). Files of a snapshot that is not ours are never given out (R23).
//! Assumption: every acknowledged file is registered **before** its checkpoint becomes visible (B13).

use std::collections::{HashMap, HashSet, VecDeque};

use streamkeeper_types::{CheckpointId, Error, FileRef, FileScope, Result};

/// Remembered deletions. A task refers to a file that long gone only if it missed as many completions in a row.
const REMEMBERED_DELETIONS: usize = 65_536;

/// Shared files by physical identity, which is their path (R22).
#[derive(Debug, Default)]
pub struct SharedRegistry {
    files: HashMap<String, Entry>,
    not_claimed: HashSet<String>,
    deleted: HashSet<String>,
    deletion_order: VecDeque<String>,
}

#[derive(Debug)]
struct Entry {
    file: FileRef,
    last_used: CheckpointId,
}

impl SharedRegistry {
    /// Notes that checkpoint `id` uses these files; private ones among them are passed over. Registering the same file
    /// again is how its use is prolonged, and never makes it a duplicate to be removed (B16).
    ///
    /// # Errors
    /// A path comes with another size or checksum than before (B15), or was given out for deletion already: the
    /// snapshot that names it must not complete.
    pub fn register<'a>(&mut self, id: CheckpointId, files: impl IntoIterator<Item = &'a FileRef>) -> Result<()> {
        for file in files.into_iter().filter(|file| file.scope == FileScope::Shared) {
            if self.deleted.contains(&file.path) {
                return Err(Error::internal(format!("checkpoint {id} refers to `{}`, which is deleted", file.path)));
            }
            let entry = self.files.entry(file.path.clone());
            let entry = entry.or_insert_with(|| Entry { file: file.clone(), last_used: id });
            if entry.file != *file {
                return Err(Error::internal(format!("two different files have the path `{}`", file.path)));
            }
            entry.last_used = entry.last_used.max(id);
        }
        Ok(())
    }

    /// Notes files of a snapshot that this job restored from without owning it.
    pub fn not_claimed<'a>(&mut self, files: impl IntoIterator<Item = &'a FileRef>) {
        self.not_claimed.extend(files.into_iter().map(|file| file.path.clone()));
    }

    /// Takes out the files whose last use lies below `lowest_retained`, sorted by path; they are to be deleted.
    #[must_use]
    pub fn release_below(&mut self, lowest_retained: CheckpointId) -> Vec<FileRef> {
        let not_claimed = &self.not_claimed;
        let unused =
            |path: &String, entry: &mut Entry| entry.last_used < lowest_retained && !not_claimed.contains(path);
        let mut released: Vec<FileRef> = self.files.extract_if(unused).map(|(_, entry)| entry.file).collect();
        released.sort_unstable_by(|a, b| a.path.cmp(&b.path));
        for file in &released {
            self.deleted.insert(file.path.clone());
            self.deletion_order.push_back(file.path.clone());
        }
        while self.deletion_order.len() > REMEMBERED_DELETIONS {
            if let Some(oldest) = self.deletion_order.pop_front() {
                self.deleted.remove(&oldest);
            }
        }
        released
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn shared(path: &str) -> FileRef {
        FileRef { path: path.into(), size: 1, checksum: 2, scope: FileScope::Shared }
    }

    fn paths(files: Vec<FileRef>) -> Vec<String> {
        files.into_iter().map(|f| f.path).collect()
    }

    fn id(id: u64) -> CheckpointId {
        CheckpointId(id)
    }

    #[test]
    fn r20_a_file_goes_only_below_the_lowest_retained_and_once() {
        let mut registry = SharedRegistry::default();
        registry.register(id(1), &[shared("a"), shared("b")]).unwrap();
        registry.register(id(2), &[shared("b")]).unwrap();
        assert_eq!(paths(registry.release_below(id(1))), Vec::<String>::new());
        assert_eq!(paths(registry.release_below(id(2))), ["a"]);
        assert_eq!(paths(registry.release_below(id(2))), Vec::<String>::new());
        assert_eq!(paths(registry.release_below(id(3))), ["b"]);
        assert!(registry.files.is_empty());
    }

    #[test]
    fn r26_a_late_acks_files_stay_while_its_id_may_be_used() {
        let mut registry = SharedRegistry::default();
        registry.register(id(5), &[shared("late")]).unwrap();
        registry.register(id(3), &[shared("late")]).unwrap();
        assert_eq!(registry.release_below(id(5)).len(), 0, "the highest use counts, whatever the order");
        assert_eq!(paths(registry.release_below(id(6))), ["late"]);
    }

    #[test]
    fn r23_r28_files_of_a_snapshot_that_is_not_ours_are_never_given_out() {
        let mut registry = SharedRegistry::default();
        registry.not_claimed(&[shared("theirs")]);
        registry.register(id(1), &[shared("theirs"), shared("ours")]).unwrap();
        assert_eq!(paths(registry.release_below(id(100))), ["ours"]);
    }

    #[test]
    fn b15_one_path_with_two_contents_is_an_error() {
        let mut registry = SharedRegistry::default();
        registry.register(id(1), &[shared("a")]).unwrap();
        assert!(registry.register(id(2), &[FileRef { checksum: 3, ..shared("a") }]).is_err());
    }

    #[test]
    fn b16_registering_twice_keeps_the_file() {
        let mut registry = SharedRegistry::default();
        registry.register(id(1), &[shared("a"), shared("a")]).unwrap();
        registry.register(id(1), &[shared("a")]).unwrap();
        assert_eq!((registry.files.len(), registry.release_below(id(1)).len()), (1, 0));
    }

    #[test]
    fn r21_a_snapshot_that_refers_to_a_deleted_file_is_refused() {
        let mut registry = SharedRegistry::default();
        registry.register(id(1), &[shared("a")]).unwrap();
        assert_eq!(registry.release_below(id(2)).len(), 1);
        assert!(registry.register(id(3), &[shared("a")]).is_err());
    }

    #[test]
    fn private_files_are_none_of_its_business() {
        let mut registry = SharedRegistry::default();
        registry.register(id(1), &[FileRef { scope: FileScope::Private, ..shared("p") }]).unwrap();
        assert!(registry.files.is_empty());
    }
}
