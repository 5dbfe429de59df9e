//! A StreamJob after validation: texts are parsed, alternatives are enums, derived defaults are there.

use std::time::Duration;

use streamkeeper_types::CheckpointId;

use crate::config::Config;
use crate::program::Logging;
use crate::savepoint_policy::SavepointFormat;
use crate::state::StateBackend;

/// Proof that a StreamJob can be run; made by [`validate`](crate::validate()) only.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct ValidatedJob {
    pub name: String,
    pub namespace: String,
    pub program: ProgramSource,
    pub parallelism: u32,
    /// As set; a restored or derived number of key groups holds otherwise.
    pub max_parallelism: Option<u32>,
    pub checkpoint: CheckpointSettings,
    pub savepoint: SavepointSettings,
    pub state: StateSettings,
    pub restart: RestartStrategy,
    pub restore: Option<RestoreRequest>,
    /// State that finds no place may be dropped.
    pub allow_dropped_state: bool,
    pub config: Config,
    pub logging: Logging,
}

/// What a job runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProgramSource {
    Sql(String),
    Image(String),
}

/// When and how checkpoints are taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckpointSettings {
    /// `None`: the default of the place where the job runs.
    pub storage: Option<String>,
    /// `None`: no periodic checkpoints.
    pub interval: Option<Duration>,
    pub timeout: Duration,
    pub min_pause: Duration,
    /// At least 1.
    pub retained: u32,
    pub tolerable_failures: u32,
    pub incremental: bool,
}

/// How savepoints are taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SavepointSettings {
    /// `None`: below the checkpoints.
    pub storage: Option<String>,
    pub format: SavepointFormat,
    pub timeout: Duration,
}

/// Where keyed state lives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StateSettings {
    pub backend: StateBackend,
    /// Share of the memory budget, 1 to 90.
    pub memory_percent: u32,
}

/// How restarts are paced and limited.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum RestartStrategy {
    None,
    FixedDelay { attempts: u32, delay: Duration },
    FailureRate { failures: u32, window: Duration, delay: Duration },
    ExponentialDelay { initial: Duration, max: Duration, reset_after: Duration, multiplier: f64, jitter: f64 },
}

/// Which state to start from, where that shall not be the newest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RestoreRequest {
    /// Name or address of a savepoint.
    FromSavepoint(String),
    /// Consent to forget everything up to this id.
    DiscardUpTo(CheckpointId),
}
