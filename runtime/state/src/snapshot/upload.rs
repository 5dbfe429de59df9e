//! Files to checkpoint storage under names that nobody else uses, and back with their checksums checked.

use std::{
    fs,
    io::{self, BufWriter, Read, Write},
    path::{Path, PathBuf},
    sync::atomic::{AtomicU64, Ordering},
};

use bytes::Bytes;
use streamkeeper_storage::{PutMode, PutOutcome, Storage, StorageError};
use streamkeeper_types::{Code, Error, FileRef, FileScope, Result, ResultExt, key_group};

use super::{SnapshotKind, SnapshotRequest, StateObject};

/// Larger objects are written by way of a local file instead of memory.
const IN_MEMORY_UP_TO: u64 = 32 << 20;

/// Where a snapshot's files go.
#[derive(Debug, Clone)]
pub(crate) struct Folder {
    path: String,
    scope: FileScope,
    prefix: String,
}

impl Folder {
    pub(crate) fn of(request: &SnapshotRequest) -> Self {
        let (path, scope) = match request.kind {
            SnapshotKind::Checkpoint => ("shared".to_owned(), FileScope::Shared),
            SnapshotKind::Savepoint => (request.target.clone(), FileScope::Private),
        };
        Self { path, scope, prefix: format!("{}-{}", request.unique, request.id) }
    }

    fn new_path(&self, extension: &str) -> String {
        // Apart from other operators of the same attempt, and from a repeated upload.
        static NEXT: AtomicU64 = AtomicU64::new(0);
        format!("{}/{}-{}.{extension}", self.path, self.prefix, NEXT.fetch_add(1, Ordering::Relaxed))
    }
}

/// Writes the files of one snapshot.
#[derive(Debug)]
pub(crate) struct Uploader<'a> {
    pub storage: &'a dyn Storage,
    pub folder: &'a Folder,
    /// For files on their way.
    pub work_dir: &'a Path,
}

impl Uploader<'_> {
    pub(crate) fn object(&self, object: &StateObject, extension: &str) -> Result<FileRef> {
        if object.size() > IN_MEMORY_UP_TO {
            let local = self.scratch(extension);
            let written = fs::File::create(&local)
                .and_then(|file| {
                    let mut out = BufWriter::new(file);
                    object.write(&mut out)?;
                    out.flush()
                })
                .map_err(|error| Error::io(Code::NotWritable, local.display(), &error));
            return written.and_then(|()| self.own_file(&local, extension));
        }
        let mut bytes = Vec::with_capacity(object.size() as usize + 4096);
        object.write(&mut bytes).or_code(Code::NotWritable, || "encoding state".into())?;
        let path = self.folder.new_path(extension);
        let (size, checksum) = (bytes.len() as u64, key_group::hash(&bytes));
        created(&path, self.storage.put(&path, bytes.into(), PutMode::Create))?;
        Ok(FileRef { path, size, checksum, scope: self.folder.scope })
    }

    /// Uploads a local file, which stays.
    pub(crate) fn file(&self, local: &Path, extension: &str) -> Result<FileRef> {
        let unreadable = |error: io::Error| Error::io(Code::FileUnreadable, local.display(), &error);
        let (size, checksum) = hash_file(local).map_err(unreadable)?;
        let path = self.folder.new_path(extension);
        created(&path, self.storage.put_file(&path, local, PutMode::Create))?;
        Ok(FileRef { path, size, checksum, scope: self.folder.scope })
    }

    /// Uploads a local file made for it, which goes.
    pub(crate) fn own_file(&self, local: &Path, extension: &str) -> Result<FileRef> {
        let uploaded = self.file(local, extension);
        if let Err(error) = fs::remove_file(local) {
            tracing::debug!(path = %local.display(), %error, "a temporary file could not be removed");
        }
        uploaded
    }

    /// A local path that nobody else uses.
    pub(crate) fn scratch(&self, extension: &str) -> PathBuf {
        let name = self.folder.new_path(extension);
        self.work_dir.join(name.rsplit('/').next().unwrap_or("state"))
    }
}

fn created(path: &str, outcome: Result<PutOutcome, StorageError>) -> Result<()> {
    match outcome? {
        PutOutcome::Done => Ok(()),
        PutOutcome::Exists => Err(Error::new(Code::Storage, format!("`{path}` exists already"))),
    }
}

fn hash_file(path: &Path) -> io::Result<(u64, u64)> {
    let mut file = fs::File::open(path)?;
    let mut hash = xxhash_rust::xxh3::Xxh3::new();
    let mut buffer = vec![0; 256 << 10];
    let mut size = 0;
    loop {
        let read = file.read(&mut buffer)?;
        if read == 0 {
            return Ok((size, hash.digest()));
        }
        size += read as u64;
        hash.update(&buffer[..read]);
    }
}

/// Reads a file of a snapshot into memory.
///
/// # Errors
/// `SNAPSHOT_CORRUPT` if it is missing or not the file that the manifest means, else `STORAGE`.
pub(crate) fn fetch(storage: &dyn Storage, file: &FileRef) -> Result<Bytes> {
    let bytes = storage.get(&file.path).map_err(|error| missing(file, error))?;
    check(file, bytes.len() as u64, key_group::hash(&bytes))?;
    Ok(bytes)
}

/// Puts a file of a snapshot at `local`, by link where the storage can.
///
/// # Errors
/// `SNAPSHOT_CORRUPT` if it is missing or not the file that the manifest means, else `STORAGE`.
pub fn fetch_to_file(storage: &dyn Storage, file: &FileRef, local: &Path) -> Result<()> {
    storage.get_to_file(&file.path, local).map_err(|error| missing(file, error))?;
    let (size, checksum) =
        hash_file(local).map_err(|error| Error::io(Code::FileUnreadable, local.display(), &error))?;
    check(file, size, checksum)
}

fn missing(file: &FileRef, error: StorageError) -> Error {
    match error {
        StorageError::NotFound { .. } => corrupt(file, "is missing"),
        other => other.into(),
    }
}

fn check(file: &FileRef, size: u64, checksum: u64) -> Result<()> {
    if size != file.size {
        return Err(corrupt(file, &format!("has {size} bytes instead of {}", file.size)));
    }
    if checksum != file.checksum {
        return Err(corrupt(file, "has another content than when it was written"));
    }
    Ok(())
}

fn corrupt(file: &FileRef, what: &str) -> Error {
    Error::new(Code::SnapshotCorrupt, format!("state file `{}` {what}", file.path))
        .way_out("restore from another checkpoint or savepoint")
}
