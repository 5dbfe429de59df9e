//! The list of metrics.

use std::fmt;

/// One metric: a family of samples that differ in their labels.
#[derive(Debug, PartialEq, Eq)]
pub struct Metric {
    /// As it stands in queries, unit and `_total` included.
    pub name: &'static str,
    pub kind: Kind,
    pub unit: Option<Unit>,
    pub labels: &'static [&'static str],
    pub server: Server,
    /// One sentence.
    pub help: &'static str,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Only grows; begins anew when its process, or for tasks their attempt, begins.
    Counter,
    /// As it is at the moment.
    Gauge,
}

/// Base units; others are never used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    Bytes,
    Seconds,
}

/// Whose `/metrics` has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Server {
    JobManager,
    TaskManager,
    Both,
}

impl Metric {
    /// The name without unit and `_total`, which the text format adds.
    #[must_use]
    pub fn stem(&self) -> &'static str {
        let name = self.name.strip_suffix("_total").unwrap_or(self.name);
        let unit = self.unit.map_or("", Unit::suffix);
        name.strip_suffix(unit).unwrap_or(name)
    }
}

impl Unit {
    /// How names end, before `_total`.
    #[must_use]
    pub fn suffix(self) -> &'static str {
        match self {
            Self::Bytes => "_bytes",
            Self::Seconds => "_seconds",
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Counter => "counter",
            Self::Gauge => "gauge",
        })
    }
}

impl fmt::Display for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::JobManager => "JobManager",
            Self::TaskManager => "TaskManager",
            Self::Both => "both",
        })
    }
}

macro_rules! metrics {
    ($($(#[doc = $help:literal])+ $metric:ident = $name:literal, $kind:ident, $unit:expr, $labels:expr, $server:ident;)+) => {
        $($(#[doc = $help])+
        pub const $metric: Metric = Metric {
            name: $name,
            kind: Kind::$kind,
            unit: $unit,
            labels: $labels,
            server: Server::$server,
            help: concat!($($help),+).trim_ascii(),
        };)+

        /// Every metric, in the order in which they are served.
        pub const ALL: &[&Metric] = &[$(&$metric,)+];
    };
}

const NONE: &[&str] = &[];
const VERSION: &[&str] = &["version"];
const JOB: &[&str] = &["namespace", "job"];
const PHASE: &[&str] = &["namespace", "job", "phase"];
const VERTEX: &[&str] = &["namespace", "job", "vertex"];
const SUBTASK: &[&str] = &["namespace", "job", "vertex", "subtask"];
const BYTES: Option<Unit> = Some(Unit::Bytes);
const SECONDS: Option<Unit> = Some(Unit::Seconds);

metrics! {
    /// 1, with the version of the program as label.
    BUILD_INFO = "streamkeeper_build_info", Gauge, None, VERSION, Both;
    /// Memory of the process that lies in RAM.
    PROCESS_MEMORY = "streamkeeper_process_resident_memory_bytes", Gauge, BYTES, NONE, Both;
    /// Threads of the process.
    PROCESS_THREADS = "streamkeeper_process_threads", Gauge, None, NONE, Both;

    /// 1 while this JobManager leads its job, 0 while it stands by.
    LEADING = "streamkeeper_jobmanager_leading", Gauge, None, NONE, JobManager;
    /// TaskManagers that are connected.
    TASK_MANAGERS = "streamkeeper_jobmanager_task_managers", Gauge, None, JOB, JobManager;
    /// Slots of all TaskManagers.
    SLOTS = "streamkeeper_jobmanager_slots", Gauge, None, JOB, JobManager;
    /// 1 for the phase that the job is in, 0 for the others.
    JOB_PHASE = "streamkeeper_job_phase", Gauge, None, PHASE, JobManager;
    /// Parallelism of the newest deployment.
    JOB_PARALLELISM = "streamkeeper_job_parallelism", Gauge, None, JOB, JobManager;
    /// Parallelism that is wanted.
    JOB_TARGET_PARALLELISM = "streamkeeper_job_target_parallelism", Gauge, None, JOB, JobManager;
    /// Number of this JobManager's reign.
    JOB_GENERATION = "streamkeeper_job_generation", Gauge, None, JOB, JobManager;
    /// When this JobManager began to lead, in seconds since 1970.
    JOB_STARTED = "streamkeeper_job_started_timestamp_seconds", Gauge, SECONDS, JOB, JobManager;
    /// From the beginning of the latest deployment until all its tasks ran.
    JOB_DEPLOYMENT = "streamkeeper_job_last_deployment_seconds", Gauge, SECONDS, JOB, JobManager;
    /// Restarts after failures.
    JOB_RESTARTS = "streamkeeper_job_restarts_total", Counter, None, JOB, JobManager;
    /// Failures, those included that ended the job.
    JOB_FAILURES = "streamkeeper_job_failures_total", Counter, None, JOB, JobManager;

    /// Checkpoints and savepoints that completed.
    CHECKPOINTS_COMPLETED = "streamkeeper_checkpoints_completed_total", Counter, None, JOB, JobManager;
    /// Checkpoints and savepoints that did not complete.
    CHECKPOINTS_FAILED = "streamkeeper_checkpoints_failed_total", Counter, None, JOB, JobManager;
    /// Checkpoints and savepoints under way.
    CHECKPOINTS_IN_PROGRESS = "streamkeeper_checkpoints_in_progress", Gauge, None, JOB, JobManager;
    /// Id of the newest that completed.
    CHECKPOINT_ID = "streamkeeper_checkpoint_last_id", Gauge, None, JOB, JobManager;
    /// When the newest completed, in seconds since 1970.
    CHECKPOINT_COMPLETED = "streamkeeper_checkpoint_last_completed_timestamp_seconds", Gauge, SECONDS, JOB, JobManager;
    /// From the trigger of the newest to its record in the log.
    CHECKPOINT_DURATION = "streamkeeper_checkpoint_last_duration_seconds", Gauge, SECONDS, JOB, JobManager;
    /// From the trigger of the newest to the first barrier, at the slowest task.
    CHECKPOINT_START_DELAY = "streamkeeper_checkpoint_last_start_delay_seconds", Gauge, SECONDS, JOB, JobManager;
    /// From the first barrier of the newest to the last, at the slowest task.
    CHECKPOINT_ALIGNMENT = "streamkeeper_checkpoint_last_alignment_seconds", Gauge, SECONDS, JOB, JobManager;
    /// The longest time for which the newest kept a task from its records.
    CHECKPOINT_SYNC = "streamkeeper_checkpoint_last_sync_seconds", Gauge, SECONDS, JOB, JobManager;
    /// The longest upload of a task for the newest.
    CHECKPOINT_ASYNC = "streamkeeper_checkpoint_last_async_seconds", Gauge, SECONDS, JOB, JobManager;
    /// Written for the newest.
    CHECKPOINT_UPLOADED = "streamkeeper_checkpoint_last_uploaded_bytes", Gauge, BYTES, JOB, JobManager;
    /// Of everything that the newest refers to.
    CHECKPOINT_FULL = "streamkeeper_checkpoint_last_full_bytes", Gauge, BYTES, JOB, JobManager;
    /// Id of the checkpoint or savepoint that the newest deployment began with.
    CHECKPOINT_RESTORED = "streamkeeper_checkpoint_restored_id", Gauge, None, JOB, JobManager;

    /// Subtasks of the vertex.
    VERTEX_PARALLELISM = "streamkeeper_vertex_parallelism", Gauge, None, VERTEX, JobManager;
    /// Subtasks of the vertex that have read all their input.
    VERTEX_FINISHED = "streamkeeper_vertex_finished_subtasks", Gauge, None, VERTEX, JobManager;
    /// Records that came in, over all subtasks.
    VERTEX_RECORDS_IN = "streamkeeper_vertex_records_in_total", Counter, None, VERTEX, JobManager;
    /// Records that went out, over all subtasks.
    VERTEX_RECORDS_OUT = "streamkeeper_vertex_records_out_total", Counter, None, VERTEX, JobManager;
    /// Bytes that came in, over all subtasks.
    VERTEX_BYTES_IN = "streamkeeper_vertex_in_bytes_total", Counter, BYTES, VERTEX, JobManager;
    /// Bytes that went out, over all subtasks.
    VERTEX_BYTES_OUT = "streamkeeper_vertex_out_bytes_total", Counter, BYTES, VERTEX, JobManager;
    /// Records that came after their window had passed, over all subtasks.
    VERTEX_LATE = "streamkeeper_vertex_late_records_total", Counter, None, VERTEX, JobManager;
    /// Bad records that were skipped or sent to the dead-letter output, over all subtasks.
    VERTEX_BAD = "streamkeeper_vertex_bad_records_total", Counter, None, VERTEX, JobManager;
    /// Keyed state, over all subtasks.
    VERTEX_STATE = "streamkeeper_vertex_state_bytes", Gauge, BYTES, VERTEX, JobManager;
    /// The least watermark of the subtasks, in seconds since 1970 of event time; none before the first and after the end.
    VERTEX_WATERMARK = "streamkeeper_vertex_watermark_timestamp_seconds", Gauge, SECONDS, VERTEX, JobManager;
    /// Time in which subtasks worked, over all of them.
    VERTEX_BUSY = "streamkeeper_vertex_busy_seconds_total", Counter, SECONDS, VERTEX, JobManager;
    /// Time in which subtasks had nothing to do, over all of them.
    VERTEX_IDLE = "streamkeeper_vertex_idle_seconds_total", Counter, SECONDS, VERTEX, JobManager;
    /// Time in which subtasks waited for those behind them, over all of them.
    VERTEX_BACK_PRESSURED = "streamkeeper_vertex_back_pressured_seconds_total", Counter, SECONDS, VERTEX, JobManager;
    /// What a source has read of its splits.
    VERTEX_SOURCE_READ = "streamkeeper_vertex_source_read_bytes_total", Counter, BYTES, VERTEX, JobManager;
    /// Size of the splits that a source has found so far, where known.
    VERTEX_SOURCE_FOUND = "streamkeeper_vertex_source_found_bytes", Gauge, BYTES, VERTEX, JobManager;

    /// Slots of this TaskManager.
    TASK_MANAGER_SLOTS = "streamkeeper_taskmanager_slots", Gauge, None, NONE, TaskManager;
    /// Tasks that run in this TaskManager.
    TASK_MANAGER_TASKS = "streamkeeper_taskmanager_tasks", Gauge, None, NONE, TaskManager;
    /// Number of the subtask's attempt within its generation.
    SUBTASK_ATTEMPT = "streamkeeper_subtask_attempt", Gauge, None, SUBTASK, TaskManager;
    /// Records that came in.
    SUBTASK_RECORDS_IN = "streamkeeper_subtask_records_in_total", Counter, None, SUBTASK, TaskManager;
    /// Records that went out.
    SUBTASK_RECORDS_OUT = "streamkeeper_subtask_records_out_total", Counter, None, SUBTASK, TaskManager;
    /// Bytes that came in.
    SUBTASK_BYTES_IN = "streamkeeper_subtask_in_bytes_total", Counter, BYTES, SUBTASK, TaskManager;
    /// Bytes that went out.
    SUBTASK_BYTES_OUT = "streamkeeper_subtask_out_bytes_total", Counter, BYTES, SUBTASK, TaskManager;
    /// Records that came after their window had passed.
    SUBTASK_LATE = "streamkeeper_subtask_late_records_total", Counter, None, SUBTASK, TaskManager;
    /// Bad records that were skipped or sent to the dead-letter output.
    SUBTASK_BAD = "streamkeeper_subtask_bad_records_total", Counter, None, SUBTASK, TaskManager;
    /// Keyed state.
    SUBTASK_STATE = "streamkeeper_subtask_state_bytes", Gauge, BYTES, SUBTASK, TaskManager;
    /// Its watermark, in seconds since 1970 of event time; none before the first and after the end of input.
    SUBTASK_WATERMARK = "streamkeeper_subtask_watermark_timestamp_seconds", Gauge, SECONDS, SUBTASK, TaskManager;
    /// Time in which it worked.
    SUBTASK_BUSY = "streamkeeper_subtask_busy_seconds_total", Counter, SECONDS, SUBTASK, TaskManager;
    /// Time in which it had nothing to do.
    SUBTASK_IDLE = "streamkeeper_subtask_idle_seconds_total", Counter, SECONDS, SUBTASK, TaskManager;
    /// Time in which it waited for those behind it.
    SUBTASK_BACK_PRESSURED = "streamkeeper_subtask_back_pressured_seconds_total", Counter, SECONDS, SUBTASK, TaskManager;
    /// What a source's reader has read of its splits.
    SUBTASK_SOURCE_READ = "streamkeeper_subtask_source_read_bytes_total", Counter, BYTES, SUBTASK, TaskManager;
    /// Size of the splits that a source's reader was given so far, where known.
    SUBTASK_SOURCE_FOUND = "streamkeeper_subtask_source_found_bytes", Gauge, BYTES, SUBTASK, TaskManager;
}
