//! The `StreamJob`: one streaming job, as a person describes it.
#![allow(clippy::duplicated_attributes, reason = "columns of one type are no duplicates")]

use std::collections::BTreeMap;

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::autoscaler::Autoscaler;
use crate::cel;
use crate::checkpoint::Checkpoint;
use crate::deletion::DeletionPolicy;
use crate::pods::{JobManager, NetworkPolicy, PodDisruptionBudget, PullPolicy, Service, TaskManager};
use crate::program::{Logging, Program, SqlFrom};
use crate::restart::{Health, Restart};
use crate::restore::Restore;
use crate::savepoint_policy::SavepointPolicy;
use crate::state::State;
use crate::status::StreamJobStatus;
use crate::text::DurationText;
use crate::upgrade::Upgrade;

/// What the job runs and how. Exactly one of `sql`, `sqlFrom` and `program` is given; everything else has a default.
#[derive(CustomResource, Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "streamkeeper.dev",
    version = "v1alpha1",
    kind = "StreamJob",
    namespaced,
    shortname = "sj",
    category = "streamkeeper",
    status = "StreamJobStatus",
    derive = "PartialEq",
    doc = "A streaming job that keeps its state through crashes, upgrades and rescaling.",
    selectable = ".status.phase",
    scale(
        spec_replicas_path = ".spec.parallelism",
        status_replicas_path = ".status.parallelism",
        label_selector_path = ".status.selector"
    ),
    printcolumn(name = "State", type_ = "string", json_path = ".status.phase"),
    printcolumn(name = "Health", type_ = "string", json_path = ".status.health"),
    printcolumn(name = "Parallelism", type_ = "integer", json_path = ".status.parallelism"),
    printcolumn(name = "Records/s", type_ = "string", json_path = ".status.throughput.recordsPerSecond"),
    printcolumn(name = "Lag", type_ = "string", json_path = ".status.throughput.lag"),
    printcolumn(name = "Checkpoint", type_ = "date", json_path = ".status.checkpoint.lastCompleted.at"),
    printcolumn(name = "Restarts", type_ = "integer", json_path = ".status.restarts.count"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    printcolumn(name = "TaskManagers", type_ = "integer", json_path = ".status.taskManagers.ready", priority = 1),
    printcolumn(name = "RestorePoint", type_ = "integer", json_path = ".status.restore.newest.id", priority = 1),
    printcolumn(name = "Mode", type_ = "string", json_path = ".spec.upgrade.mode", priority = 1),
    printcolumn(name = "Target", type_ = "integer", json_path = ".status.autoscaler.target", priority = 1),
    printcolumn(name = "Runtime", type_ = "string", json_path = ".status.runtimeVersion", priority = 1),
    printcolumn(
        name = "Upgraded",
        type_ = "string",
        json_path = ".status.conditions[?(@.type=='Upgraded')].reason",
        priority = 1
    ),
    printcolumn(
        name = "Message",
        type_ = "string",
        json_path = ".status.conditions[?(@.type=='Progressing')].message",
        priority = 1
    )
)]
#[serde(rename_all = "camelCase", default)]
#[schemars(extend("x-kubernetes-validations" = cel::spec()))]
pub struct StreamJobSpec {
    /// The SQL text, in Flink's dialect.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 131_072))]
    pub sql: Option<String>,
    /// A ConfigMap that holds the SQL text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sql_from: Option<SqlFrom>,
    /// A program that links the `streamkeeper` library, as an image.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub program: Option<Program>,
    /// The runtime's image. Recorded when the job is accepted, so that a new release of the operator moves no job.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 512))]
    pub image: Option<String>,
    /// When the runtime's image is pulled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub image_pull_policy: Option<PullPolicy>,
    /// Names of Secrets with registry credentials.
    #[schemars(length(max = 8), inner(length(min = 1, max = 253)))]
    pub image_pull_secrets: Vec<String>,
    /// The account that the pods run under. Without it, one is made for the job.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    pub service_account_name: Option<String>,
    /// Names of Secrets mounted read-only at `/etc/streamkeeper/secrets/<secret>/<key>`; SQL names a value as `${secret:<secret>/<key>}`.
    #[schemars(length(max = 16), inner(length(min = 1, max = 253)))]
    pub secrets: Vec<String>,
    /// Options of the runtime that have no field of their own here.
    #[schemars(extend(
        "maxProperties" = 256,
        "additionalProperties" = { "type": "string", "maxLength": 4096 }
    ))]
    pub config: BTreeMap<String, String>,
    /// What the pods log.
    pub logging: Logging,
    /// Number of subtasks per vertex.
    #[schemars(range(min = 1, max = 32_768))]
    pub parallelism: u32,
    /// Number of key groups, the upper bound of `parallelism` for the life of the state. Derived from the first `parallelism` unless given.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 32_768))]
    pub max_parallelism: Option<u32>,
    /// When and how checkpoints are taken, and where they lie.
    pub checkpoint: Checkpoint,
    /// Savepoints by schedule, their retention and format.
    pub savepoint: SavepointPolicy,
    /// Where keyed state lives while the job runs.
    pub state: State,
    /// How an edit that stops the job is carried out.
    pub upgrade: Upgrade,
    /// Stops the job, keeps its state; `false` starts it again.
    pub suspend: bool,
    /// Which state the job starts from, where that shall not be the newest.
    pub restore: Restore,
    /// What happens to the job and its state when this object is deleted.
    pub deletion_policy: DeletionPolicy,
    /// What happens when a task fails.
    pub restart: Restart,
    /// When a running job counts as unhealthy.
    pub health: Health,
    /// How long the pods of a finished job stay.
    pub ttl_after_finished: DurationText,
    /// Number of accepted specs that are remembered.
    #[schemars(range(min = 1, max = 20))]
    pub revision_history: u32,
    /// The pods that coordinate the job.
    pub job_manager: JobManager,
    /// The pods that run the tasks.
    pub task_manager: TaskManager,
    /// Who may reach the pods.
    pub network_policy: NetworkPolicy,
    /// Keeps a node drain from taking several pods at once.
    pub pod_disruption_budget: PodDisruptionBudget,
    /// The Service in front of REST and the web UI.
    pub service: Service,
    /// Moves the parallelism with the load.
    pub autoscaler: Autoscaler,
}

impl Default for StreamJobSpec {
    fn default() -> Self {
        Self {
            sql: None,
            sql_from: None,
            program: None,
            image: None,
            image_pull_policy: None,
            image_pull_secrets: Vec::new(),
            service_account_name: None,
            secrets: Vec::new(),
            config: BTreeMap::new(),
            logging: Logging::default(),
            parallelism: 1,
            max_parallelism: None,
            checkpoint: Checkpoint::default(),
            savepoint: SavepointPolicy::default(),
            state: State::default(),
            upgrade: Upgrade::default(),
            suspend: false,
            restore: Restore::default(),
            deletion_policy: DeletionPolicy::default(),
            restart: Restart::default(),
            health: Health::default(),
            ttl_after_finished: DurationText::new("1h"),
            revision_history: 5,
            job_manager: JobManager::default(),
            task_manager: TaskManager::default(),
            network_policy: NetworkPolicy::default(),
            pod_disruption_budget: PodDisruptionBudget::default(),
            service: Service::default(),
            autoscaler: Autoscaler::default(),
        }
    }
}
