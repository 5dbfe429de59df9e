//! The options that travel with a trigger and its barriers (runtime-rules.md §3.1).

use serde::{Deserialize, Serialize};
use streamkeeper_types::{CheckpointId, Millis};

/// Separates the records before a snapshot's cut from those after it, on every channel.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Barrier {
    pub id: CheckpointId,
    /// When the coordinator triggered it.
    pub timestamp: Millis,
    pub kind: CheckpointKind,
    pub format: SnapshotFormat,
    /// Folder for files that belong to this snapshot alone, relative to the job's folder (`chk-7`, `savepoints/x`).
    pub target: String,
    /// Write everything, refer to no earlier file.
    pub full: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CheckpointKind {
    /// Periodic or on request; a recovery point.
    Checkpoint,
    /// Intermediate savepoint: not a recovery point, commits nothing (R18).
    Savepoint,
    /// Sources stop at the cut; the job ends after it. A recovery point.
    StopSavepoint {
        /// End watermark and end of input first.
        drain: bool,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SnapshotFormat {
    /// The backend's own files.
    Native,
    /// Parquet, independent of backend and version.
    Canonical,
}

impl CheckpointKind {
    /// Whether a restart may choose it, and so whether sinks commit on it.
    #[must_use]
    pub fn is_recovery_point(self) -> bool {
        !matches!(self, Self::Savepoint)
    }

    #[must_use]
    pub fn is_savepoint(self) -> bool {
        !matches!(self, Self::Checkpoint)
    }

    #[must_use]
    pub fn is_stop(self) -> bool {
        matches!(self, Self::StopSavepoint { .. })
    }
}
