//! What the operator and the runtime report of a StreamJob.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::upgrade::UpgradeMode;

mod restore;
mod run;

pub use restore::{AppliedSource, ChosenPoint, RestorePoint, RestorePointKind, RestoreStatus};
pub use run::{
    AutoscalerStatus, CheckpointStatus, CompletedCheckpoint, ErrorStatus, FailedCheckpoint, JobManagerCounts, Restarts,
    SavepointSummary, TaskManagerCounts, Throughput, VertexLoad,
};

/// What is known of the job. Written by the operator only.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct StreamJobStatus {
    /// The generation that this whole status describes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// Where the job stands in its life.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub phase: Option<Phase>,
    /// Whether it does well there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub health: Option<HealthState>,
    /// Accepted, Ready, Progressing, Degraded, Restorable, Upgraded, Blocked, Autoscaling.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(max = 16),
        extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"])
    )]
    pub conditions: Vec<Condition>,
    /// The running or pending launch.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub launch: Option<Launch>,
    /// The transition in progress.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub transition: Option<Transition>,
    /// Names of the ControllerRevisions that hold specs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub revisions: Option<Revisions>,
    /// Effective storage, as recorded when the job was accepted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub storage: Option<RecordedStorage>,
    /// What the job can be restored from, and what it was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub restore: Option<RestoreStatus>,
    /// Checkpoints, from the runtime's own counters.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub checkpoint: Option<CheckpointStatus>,
    /// Savepoints: the last one, the next one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub savepoint: Option<SavepointSummary>,
    /// Subtasks per vertex that run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parallelism: Option<u32>,
    /// Number of key groups, as recorded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_parallelism: Option<u32>,
    /// Label selector of the TaskManagers, for the scale subresource.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 1024))]
    pub selector: Option<String>,
    /// TaskManager pods.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task_managers: Option<TaskManagerCounts>,
    /// JobManager pods.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub job_managers: Option<JobManagerCounts>,
    /// Restarts of this launch.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub restarts: Option<Restarts>,
    /// The last error, redacted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_error: Option<ErrorStatus>,
    /// Rounded figures for `kubectl get`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub throughput: Option<Throughput>,
    /// What the autoscaler sees and wants.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub autoscaler: Option<AutoscalerStatus>,
    /// How the last upgrade went.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_upgrade: Option<LastUpgrade>,
    /// Last value of the restart annotation that was acted on.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 253))]
    pub seen_restart: Option<String>,
    /// Where REST and the web UI answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub endpoints: Option<Endpoints>,
    /// Version of the runtime that runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64))]
    pub runtime_version: Option<String>,
    /// Lease term of the leader that wrote this.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub writer: Option<i64>,
}

/// Where a job stands in its life.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Phase {
    Pending,
    Preparing,
    Stopping,
    Starting,
    Stabilizing,
    Running,
    Rescaling,
    RollingBack,
    Suspended,
    Finished,
    Failed,
    Blocked,
    Deleting,
}

/// Whether a job does well.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum HealthState {
    Healthy,
    Degraded,
    Blocked,
    Failed,
    Unknown,
}

/// One start of the job, ordered by the operator.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Launch {
    /// Only grows.
    pub number: i64,
    /// The id that paths and labels carry.
    #[schemars(length(max = 64))]
    pub id: String,
    /// Name of the revision that it runs.
    #[schemars(length(max = 253))]
    pub revision: String,
    /// When it was ordered.
    pub started_at: Time,
    /// It must run by then.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deadline: Option<Time>,
    /// Repeats of a request carry the same key.
    #[schemars(length(max = 64))]
    pub key: String,
}

/// A transition between two phases.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Transition {
    /// The phase that is under way.
    pub kind: Phase,
    /// When it began.
    pub started_at: Time,
    /// It ends by then, one way or the other.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deadline: Option<Time>,
    /// Tries so far.
    #[serde(default)]
    pub attempt: u32,
    /// Whether the point of no return is behind it.
    #[serde(default)]
    pub irreversible: bool,
}

/// Names of ControllerRevisions.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Revisions {
    /// The newest spec that is valid.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 253))]
    pub accepted: Option<String>,
    /// The newest spec that has proved itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 253))]
    pub stable: Option<String>,
    /// The spec that a transition leads to.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 253))]
    pub target: Option<String>,
}

/// Effective prefixes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct RecordedStorage {
    /// Of checkpoints.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 1024))]
    pub checkpoint: Option<String>,
    /// Of savepoints.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 1024))]
    pub savepoint: Option<String>,
}

/// How an upgrade went.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LastUpgrade {
    /// Revision before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 253))]
    pub from: Option<String>,
    /// Revision after.
    #[schemars(length(max = 253))]
    pub to: String,
    /// What the edit did to the running job.
    pub class: EditClass,
    /// What it started from.
    pub mode: UpgradeMode,
    /// How it ended.
    pub result: UpgradeResult,
    /// Milliseconds between the last output before and the first after.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gap_ms: Option<i64>,
}

/// What an edit does to a running job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum EditClass {
    Live,
    Rescale,
    Upgrade,
}

/// How an upgrade ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum UpgradeResult {
    InProgress,
    Succeeded,
    Failed,
    RolledBack,
}

/// Addresses inside the cluster.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Endpoints {
    /// The REST address.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 1024))]
    pub rest: Option<String>,
    /// The web UI's address.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 1024))]
    pub ui: Option<String>,
}
