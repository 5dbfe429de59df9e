//! What a snapshot is to be.

use streamkeeper_types::CheckpointId;

/// What the task asks of its keyed state at a cut.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SnapshotRequest {
    pub id: CheckpointId,
    pub kind: SnapshotKind,
    pub format: SnapshotFormat,
    pub extent: Extent,
    /// Folder for files of this snapshot alone, relative to the job's folder: `chk-7`, `savepoints/x`.
    pub target: String,
    /// Part of file names that no other attempt of any subtask ever uses (R22).
    pub unique: String,
}

/// Whether later snapshots build upon this one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SnapshotKind {
    /// Files are shared with later checkpoints.
    Checkpoint,
    /// Stands alone in its target folder; changes nothing for later checkpoints.
    Savepoint,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SnapshotFormat {
    /// The backend's own files.
    Native,
    /// Parquet; always of [`SnapshotKind::Savepoint`].
    Canonical,
}

/// Whether earlier files may be referred to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Extent {
    /// Refers to files of confirmed checkpoints (R21).
    Incremental,
    /// Uploads everything.
    Full,
}
