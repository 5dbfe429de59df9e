//! What a job is run with.

use std::{path::PathBuf, sync::Arc};

use streamkeeper_checkpoint::restore::DroppedState;
use streamkeeper_engine::{Clock, StreamGraph};
use streamkeeper_storage::Storage;

use crate::engine::{Bounds, CheckpointOptions, SchedulerOptions, failover::RestartStrategy};

/// A job as the JobManager takes it over: the program, its settings, and where its state lies.
#[derive(Clone)]
pub struct JobSpec {
    pub namespace: String,
    pub name: String,
    pub graph: StreamGraph,
    /// Text of the program, for manifests.
    pub program: String,
    /// Between which parallelisms it may run.
    pub bounds: Bounds,
    pub scheduler: SchedulerOptions,
    /// `None`: derived from the parallelism, and gives way to what a snapshot has.
    pub max_parallelism: Option<u32>,
    pub checkpoints: CheckpointOptions,
    pub restart: RestartStrategy,
    /// The job's folder.
    pub storage: Arc<dyn Storage>,
    /// A file of the local machine by which two runs on it notice each other at once. The log fences them anyway.
    pub lock: Option<PathBuf>,
    /// Where this process's control plane can be reached, written into its claim so that standbys and TaskManagers find
    /// the leader. `None` for a job in one process.
    pub address: Option<String>,
    pub restore: RestoreChoice,
    pub dropped_state: DroppedState,
    pub clock: Arc<dyn Clock>,
}

/// Where the job begins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RestoreChoice {
    /// Where it was; empty only if it never completed a checkpoint.
    Auto,
    /// The savepoint in this folder of the job's folder.
    From(String),
    /// Nothing: existing state is given up on purpose.
    Discard,
}

impl JobSpec {
    /// `<namespace>/<name>`.
    #[must_use]
    pub fn full_name(&self) -> String {
        format!("{}/{}", self.namespace, self.name)
    }
}
