//! `file://`: objects as files of a folder, atomic and durable on any file system that has hard links.
//!
//! A write goes to a temporary file under `.tmp`, is flushed, and gets its name by a link (which never replaces) or a
//! rename (which does); then the folder is flushed. So a name never shows half a content, not even after a power cut.

use std::{
    fs::{self, File},
    io::{self, ErrorKind, Read, Seek, SeekFrom, Write},
    ops::Range,
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

use bytes::Bytes;
use streamkeeper_types::{Code, Error, Result};

use crate::{
    ObjectMeta, PutMode, PutOutcome, Storage, StorageError, StorageResult, crash_points, memory::out_of_range, path,
};

/// Temporary files of writers that died. No write takes as long.
const ABANDONED_AFTER: Duration = Duration::from_secs(24 * 3600);

/// Folder for temporary files; hidden, so that no object path names it.
const TEMPORARY: &str = ".tmp";

/// Attempts to enter a folder that a concurrent delete removes as empty.
const FOLDER_ATTEMPTS: usize = 8;

/// Storage in a folder of the local machine or of a shared file system.
#[derive(Debug, Clone)]
pub struct FileStorage {
    root: PathBuf,
}

impl FileStorage {
    /// Opens `root`, creating it if needed.
    ///
    /// # Errors
    /// `NOT_WRITABLE` or `DISK_FULL`.
    pub fn new(root: impl Into<PathBuf>) -> Result<Self> {
        let root = root.into();
        create_folders(&root.join(TEMPORARY)).map_err(|e| write_error(&root, &e))?;
        remove_abandoned(&root.join(TEMPORARY));
        Ok(Self { root })
    }

    fn file_of(&self, path: &str) -> StorageResult<PathBuf> {
        path::check(path).map_err(StorageError::Other)?;
        Ok(self.root.join(path))
    }

    fn temporary(&self) -> PathBuf {
        self.root.join(TEMPORARY).join(format!("{:032x}", rand::random::<u128>()))
    }

    /// Gives the finished temporary file its name and removes it as `temporary`.
    fn publish(&self, temporary: &Path, target: &Path, mode: PutMode) -> StorageResult<PutOutcome> {
        let named = name(temporary, target, mode);
        // After a rename it is gone already; a leftover is removed at a later start.
        let _ = fs::remove_file(temporary);
        let outcome = match named {
            Ok(()) => PutOutcome::Done,
            Err(e) if e.kind() == ErrorKind::AlreadyExists && mode == PutMode::Create => PutOutcome::Exists,
            Err(e) => return Err(StorageError::Other(write_error(target, &e))),
        };
        // The name is there but may not survive a power cut: nobody knows.
        sync_folder(target).map_err(|e| StorageError::Unknown(write_error(target, &e)))?;
        Ok(outcome)
    }
}

impl Storage for FileStorage {
    fn put(&self, path: &str, bytes: Bytes, mode: PutMode) -> StorageResult<PutOutcome> {
        let target = self.file_of(path)?;
        crash_points::around("put", path, || {
            let temporary = self.temporary();
            write_file(&temporary, &bytes).map_err(|e| {
                let _ = fs::remove_file(&temporary);
                StorageError::Other(write_error(&target, &e))
            })?;
            self.publish(&temporary, &target, mode)
        })
    }

    fn put_file(&self, path: &str, local: &Path, mode: PutMode) -> StorageResult<PutOutcome> {
        let target = self.file_of(path)?;
        crash_points::around("put", path, || {
            let temporary = self.temporary();
            link_or_copy(local, &temporary).and_then(|()| File::open(&temporary)?.sync_all()).map_err(|e| {
                let _ = fs::remove_file(&temporary);
                // What is missing is the local file; what has no space is the storage.
                let at = if e.kind() == ErrorKind::NotFound { local } else { &target };
                StorageError::Other(write_error(at, &e))
            })?;
            self.publish(&temporary, &target, mode)
        })
    }

    fn get(&self, path: &str) -> StorageResult<Bytes> {
        let file = self.file_of(path)?;
        fs::read(&file).map(Bytes::from).map_err(|e| read_error(path, &file, &e))
    }

    fn get_range(&self, path: &str, range: Range<u64>) -> StorageResult<Bytes> {
        let file = self.file_of(path)?;
        let fault = |e: io::Error| read_error(path, &file, &e);
        let mut opened = File::open(&file).map_err(fault)?;
        let size = opened.metadata().map_err(fault)?.len();
        let length = range.end.checked_sub(range.start).filter(|_| range.end <= size);
        let Some(length) = length.and_then(|length| usize::try_from(length).ok()) else {
            return Err(StorageError::Other(out_of_range(path, &range, size)));
        };
        let mut bytes = vec![0; length];
        opened.seek(SeekFrom::Start(range.start)).and_then(|_| opened.read_exact(&mut bytes)).map_err(fault)?;
        Ok(bytes.into())
    }

    fn get_to_file(&self, path: &str, local: &Path) -> StorageResult<()> {
        let file = self.file_of(path)?;
        match fs::remove_file(local) {
            Err(e) if e.kind() != ErrorKind::NotFound => return Err(StorageError::Other(write_error(local, &e))),
            _ => {}
        }
        if !file.exists() {
            return Err(StorageError::not_found(path));
        }
        link_or_copy(&file, local).map_err(|e| StorageError::Other(write_error(local, &e)))
    }

    fn list(&self, folder: &str) -> StorageResult<Vec<ObjectMeta>> {
        path::check_folder(folder).map_err(StorageError::Other)?;
        let mut found = Vec::new();
        let start = if folder.is_empty() { self.root.clone() } else { self.root.join(folder) };
        walk(&start, folder, &mut found).map_err(|e| read_error(folder, &start, &e))?;
        found.sort_unstable();
        Ok(found)
    }

    fn delete(&self, path: &str) -> StorageResult<()> {
        let file = self.file_of(path)?;
        crash_points::around("delete", path, || match fs::remove_file(&file) {
            Err(e) if e.kind() != ErrorKind::NotFound => Err(StorageError::Other(write_error(&file, &e))),
            _ => {
                // An empty folder is no object and nobody lists it; a full one stays, that is what the error says.
                if let Some(folder) = file.parent().filter(|folder| *folder != self.root) {
                    let _ = fs::remove_dir(folder);
                }
                Ok(())
            }
        })
    }

    fn head(&self, path: &str) -> StorageResult<Option<ObjectMeta>> {
        let file = self.file_of(path)?;
        match fs::metadata(&file) {
            Ok(meta) if meta.is_file() => Ok(Some(ObjectMeta { path: path.to_owned(), size: meta.len() })),
            Ok(_) => Ok(None),
            Err(e) if e.kind() == ErrorKind::NotFound => Ok(None),
            Err(e) => Err(read_error(path, &file, &e)),
        }
    }
}

/// Links or renames, making the target's folder as often as a concurrent delete takes it away.
fn name(temporary: &Path, target: &Path, mode: PutMode) -> io::Result<()> {
    let mut attempts = 0;
    loop {
        if let Some(folder) = target.parent() {
            create_folders(folder)?;
        }
        let result = match mode {
            PutMode::Create => fs::hard_link(temporary, target),
            PutMode::Overwrite => fs::rename(temporary, target),
        };
        attempts += 1;
        match result {
            Err(e) if e.kind() == ErrorKind::NotFound && attempts < FOLDER_ATTEMPTS => {}
            result => return result,
        }
    }
}

fn write_file(file: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut opened = File::create_new(file)?;
    opened.write_all(bytes)?;
    opened.sync_all()
}

fn link_or_copy(from: &Path, to: &Path) -> io::Result<()> {
    match fs::hard_link(from, to) {
        // Another file system, or one without links.
        Err(e) if e.kind() != ErrorKind::NotFound && e.kind() != ErrorKind::AlreadyExists => {
            fs::copy(from, to).map(|_| ())
        }
        result => result,
    }
}

/// Like `create_dir_all`, and each new folder's name is durable.
fn create_folders(folder: &Path) -> io::Result<()> {
    if folder.is_dir() {
        return Ok(());
    }
    if let Some(parent) = folder.parent() {
        create_folders(parent)?;
    }
    match fs::create_dir(folder) {
        Err(e) if e.kind() == ErrorKind::AlreadyExists && folder.is_dir() => Ok(()),
        Err(e) => Err(e),
        Ok(()) => sync_folder(folder),
    }
}

/// Makes the name `file` durable: flushes the folder that it lies in.
fn sync_folder(file: &Path) -> io::Result<()> {
    match file.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => File::open(folder)?.sync_all(),
        _ => File::open(".")?.sync_all(),
    }
}

/// Collects files below `folder`. What vanishes during the walk was not there.
fn walk(folder: &Path, prefix: &str, found: &mut Vec<ObjectMeta>) -> io::Result<()> {
    let entries = match fs::read_dir(folder) {
        Err(e) if matches!(e.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => return Ok(()),
        entries => entries?,
    };
    for entry in entries {
        let entry = entry?;
        let name = entry.file_name();
        let Some(name) = name.to_str().filter(|name| !name.starts_with('.')) else { continue };
        let path = if prefix.is_empty() { name.to_owned() } else { format!("{prefix}/{name}") };
        match entry.metadata() {
            Ok(meta) if meta.is_dir() => walk(&entry.path(), &path, found)?,
            Ok(meta) => found.push(ObjectMeta { path, size: meta.len() }),
            Err(e) if e.kind() == ErrorKind::NotFound => {}
            Err(e) => return Err(e),
        }
    }
    Ok(())
}

/// Best effort: what cannot be judged or removed stays.
fn remove_abandoned(folder: &Path) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    let now = SystemTime::now();
    for entry in entries.flatten() {
        let modified = entry.metadata().and_then(|meta| meta.modified());
        let age = modified.ok().and_then(|modified| now.duration_since(modified).ok());
        if age.is_some_and(|age| age > ABANDONED_AFTER) {
            let _ = fs::remove_file(entry.path());
        }
    }
}

fn write_error(file: &Path, error: &io::Error) -> Error {
    match error.kind() {
        ErrorKind::PermissionDenied
        | ErrorKind::ReadOnlyFilesystem
        | ErrorKind::NotADirectory
        | ErrorKind::AlreadyExists => Error::new(Code::NotWritable, format!("{}: {error}", file.display()))
            .way_out("make the folder writable for this user, or choose another checkpoint storage"),
        ErrorKind::Unsupported => Error::new(Code::Storage, format!("{}: {error}", file.display()))
            .way_out("checkpoint storage needs a file system with hard links; choose another folder"),
        _ => Error::io(Code::Storage, file.display(), error),
    }
}

fn read_error(path: &str, file: &Path, error: &io::Error) -> StorageError {
    match error.kind() {
        ErrorKind::NotFound => StorageError::not_found(path),
        _ => StorageError::Other(Error::io(Code::Storage, file.display(), error)),
    }
}
