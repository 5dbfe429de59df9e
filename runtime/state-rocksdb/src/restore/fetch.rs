//! Base files from checkpoint storage to the local disk, several at a time, checksums checked.

use std::{
    collections::BTreeMap,
    fs,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
};

use streamkeeper_state::fetch_to_file;
use streamkeeper_storage::Storage;
use streamkeeper_types::{Code, Error, FileRef, Result};

/// `state.rocksdb.transfer-threads`.
const TRANSFER_THREADS: usize = 4;

/// Fetched files, by path in storage. The files stay until this is dropped.
pub(super) struct Fetched {
    dir: PathBuf,
    files: BTreeMap<String, (FileRef, PathBuf, u64)>,
    links: AtomicU64,
}

pub(super) fn all<'a>(
    storage: &dyn Storage,
    files: impl Iterator<Item = &'a FileRef>,
    scratch: &Path,
) -> Result<Fetched> {
    let dir = scratch.join("fetched");
    fs::create_dir_all(&dir).map_err(|error| Error::io(Code::NotWritable, dir.display(), &error))?;
    let wanted: BTreeMap<&str, &FileRef> = files.map(|file| (&file.path[..], file)).collect();
    let wanted: Vec<&FileRef> = wanted.into_values().collect();
    let next = AtomicUsize::new(0);
    let failure = Mutex::new(None);
    std::thread::scope(|scope| {
        for _ in 0..TRANSFER_THREADS.min(wanted.len()) {
            scope.spawn(|| {
                while let Some((number, file)) = take_next(&next, &wanted) {
                    if let Err(error) = fetch_to_file(storage, file, &local_path(&dir, number)) {
                        *failure.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
                        return;
                    }
                }
            });
        }
    });
    if let Some(error) = failure.into_inner().unwrap_or_else(PoisonError::into_inner) {
        return Err(error);
    }
    let mut fetched = Fetched { dir, files: BTreeMap::new(), links: AtomicU64::new(0) };
    for (number, file) in wanted.into_iter().enumerate() {
        let path = local_path(&fetched.dir, number);
        let metadata = fs::metadata(&path).map_err(|error| Error::io(Code::FileUnreadable, path.display(), &error))?;
        fetched.files.insert(file.path.clone(), (file.clone(), path, metadata.ino()));
    }
    Ok(fetched)
}

fn take_next<'a>(next: &AtomicUsize, wanted: &[&'a FileRef]) -> Option<(usize, &'a FileRef)> {
    let number = next.fetch_add(1, Ordering::Relaxed);
    Some((number, *wanted.get(number)?))
}

fn local_path(dir: &Path, number: usize) -> PathBuf {
    dir.join(format!("{number}.sst"))
}

impl Fetched {
    /// A link to the file, for a database to take.
    pub(super) fn link(&self, file: &FileRef) -> Result<PathBuf> {
        let (_, path, _) = self.files.get(&file.path).ok_or_else(|| Error::internal("a state file was not fetched"))?;
        let link = self.dir.join(format!("link-{}.sst", self.links.fetch_add(1, Ordering::Relaxed)));
        fs::hard_link(path, &link).map_err(|error| Error::io(Code::NotWritable, link.display(), &error))?;
        Ok(link)
    }

    pub(super) fn len(&self) -> usize {
        self.files.len()
    }

    pub(super) fn inodes(&self) -> impl Iterator<Item = (u64, &FileRef)> {
        self.files.values().map(|(file, _, inode)| (*inode, file))
    }
}

impl Drop for Fetched {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_dir_all(&self.dir) {
            tracing::debug!(path = %self.dir.display(), %error, "fetched files could not be removed");
        }
    }
}
