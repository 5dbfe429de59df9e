//! Checkpoints and savepoints.

use serde::{Deserialize, Serialize};
use streamkeeper_types::Millis;
use utoipa::ToSchema;

use super::Failure;

/// `/jobs/{job}/checkpoints`
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct CheckpointList {
    pub counts: CheckpointCounts,
    /// Newest first; the latest that are kept.
    pub checkpoints: Vec<CheckpointView>,
}

/// Of this reign.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct CheckpointCounts {
    pub completed: u64,
    pub failed: u64,
    pub in_progress: u64,
    /// The newest completed checkpoint or savepoint.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last: Option<CheckpointView>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct CheckpointView {
    pub id: u64,
    pub kind: SnapshotKind,
    pub state: CheckpointState,
    #[schema(value_type = i64)]
    pub triggered_at: Millis,
    /// From trigger to the record in the log, or to the failure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<u64>,
    pub acknowledged: u64,
    pub tasks: u64,
    /// Microseconds from the trigger to the first barrier, of the slowest task.
    pub start_delay_us: u64,
    /// Microseconds from the first barrier to the last, of the slowest task.
    pub alignment_us: u64,
    /// The longest time in microseconds that a task did not process records.
    pub sync_us: u64,
    /// The longest upload of a task in microseconds.
    pub async_us: u64,
    /// Written for it.
    pub uploaded_bytes: u64,
    /// Of everything that it refers to.
    pub full_bytes: u64,
    /// Of a completed one: the folder's URL, which `--restore` takes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub location: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<Failure>,
    /// Parts of the tasks; only in the answer for one checkpoint, and only while the JobManager remembers them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub by_task: Vec<CheckpointTask>,
}

/// One task's part of a checkpoint.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct CheckpointTask {
    /// As in `2/0` for vertex and subtask.
    pub task: String,
    pub start_delay_us: u64,
    pub alignment_us: u64,
    pub sync_us: u64,
    pub async_us: u64,
    pub uploaded_bytes: u64,
    pub full_bytes: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SnapshotKind {
    Checkpoint,
    Savepoint,
    /// A savepoint that ends the job.
    Stop,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CheckpointState {
    InProgress,
    Completed,
    Failed,
    /// Nobody knows yet whether its record was written.
    InDoubt,
}
