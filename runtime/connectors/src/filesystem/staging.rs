//! Files in two phases: written where nobody looks, given their names when their checkpoint is complete.
//!
//! ```text
//! <folder>/.staging-<job>-<operator>/part-…     written, flushed to disk before the barrier (prepared)
//! <folder>/<partition>/part-…                   after the checkpoint is in the log: a rename (committed)
//! ```
//! A prepared file is an item of the operator's state. After a restore everything in the restored state is committed
//! again, which changes nothing where it was done before (R17). Files that a crashed attempt left behind stay until a
//! newer checkpoint completed (B77): then every subtask has committed what it was restored with, so that whatever still
//! lies there belongs to nobody. Each subtask removes those with its own number, or with a number that no subtask has now.

use std::{
    collections::BTreeSet,
    fs::{self, File},
    io::{self, Write},
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};
use streamkeeper_engine::SubtaskInfo;
use streamkeeper_storage::crash_points::reach;
use streamkeeper_types::{CheckpointId, Code, Error, Result};

use super::staging_folder;
use crate::versioned;

const VERSION: u8 = 1;

/// A file that is whole and waits for its checkpoint.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Committable {
    /// Checkpoint that first covered it.
    checkpoint: CheckpointId,
    /// Name in the staging folder.
    staged: String,
    /// Path relative to the table's folder.
    target: String,
    /// Bytes.
    size: u64,
}

/// The staged files of one subtask.
pub(super) struct Staging {
    folder: PathBuf,
    staging: PathBuf,
    /// `<kind>-<operator>-<subtask>`, before the random part of each name.
    prefix: String,
    /// Whole, and since the last checkpoint.
    finished: Vec<Committable>,
    /// Covered by a checkpoint that is not known to be complete.
    prepared: Vec<Committable>,
    /// Found at the start; ours to remove once a newer checkpoint completed.
    leftovers: Vec<PathBuf>,
}

/// A file that is being written.
pub(super) struct StagedFile {
    pub(super) file: File,
    path: PathBuf,
    staged: String,
    target: String,
}

impl StagedFile {
    pub(super) fn write(&mut self, bytes: &[u8]) -> Result<()> {
        reach("sink-write-before");
        self.file.write_all(bytes).map_err(|e| failed(&self.path, &e))?;
        reach("sink-write-after");
        Ok(())
    }

    /// The same file for a writer of its own.
    pub(super) fn duplicate(&self) -> Result<File> {
        self.file.try_clone().map_err(|e| failed(&self.path, &e))
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }
}

impl Staging {
    /// Creates the folders, so that one that cannot be written shows before any row is read.
    ///
    /// # Errors
    /// `NOT_WRITABLE`, `DISK_FULL` or `SINK_FAILED`.
    pub(super) fn open(folder: &Path, job: &str, kind: &str, subtask: &SubtaskInfo) -> Result<Self> {
        let operator = subtask.operator.to_string();
        let staging = staging_folder(folder, job, &operator);
        fs::create_dir_all(&staging).map_err(|e| not_made(&staging, &e))?;
        let probe = staging.join(format!("probe-{:016x}", rand::random::<u64>()));
        File::create(&probe).and_then(|_| fs::remove_file(&probe)).map_err(|e| failed(&staging, &e))?;
        let is_ours = |number: u32| number % subtask.parallelism.max(1) == subtask.subtask.index;
        let leftovers = names_in(&staging)?.into_iter().filter(|name| subtask_of(name).is_some_and(is_ours));
        Ok(Self {
            leftovers: leftovers.map(|name| staging.join(name)).collect(),
            folder: folder.to_owned(),
            staging,
            prefix: format!("{kind}-{}-{}", &operator[..8], subtask.subtask.index),
            finished: Vec::new(),
            prepared: Vec::new(),
        })
    }

    /// A new file for rows of `partition` (`a=1/b=2`, or nothing).
    pub(super) fn create(&mut self, partition: &str, extension: &str) -> Result<StagedFile> {
        let staged = format!("{}-{:016x}.{extension}", self.prefix, rand::random::<u64>());
        let target = if partition.is_empty() { staged.clone() } else { format!("{partition}/{staged}") };
        let path = self.staging.join(&staged);
        reach("sink-create-before");
        let file = match File::create_new(&path) {
            // Another subtask removed the folder when it was empty.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                fs::create_dir_all(&self.staging).and_then(|()| File::create_new(&path))
            }
            other => other,
        };
        let file = file.map_err(|e| failed(&path, &e))?;
        reach("sink-create-after");
        Ok(StagedFile { file, path, staged, target })
    }

    /// The file is whole: makes it durable.
    pub(super) fn finish(&mut self, file: StagedFile) -> Result<()> {
        reach("sink-flush-before");
        let size = file.file.sync_all().and_then(|()| file.file.metadata()).map_err(|e| failed(&file.path, &e))?.len();
        reach("sink-flush-after");
        let StagedFile { staged, target, .. } = file;
        self.finished.push(Committable { checkpoint: CheckpointId(0), staged, target, size });
        Ok(())
    }

    /// Everything finished so far belongs to checkpoint `id`.
    pub(super) fn prepare(&mut self, id: CheckpointId) -> Result<()> {
        if self.finished.is_empty() {
            return Ok(());
        }
        sync_folder(&self.staging)?;
        self.prepared.extend(self.finished.drain(..).map(|file| Committable { checkpoint: id, ..file }));
        Ok(())
    }

    /// Files that wait for their checkpoint, as list items.
    pub(super) fn state(&self) -> Vec<Vec<u8>> {
        // Such a record always encodes.
        self.prepared.iter().filter_map(|file| versioned::encode(VERSION, file).ok()).collect()
    }

    /// Commits what the restored snapshot holds (R17).
    pub(super) fn restore(&mut self, items: &[Vec<u8>]) -> Result<()> {
        for item in items {
            self.prepared.push(versioned::decode(VERSION, item, "files of a filesystem sink")?);
        }
        self.publish(CheckpointId(u64::MAX))
    }

    /// Checkpoint `id` is complete: commits everything prepared at or below it (R16), then tidies up.
    pub(super) fn commit(&mut self, id: CheckpointId) -> Result<()> {
        self.publish(id)?;
        for leftover in self.leftovers.drain(..) {
            match fs::remove_file(&leftover) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    tracing::warn!(path = %leftover.display(), %error, "a file of an earlier attempt stays");
                }
                _ => {}
            }
        }
        // Only succeeds when no subtask has a file in it; `create` makes it anew.
        let _ = fs::remove_dir(&self.staging);
        Ok(())
    }

    fn publish(&mut self, up_to: CheckpointId) -> Result<()> {
        self.prepared.sort_by_key(|file| file.checkpoint);
        let due = self.prepared.partition_point(|file| file.checkpoint <= up_to);
        let mut folders = BTreeSet::new();
        for file in &self.prepared[..due] {
            let target = self.folder.join(&file.target);
            let folder = target.parent().unwrap_or(&self.folder).to_owned();
            publish_one(&self.staging.join(&file.staged), &target, &folder, file.size)?;
            folders.insert(folder);
        }
        // Durable before the next checkpoint can forget these files.
        folders.iter().try_for_each(|folder| sync_folder(folder))?;
        self.prepared.drain(..due);
        Ok(())
    }
}

/// Gives one file its name, unless it has it.
fn publish_one(staged: &Path, target: &Path, folder: &Path, size: u64) -> Result<()> {
    match fs::metadata(staged) {
        Ok(meta) if meta.len() == size => {}
        Ok(meta) => {
            let cause = format!("{} has {} bytes instead of {size}", staged.display(), meta.len());
            return Err(Error::new(Code::SinkFailed, cause)
                .way_out("something else wrote to the staging folder; restore from a snapshot before that"));
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            if !target.exists() {
                // Committed before, and then moved on by whoever reads the folder.
                tracing::warn!(path = %target.display(), "a file that is to be committed is neither staged nor there");
            }
            return Ok(());
        }
        Err(error) => return Err(failed(staged, &error)),
    }
    fs::create_dir_all(folder).map_err(|e| not_made(folder, &e))?;
    reach("sink-commit-before");
    fs::rename(staged, target).map_err(|e| failed(target, &e))?;
    reach("sink-commit-after");
    Ok(())
}

fn names_in(folder: &Path) -> Result<Vec<String>> {
    let entries = fs::read_dir(folder).map_err(|e| failed(folder, &e))?;
    let names = entries.map(|entry| entry.map(|entry| entry.file_name().to_string_lossy().into_owned()));
    names.collect::<io::Result<_>>().map_err(|e| failed(folder, &e))
}

/// The subtask number in `<kind>-<operator>-<subtask>-<random>.<extension>`.
fn subtask_of(name: &str) -> Option<u32> {
    name.rsplit('-').nth(1)?.parse().ok()
}

fn sync_folder(folder: &Path) -> Result<()> {
    File::open(folder).and_then(|opened| opened.sync_all()).map_err(|e| failed(folder, &e))
}

/// An error while making a folder and those above it. Other causes than these do not mend themselves: restarting would
/// meet them for ever.
fn not_made(folder: &Path, error: &io::Error) -> Error {
    use io::ErrorKind::{Interrupted, OutOfMemory, QuotaExceeded, StaleNetworkFileHandle, StorageFull, TimedOut};
    match error.kind() {
        Interrupted | OutOfMemory | QuotaExceeded | StaleNetworkFileHandle | StorageFull | TimedOut => {
            failed(folder, error)
        }
        _ => not_writable(folder, error),
    }
}

fn not_writable(path: &Path, error: &io::Error) -> Error {
    Error::io(Code::NotWritable, path.display(), error).way_out("make the folder writable, or choose another 'path'")
}

/// An error while writing.
pub(super) fn failed(path: &Path, error: &io::Error) -> Error {
    match error.kind() {
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem | io::ErrorKind::NotADirectory => {
            not_writable(path, error)
        }
        _ => Error::io(Code::SinkFailed, path.display(), error),
    }
}
