//! What a job runs, and what it logs.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::pods::PullPolicy;

/// SQL text in a ConfigMap of the same namespace; an edit there is an edit of the job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SqlFrom {
    /// Name of the ConfigMap.
    #[schemars(length(min = 1, max = 253))]
    pub config_map: String,
    /// Key within it.
    #[serde(default = "SqlFrom::default_key")]
    #[schemars(length(min = 1, max = 253))]
    pub key: String,
}

impl SqlFrom {
    fn default_key() -> String {
        "job.sql".to_owned()
    }
}

/// A program image: its binary links the `streamkeeper` library and serves as JobManager and TaskManager both.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Program {
    /// The image with the program.
    #[schemars(length(min = 1, max = 512))]
    pub image: String,
    /// When the image is pulled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pull_policy: Option<PullPolicy>,
    /// Arguments of the program.
    #[serde(default)]
    #[schemars(length(max = 64), inner(length(max = 4096)))]
    pub args: Vec<String>,
    /// Environment of the program.
    #[serde(default)]
    #[schemars(length(max = 64))]
    pub env: Vec<EnvVar>,
}

/// One environment variable.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EnvVar {
    /// Its name.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
    /// Its value.
    #[serde(default)]
    #[schemars(length(max = 4096))]
    pub value: String,
}

/// Log level of the runtime, and of single targets.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Logging {
    /// Level of everything that `targets` does not name.
    pub level: LogLevel,
    /// Level by target, for example `streamkeeper_checkpoint: debug`.
    #[schemars(extend("maxProperties" = 64))]
    pub targets: BTreeMap<String, LogLevel>,
}

/// How much is logged.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum LogLevel {
    Error,
    Warn,
    #[default]
    Info,
    Debug,
    Trace,
}
