//! Whether a savepoint may be removed.
//!
//! Its files are its own: no checkpoint refers to them (R28), so it is enough that the job does not begin with it.

use streamkeeper_checkpoint::{JobState, Manifest, RestoreSource, StartFrom, files, recovery};
use streamkeeper_storage::Storage;
use streamkeeper_types::{Code, Error, Result};

/// Refuses a savepoint that is being written.
///
/// # Errors
/// `CONFLICT`.
pub(super) fn refuse_if_written(folder: &str, is_written: bool) -> Result<()> {
    if is_written {
        return Err(conflict(folder, "it is being written").way_out("dispose of it when it has completed"));
    }
    Ok(())
}

/// The savepoint's manifest.
///
/// # Errors
/// `NOT_FOUND` if there is none, those of its decoding, and storage errors.
pub(super) fn manifest(storage: &dyn Storage, folder: &str) -> Result<Manifest> {
    if storage.head(&files::manifest_path(folder))?.is_none() {
        return Err(Error::new(Code::NotFound, format!("the job has no savepoint in `{folder}`"))
            .way_out("`streamkeeper state list` with the job's folder shows which there are"));
    }
    files::read_manifest(storage, folder)
}

/// Whether the savepoint may go: it is the job's own, and neither is what the job would begin with now nor what it was
/// told to begin with (B99).
///
/// # Errors
/// `CONFLICT` says who needs it, `SNAPSHOT_FOREIGN` whose it is.
pub(super) fn check(state: &JobState, job: &str, folder: &str, manifest: &Manifest) -> Result<()> {
    if !manifest.kind.is_savepoint() {
        return Err(conflict(folder, "it is a checkpoint, which the job removes by itself"));
    }
    if manifest.job != job {
        let cause = format!("the savepoint in `{folder}` was written by job {}", manifest.job);
        return Err(Error::new(Code::SnapshotForeign, cause).way_out("remove its folder by hand if nothing needs it"));
    }
    let path = files::manifest_path(folder);
    let is_start = match recovery::choose(state) {
        StartFrom::RecoveryPoint(point) => point.manifest == path,
        StartFrom::Source(RestoreSource::Savepoint { path }) => path == folder,
        StartFrom::Source(_) | StartFrom::Empty | StartFrom::Ended(_) => false,
    };
    if is_start {
        return Err(conflict(folder, "after a failure the job would begin with it")
            .way_out("dispose of it when a newer checkpoint has completed"));
    }
    Ok(())
}

fn conflict(folder: &str, why: &str) -> Error {
    Error::new(Code::Conflict, format!("the savepoint in `{folder}` stays: {why}"))
}

#[cfg(test)]
mod tests {
    use streamkeeper_checkpoint::CompletedCheckpoint;
    use streamkeeper_protocol::{CheckpointKind, SnapshotFormat};
    use streamkeeper_types::CheckpointId;

    use super::*;

    const STOP: CheckpointKind = CheckpointKind::StopSavepoint { drain: false };

    fn manifest(job: &str, kind: CheckpointKind) -> Manifest {
        Manifest {
            job: job.into(),
            checkpoint: CheckpointId(4),
            kind,
            format: SnapshotFormat::Canonical,
            time: 0,
            max_parallelism: 128,
            hash_version: 1,
            program: String::new(),
            operators: Vec::new(),
        }
    }

    fn point(id: u64, kind: CheckpointKind, folder: &str) -> CompletedCheckpoint {
        CompletedCheckpoint {
            id: CheckpointId(id),
            kind,
            format: SnapshotFormat::Canonical,
            manifest: files::manifest_path(folder),
            checksum: 0,
            size: 0,
            time: 0,
        }
    }

    fn code(state: &JobState, manifest: &Manifest) -> Option<Code> {
        check(state, "default/a", "savepoints/x", manifest).err().map(|error| error.code)
    }

    #[test]
    fn b99_what_the_job_would_begin_with_stays_until_a_newer_checkpoint() {
        let stop = manifest("default/a", STOP);
        let mut state = JobState { completed: vec![point(4, STOP, "savepoints/x")], ..JobState::default() };
        assert_eq!(code(&state, &stop), Some(Code::Conflict));
        state.completed.push(point(5, CheckpointKind::Checkpoint, "chk-5"));
        assert_eq!(code(&state, &stop), None);
    }

    #[test]
    fn b99_the_source_of_a_restore_stays_while_nothing_newer_exists() {
        let source = Some(RestoreSource::Savepoint { path: "savepoints/x".into() });
        let mut state = JobState { source, floor: CheckpointId(10), ..JobState::default() };
        let savepoint = manifest("default/a", CheckpointKind::Savepoint);
        assert_eq!(code(&state, &savepoint), Some(Code::Conflict));
        state.completed.push(point(10, CheckpointKind::Checkpoint, "chk-10"));
        assert_eq!(code(&state, &savepoint), None);
    }

    #[test]
    fn only_savepoints_of_this_job_go() {
        let state = JobState::default();
        assert_eq!(code(&state, &manifest("default/a", CheckpointKind::Savepoint)), None);
        assert_eq!(code(&state, &manifest("default/b", CheckpointKind::Savepoint)), Some(Code::SnapshotForeign));
        assert_eq!(code(&state, &manifest("default/a", CheckpointKind::Checkpoint)), Some(Code::Conflict));
    }
}
