//! How a running job does: checkpoints, pods, restarts, load.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::autoscaler::AutoscalerMode;

/// Checkpoints, from the runtime's own counters.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct CheckpointStatus {
    /// The newest completed one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_completed: Option<CompletedCheckpoint>,
    /// The newest failed one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_failed: Option<FailedCheckpoint>,
    /// Failures since the last success.
    pub consecutive_failures: u32,
}

/// A completed checkpoint.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CompletedCheckpoint {
    /// Its id.
    pub id: i64,
    /// When it completed.
    pub at: Time,
    /// Milliseconds from trigger to completion.
    pub duration_ms: i64,
    /// Bytes that it wrote.
    pub bytes: i64,
}

/// A failed checkpoint.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FailedCheckpoint {
    /// Its id.
    pub id: i64,
    /// When it failed.
    pub at: Time,
    /// Stable code, as listed in the reference.
    #[schemars(length(max = 64))]
    pub code: String,
}

/// Savepoints: the last one, the next one.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct SavepointSummary {
    /// Name of the last Savepoint object.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 253))]
    pub last: Option<String>,
    /// When the schedule is due next.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_due: Option<Time>,
    /// Last value of the savepoint annotation that was acted on.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 253))]
    pub seen_trigger: Option<String>,
}

/// TaskManager pods.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct TaskManagerCounts {
    /// Pods that are ready.
    pub ready: u32,
    /// Pods that there should be.
    pub desired: u32,
}

/// JobManager pods.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct JobManagerCounts {
    /// Pods that are ready.
    pub ready: u32,
    /// Name of the pod that leads.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 253))]
    pub leader: Option<String>,
}

/// Restarts of this launch.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Restarts {
    /// How many.
    pub count: u32,
    /// When the last one was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_at: Option<Time>,
    /// Stable code of its cause.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64))]
    pub last_code: Option<String>,
}

/// An error, redacted.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ErrorStatus {
    /// Stable code, as listed in the reference.
    #[schemars(length(max = 64))]
    pub code: String,
    /// Cause and way out.
    #[schemars(length(max = 1024))]
    pub message: String,
    /// When it happened.
    pub at: Time,
}

/// Rounded figures for `kubectl get`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Throughput {
    /// For example `84k`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 16))]
    pub records_per_second: Option<String>,
    /// For example `3s`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 16))]
    pub lag: Option<String>,
}

/// What the autoscaler sees and wants.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AutoscalerStatus {
    /// The mode that it runs in.
    pub mode: AutoscalerMode,
    /// The parallelism that it wants.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<u32>,
    /// The `spec.parallelism` that it started from; another value there is newer intent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base: Option<u32>,
    /// Why it wants that, or holds still.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 1024))]
    pub reason: Option<String>,
    /// When it last decided.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<Time>,
    /// What it sees, vertex by vertex.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32))]
    pub vertices: Vec<VertexLoad>,
}

/// Load of one vertex. Rates are records per second.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct VertexLoad {
    /// Name of the vertex.
    #[schemars(length(max = 253))]
    pub name: String,
    /// Records that come in.
    pub rate: i64,
    /// Records that it could take.
    pub capacity: i64,
    /// In percent.
    pub utilization: u32,
    /// Records that wait.
    pub lag: i64,
    /// The parallelism that it alone would want.
    pub wanted: u32,
}
