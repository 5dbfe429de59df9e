//! A folder of this process alone for the state of its tasks.
//!
//! Several TaskManagers may share a folder, on one machine or on a volume; process ids do not tell them apart there. Each
//! takes a random name and locks a file beside its folder for as long as it lives:
//!
//! ```text
//! <folder>/taskmanager-<random>/        state, a cache of what checkpoints hold
//! <folder>/taskmanager-<random>.lock    locked: its process lives
//! ```
//! A process that was killed leaves both behind; whoever comes next finds the lock free and removes them.

use std::{
    fs::{self, File},
    io,
    path::{Path, PathBuf},
};

use streamkeeper_types::{Code, Error, Result};

const PREFIX: &str = "taskmanager-";
const LOCK: &str = "lock";
/// A lock file that is not locked yet.
const UNLOCKED: &str = "new";

/// Removed with all that is in it when dropped.
#[derive(Debug)]
pub(super) struct WorkFolder {
    path: PathBuf,
    lock: PathBuf,
    _locked: File,
}

impl WorkFolder {
    /// Takes a folder below `parent`, and removes what processes left there that are gone.
    ///
    /// # Errors
    /// `NOT_WRITABLE`.
    pub(super) fn claim(parent: &Path) -> Result<Self> {
        fs::create_dir_all(parent).map_err(|error| failed(parent, &error))?;
        sweep(parent);
        let path = parent.join(format!("{PREFIX}{:016x}", rand::random::<u64>()));
        let (unlocked, lock) = (path.with_extension(UNLOCKED), path.with_extension(LOCK));
        let file = File::create_new(&unlocked).map_err(|error| failed(&unlocked, &error))?;
        // The name by which others judge it comes when it is locked, so that nobody finds it free.
        file.lock().and_then(|()| fs::rename(&unlocked, &lock)).map_err(|error| failed(&lock, &error))?;
        fs::create_dir(&path).map_err(|error| failed(&path, &error))?;
        Ok(Self { path, lock, _locked: file })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for WorkFolder {
    fn drop(&mut self) {
        remove(&self.path, &self.lock);
    }
}

/// Removes the folders whose processes are gone.
fn sweep(parent: &Path) {
    let Ok(entries) = fs::read_dir(parent) else { return };
    for lock in entries.flatten().map(|entry| entry.path()) {
        let is_ours = lock.file_name().is_some_and(|name| name.to_string_lossy().starts_with(PREFIX));
        if !is_ours || lock.extension().is_none_or(|extension| extension != LOCK) {
            continue;
        }
        let Ok(file) = File::open(&lock) else { continue };
        if file.try_lock().is_ok() {
            remove(&lock.with_extension(""), &lock);
        }
    }
}

/// The folder first: without its lock nobody would look for it.
fn remove(folder: &Path, lock: &Path) {
    let removed = match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => fs::remove_file(lock),
    };
    if let Err(error) = removed
        && error.kind() != io::ErrorKind::NotFound
    {
        tracing::warn!(folder = %folder.display(), %error, "local state stays behind");
    }
}

fn failed(path: &Path, error: &io::Error) -> Error {
    Error::io(Code::NotWritable, path.display(), error)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn names(parent: &Path) -> Vec<String> {
        let mut names: Vec<String> =
            fs::read_dir(parent).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn what_a_killed_process_left_is_removed_and_what_others_use_stays() {
        let parent = tempfile::tempdir().unwrap();
        let alive = WorkFolder::claim(parent.path()).unwrap();
        fs::write(alive.path().join("state"), "ours").unwrap();
        let dead = parent.path().join("taskmanager-dead");
        fs::create_dir(&dead).unwrap();
        fs::write(dead.join("state"), "nobody's").unwrap();
        fs::write(dead.with_extension(LOCK), "").unwrap();
        fs::write(parent.path().join("foreign.lock"), "").unwrap();
        let second = WorkFolder::claim(parent.path()).unwrap();
        assert!(alive.path().join("state").exists());
        assert!(!dead.exists() && !dead.with_extension(LOCK).exists());
        drop((alive, second));
        assert_eq!(names(parent.path()), ["foreign.lock"]);
    }
}
