//! What a job can be restored from, and what it was.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Restore points as last seen. A cache of the ledger beside the data.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct RestoreStatus {
    /// Highest id of a checkpoint or stop savepoint ever seen; no start goes below it without consent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub floor: Option<i64>,
    /// The newest restore point.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub newest: Option<RestorePoint>,
    /// What the last start used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub chosen: Option<ChosenPoint>,
    /// Number of entries in the ledger.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub entries: Option<i64>,
    /// Value of `restore.fromSavepoint` that was acted on.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 1024))]
    pub applied_from: Option<String>,
    /// Highest id that a person agreed to forget.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub discarded_up_to: Option<i64>,
}

/// One restore point.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RestorePoint {
    /// Its id.
    pub id: i64,
    /// What it is.
    pub kind: RestorePointKind,
    /// Where it lies.
    #[schemars(length(max = 1024))]
    pub uri: String,
    /// Generation of the JobManager that published it.
    pub fence: i64,
    /// Size of all its files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<i64>,
    /// Of its manifest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 128))]
    pub checksum: Option<String>,
    /// When it was complete.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completed_at: Option<Time>,
}

/// What a restore point is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum RestorePointKind {
    Checkpoint,
    StopSavepoint,
    Savepoint,
}

/// What a start used.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ChosenPoint {
    /// Absent after an empty start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub point: Option<RestorePoint>,
    /// Which rule chose it.
    pub source: AppliedSource,
    /// Why this one.
    #[schemars(length(max = 1024))]
    pub reason: String,
}

/// Which rule chose the state of a start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum AppliedSource {
    FromSavepoint,
    Discarded,
    Stateless,
    StopSavepoint,
    Newest,
    FirstStart,
}
