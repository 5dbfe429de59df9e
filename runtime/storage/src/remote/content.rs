//! Ends of a transfer on our side: bytes in memory or a local file. Files are read and written on the storage threads,
//! in steps of one part at most.

use std::{
    fs::{self, File},
    io::{Read, Seek, SeekFrom, Write},
    ops::Range,
    path::{Path, PathBuf},
};

use bytes::Bytes;
use streamkeeper_types::{Code, Error};
use tokio::task::block_in_place;

use super::failure::Failure;

/// What is uploaded.
#[derive(Debug)]
pub(super) enum Content {
    Bytes(Bytes),
    /// A file that nobody changes meanwhile.
    File {
        path: PathBuf,
        size: u64,
    },
}

impl Content {
    pub(super) fn of_file(path: &Path) -> Result<Self, Error> {
        let size = fs::metadata(path).map_err(|error| Error::io(Code::Storage, path.display(), &error))?.len();
        Ok(Self::File { path: path.to_owned(), size })
    }

    pub(super) fn size(&self) -> u64 {
        match self {
            Self::Bytes(bytes) => bytes.len() as u64,
            Self::File { size, .. } => *size,
        }
    }

    /// Bytes `range`, which lies within the content.
    pub(super) fn read(&self, range: Range<u64>) -> Result<Bytes, Failure> {
        match self {
            Self::Bytes(bytes) => {
                let bound = |at: u64| usize::try_from(at).unwrap_or(usize::MAX).min(bytes.len());
                Ok(bytes.slice(bound(range.start)..bound(range.end)))
            }
            Self::File { path, .. } => block_in_place(|| read_file(path, range))
                .map_err(|error| Failure::Refused(Error::io(Code::Storage, path.display(), &error))),
        }
    }
}

fn read_file(path: &Path, range: Range<u64>) -> std::io::Result<Bytes> {
    let mut file = File::open(path)?;
    file.seek(SeekFrom::Start(range.start))?;
    let mut bytes = vec![0; usize::try_from(range.end - range.start).map_err(std::io::Error::other)?];
    file.read_exact(&mut bytes)?;
    Ok(bytes.into())
}

/// Where a download goes.
#[derive(Debug)]
pub(super) enum Sink {
    Bytes(Vec<u8>),
    /// A file under a temporary name, until [`Sink::finish`].
    File {
        file: File,
        temporary: PathBuf,
        target: PathBuf,
    },
}

impl Sink {
    pub(super) fn to_file(target: &Path) -> Result<Self, Error> {
        let mut name = target.as_os_str().to_owned();
        name.push(format!(".{:016x}.part", rand::random::<u64>()));
        let temporary = PathBuf::from(name);
        let file = File::create_new(&temporary).map_err(|e| Error::io(Code::Storage, temporary.display(), &e))?;
        Ok(Self::File { file, temporary, target: target.to_owned() })
    }

    pub(super) fn write(&mut self, chunk: &[u8]) -> Result<(), Failure> {
        match self {
            Self::Bytes(bytes) => {
                bytes.extend_from_slice(chunk);
                Ok(())
            }
            Self::File { file, temporary, .. } => block_in_place(|| file.write_all(chunk))
                .map_err(|error| Failure::Refused(Error::io(Code::Storage, temporary.display(), &error))),
        }
    }

    /// Forgets what was written: the object has to be read from its start.
    pub(super) fn restart(&mut self) -> Result<(), Failure> {
        match self {
            Self::Bytes(bytes) => {
                bytes.clear();
                Ok(())
            }
            Self::File { file, temporary, .. } => block_in_place(|| file.set_len(0).and_then(|()| file.rewind()))
                .map_err(|error| Failure::Refused(Error::io(Code::Storage, temporary.display(), &error))),
        }
    }

    /// The bytes; for a file none, but it has its name now, in place of what was there.
    pub(super) fn finish(mut self) -> Result<Bytes, Error> {
        match &mut self {
            Self::Bytes(bytes) => Ok(std::mem::take(bytes).into()),
            Self::File { temporary, target, .. } => fs::rename(&*temporary, &*target)
                .map(|()| Bytes::new())
                .map_err(|error| Error::io(Code::Storage, target.display(), &error)),
        }
    }
}

impl Drop for Sink {
    fn drop(&mut self) {
        if let Self::File { temporary, .. } = self {
            // After `finish` the name is gone; otherwise half a file must not stay.
            let _ = fs::remove_file(temporary);
        }
    }
}
