//! The job and its tasks.

use serde::{Deserialize, Serialize};
use streamkeeper_types::Millis;
use utoipa::ToSchema;

use super::{CheckpointCounts, Failure};

/// `/overview`
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Overview {
    /// Of the program.
    pub version: String,
    pub jobs: Vec<JobSummary>,
    pub task_managers: u32,
    pub slots: u32,
    pub slots_used: u32,
}

/// `/jobs`
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct JobList {
    pub jobs: Vec<JobSummary>,
}

/// `/jobs/{job}/status`: what is asked for again and again.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct StatusView {
    pub phase: JobPhaseView,
    /// Grows with each change worth a look; `?after=` waits for another one than was seen.
    pub revision: u64,
    /// Of the newest deployment; 0 before the first.
    pub parallelism: u32,
    pub bounds: BoundsView,
    /// Number of this JobManager's reign.
    pub generation: u64,
    pub restarts: u32,
    /// The newest completed checkpoint or savepoint of this reign.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_completed: Option<u64>,
    /// Why the job is not as it should be; the latest failure, also one that a restart mended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_failure: Option<Failure>,
}

/// A job in a list.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct JobSummary {
    /// Of the job in paths.
    pub id: String,
    pub namespace: String,
    pub name: String,
    pub phase: JobPhaseView,
    pub parallelism: u32,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum JobPhaseView {
    /// Tasks are being started.
    #[default]
    Starting,
    /// There is no room for the tasks.
    WaitingForSlots,
    /// All tasks run.
    Running,
    /// After a failure or for another parallelism, before tasks are started again.
    Restarting,
    Ended,
}

/// `/jobs/{job}`
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct JobView {
    pub id: String,
    pub namespace: String,
    pub name: String,
    pub phase: JobPhaseView,
    /// Of the newest deployment; 0 before the first.
    pub parallelism: u32,
    pub bounds: BoundsView,
    /// Of all TaskManagers.
    pub slots: u32,
    pub max_parallelism: u32,
    /// Number of this JobManager's reign.
    pub generation: u64,
    /// When this JobManager began to lead.
    #[schema(value_type = i64)]
    pub started_at: Millis,
    pub restarts: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub restored_from: Option<u64>,
    /// From the beginning of the latest deployment until all its tasks ran.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deployment_ms: Option<u64>,
    /// The latest failure, also one that a restart mended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_failure: Option<Failure>,
    pub checkpoints: CheckpointCounts,
    pub vertices: Vec<VertexView>,
}

/// Between which parallelisms the job may run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct BoundsView {
    /// Below it the job waits.
    pub least: u32,
    pub target: u32,
}

/// Shares of a time, in thousandths; together 1000 for a task that lives, 0 before its first report.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TimeShares {
    pub busy: u32,
    pub idle: u32,
    pub back_pressured: u32,
}

/// A chain of operators: counters are sums over its subtasks since the latest deployment.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct VertexView {
    pub id: u32,
    pub name: String,
    pub parallelism: u32,
    /// Subtasks that wait for their final checkpoint or are done.
    pub finished: u32,
    pub records_in: u64,
    pub records_out: u64,
    pub bytes_in: u64,
    pub bytes_out: u64,
    pub late_records: u64,
    pub bad_records: u64,
    pub state_bytes: u64,
    /// The least of its subtasks that have one, of event time; `i64::MAX` after the end of input.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<i64>)]
    pub watermark: Option<Millis>,
    /// Since the latest deployment.
    pub time: TimeShares,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<SplitProgress>,
}

/// What a source has read of the splits seen so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SplitProgress {
    pub read_bytes: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total_bytes: Option<u64>,
}

/// `/jobs/{job}/vertices/{vertex}`
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct VertexDetail {
    pub vertex: VertexView,
    pub subtasks: Vec<SubtaskView>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct SubtaskView {
    pub index: u32,
    /// Counts the deployments of a reign.
    pub attempt: u32,
    pub phase: SubtaskPhase,
    /// Where it runs; `None` for a job in one process.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task_manager: Option<String>,
    /// Its own figures; `parallelism` is 1.
    pub figures: VertexView,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SubtaskPhase {
    Starting,
    Running,
    AwaitingFinalCheckpoint,
    Finished,
    /// It failed or was cancelled; the job restarts or ends.
    Stopped,
}

/// `/jobs/{job}/rescales`, newest first.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct RescaleList {
    pub rescales: Vec<RescaleView>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct RescaleView {
    #[schema(value_type = i64)]
    pub started_at: Millis,
    pub reason: RescaleReason,
    pub from: u32,
    pub to: u32,
    pub state: RescaleState,
    /// Time without running tasks, when done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pause_ms: Option<u64>,
    /// Why it was reverted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<Failure>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RescaleReason {
    Requested,
    SlotsGained,
    SlotsLost,
    Reverted,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RescaleState {
    InProgress,
    Done,
    Reverted,
}
