//! What takes time: a POST answers with a request's id, under `/requests/{request}` its outcome is kept for five minutes.

use serde::{Deserialize, Serialize};
use streamkeeper_types::Millis;
use utoipa::ToSchema;

use super::Failure;

/// Answer to a POST that goes on in the background.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Accepted {
    pub request: String,
}

/// `/requests/{request}`
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct OperationView {
    pub request: String,
    pub kind: OperationKind,
    pub state: OperationState,
    #[schema(value_type = i64)]
    pub started_at: Millis,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<i64>)]
    pub ended_at: Option<Millis>,
    /// Of a completed checkpoint, savepoint or stop.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub savepoint: Option<SavepointResult>,
    /// Of a failed one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<Failure>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum OperationKind {
    Checkpoint,
    Savepoint,
    Stop,
    /// Stops the tasks without a snapshot.
    Cancel,
    Disposal,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum OperationState {
    InProgress,
    Completed,
    Failed,
}

/// A snapshot that was taken.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SavepointResult {
    pub id: u64,
    /// What `--restore` takes: the folder's URL.
    pub location: String,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SavepointFormat {
    /// Parquet, for every backend and parallelism.
    #[default]
    Canonical,
    /// The backend's own files: quicker, for the same backend.
    Native,
}

/// POST `/jobs/{job}/savepoints`
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SavepointRequest {
    /// Of the folder below the job's `savepoints`; by default one with the time in it.
    #[serde(default)]
    pub name: Option<String>,
    #[serde(default)]
    pub format: SavepointFormat,
}

/// POST `/jobs/{job}/stop`: ends the job by a savepoint from which it can go on.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct StopRequest {
    #[serde(default)]
    pub name: Option<String>,
    #[serde(default)]
    pub format: SavepointFormat,
    /// Fire all windows and timers first, as at the end of input.
    #[serde(default)]
    pub drain: bool,
}

/// PUT `/jobs/{job}/resources`
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RescaleRequest {
    pub parallelism: u32,
    /// By default the parallelism: it runs so or not at all.
    #[serde(default)]
    pub least: Option<u32>,
}

/// POST `/savepoint-disposal`: removes a savepoint of this job and all files that nothing else needs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct DisposalRequest {
    /// Name or location of the savepoint.
    pub savepoint: String,
}
