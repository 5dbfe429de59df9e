//! The pods of a job, and what stands around them.

use std::borrow::Cow;
use std::collections::BTreeMap;

use k8s_openapi::api::networking::v1::NetworkPolicyPeer;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::text::QuantityText;

/// The pods that coordinate the job.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct JobManager {
    /// One leads, the others stand by.
    #[schemars(range(min = 1, max = 3))]
    pub replicas: u32,
    /// CPU and memory of one pod.
    pub resources: Resources,
    /// Merged into the pods by name of container; fields that the operator owns are refused.
    pub pod_template: PodTemplate,
}

impl Default for JobManager {
    fn default() -> Self {
        Self { replicas: 1, resources: Resources::of("100m", "256Mi"), pod_template: PodTemplate::default() }
    }
}

/// The pods that run the tasks. There are ⌈parallelism / slots⌉ of them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct TaskManager {
    /// Subtasks of one vertex that one pod takes.
    #[schemars(range(min = 1, max = 64))]
    pub slots: u32,
    /// CPU and memory of one pod.
    pub resources: Resources,
    /// Merged into the pods by name of container; fields that the operator owns are refused.
    pub pod_template: PodTemplate,
}

impl Default for TaskManager {
    fn default() -> Self {
        Self { slots: 1, resources: Resources::of("500m", "1Gi"), pod_template: PodTemplate::default() }
    }
}

/// CPU and memory of a pod. The memory request equals the limit.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Resources {
    /// What the scheduler reserves.
    #[schemars(extend("maxProperties" = 16))]
    pub requests: BTreeMap<String, QuantityText>,
    /// What the pod may not exceed.
    #[schemars(extend("maxProperties" = 16))]
    pub limits: BTreeMap<String, QuantityText>,
}

impl Resources {
    fn of(cpu: &str, memory: &str) -> Self {
        let memory = ("memory".to_owned(), QuantityText::new(memory));
        Self {
            requests: BTreeMap::from([("cpu".to_owned(), QuantityText::new(cpu)), memory.clone()]),
            limits: BTreeMap::from([memory]),
        }
    }
}

/// A pod template as Kubernetes defines it. Its schema would more than triple the CRD, so the server takes it as it is
/// and `validate` reads it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct PodTemplate(Map<String, Value>);

impl PodTemplate {
    /// The members of the template, unread.
    #[must_use]
    pub fn as_map(&self) -> &Map<String, Value> {
        &self.0
    }
}

impl JsonSchema for PodTemplate {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "PodTemplate".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true })
    }
}

/// When an image is pulled, as in a pod.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum PullPolicy {
    Always,
    IfNotPresent,
    Never,
}

/// Who may reach the pods.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct NetworkPolicy {
    /// Whether a NetworkPolicy is made.
    pub enabled: bool,
    /// Who may use REST and the web UI, besides the operator.
    #[schemars(length(max = 16))]
    pub allow_from: Vec<NetworkPolicyPeer>,
}

impl Default for NetworkPolicy {
    fn default() -> Self {
        Self { enabled: true, allow_from: Vec::new() }
    }
}

/// Keeps a node drain from taking several pods at once.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct PodDisruptionBudget {
    /// Whether budgets are made.
    pub enabled: bool,
}

impl Default for PodDisruptionBudget {
    fn default() -> Self {
        Self { enabled: true }
    }
}

/// The Service in front of REST and the web UI.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Service {
    /// Annotations of the Service.
    #[schemars(extend("maxProperties" = 32, "additionalProperties" = { "type": "string", "maxLength": 4096 }))]
    pub annotations: BTreeMap<String, String>,
}
