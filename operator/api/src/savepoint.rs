//! The `Savepoint`: one savepoint of a job, as an object that outlives it.
#![allow(clippy::duplicated_attributes, reason = "columns of one type are no duplicates")]

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::cel;
use crate::savepoint_policy::SavepointFormat;
use crate::text::{DurationText, StorageUri};

/// Which savepoint is wanted, or was made elsewhere. Only `deleteData`, `timeout` and `backoffLimit` can change.
#[derive(CustomResource, Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "streamkeeper.dev",
    version = "v1alpha1",
    kind = "Savepoint",
    namespaced,
    shortname = "svp",
    category = "streamkeeper",
    status = "SavepointStatus",
    derive = "PartialEq",
    doc = "One savepoint of a StreamJob. It outlives the job.",
    selectable = ".spec.jobName",
    printcolumn(name = "Job", type_ = "string", json_path = ".spec.jobName"),
    printcolumn(name = "Phase", type_ = "string", json_path = ".status.phase"),
    printcolumn(name = "Trigger", type_ = "string", json_path = ".status.trigger"),
    printcolumn(name = "Size", type_ = "integer", json_path = ".status.bytes"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    printcolumn(name = "Uri", type_ = "string", json_path = ".status.uri", priority = 1),
    printcolumn(name = "Format", type_ = "string", json_path = ".spec.format", priority = 1),
    printcolumn(name = "Id", type_ = "integer", json_path = ".status.id", priority = 1)
)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = cel::savepoint()))]
pub struct SavepointSpec {
    /// Name of the StreamJob.
    #[schemars(length(min = 1, max = 45))]
    pub job_name: String,
    /// A savepoint made elsewhere, to be known here. Its data is never deleted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub existing: Option<ExistingSavepoint>,
    /// How state is written. The job's `savepoint.format` if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub format: Option<SavepointFormat>,
    /// Delete the data together with this object.
    #[serde(default)]
    pub delete_data: bool,
    /// A savepoint that takes longer is given up.
    #[serde(default = "default_timeout")]
    pub timeout: DurationText,
    /// Tries after the first; `-1` means no limit. The wait between two doubles from 10 s to 10 min.
    #[serde(default = "default_backoff_limit")]
    #[schemars(range(min = -1, max = 100))]
    pub backoff_limit: i32,
}

fn default_timeout() -> DurationText {
    DurationText::new("30m")
}

fn default_backoff_limit() -> i32 {
    3
}

/// A savepoint made elsewhere.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ExistingSavepoint {
    /// Its address.
    pub uri: StorageUri,
}

/// What is known of the savepoint. Written by the operator only.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct SavepointStatus {
    /// The generation that this whole status describes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// Where it stands.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub phase: Option<SavepointPhase>,
    /// Who asked for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trigger: Option<SavepointTrigger>,
    /// Where it lies.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 1024))]
    pub uri: Option<String>,
    /// Its id as a restore point.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<i64>,
    /// Generation of the JobManager that took it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fence: Option<i64>,
    /// Size of all its files.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes: Option<i64>,
    /// Of its manifest.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 128))]
    pub checksum: Option<String>,
    /// When it was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub started_at: Option<Time>,
    /// When it was complete.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub completed_at: Option<Time>,
    /// Tries so far.
    pub tries: u32,
    /// Completed, or why not.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(max = 16),
        extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"])
    )]
    pub conditions: Vec<Condition>,
}

/// Where a savepoint stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum SavepointPhase {
    Pending,
    InProgress,
    Completed,
    Failed,
}

/// Who asked for a savepoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum SavepointTrigger {
    Manual,
    Schedule,
    Upgrade,
    Delete,
}
