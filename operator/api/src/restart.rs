//! What happens when a task fails, and when a job counts as unhealthy.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::text::DurationText;

/// What happens when a task fails. Each strategy reads its own fields.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Restart {
    /// `exponentialDelay` if absent and checkpoints are on, `none` if they are off.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub strategy: Option<RestartStrategyName>,
    /// `exponentialDelay`: wait before the first restart.
    pub initial_delay: DurationText,
    /// `exponentialDelay`: longest wait.
    pub max_delay: DurationText,
    /// `exponentialDelay`: after this time without failure the wait starts small again.
    pub reset_after: DurationText,
    /// `fixedDelay`: restarts before the job fails.
    #[schemars(range(min = 0, max = 1_000_000))]
    pub attempts: u32,
    /// `fixedDelay` and `failureRate`: wait before each restart.
    pub delay: DurationText,
    /// `failureRate`: restarts within `window` before the job fails.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub failures: u32,
    /// `failureRate`: the time in which failures are counted.
    pub window: DurationText,
}

impl Default for Restart {
    fn default() -> Self {
        Self {
            strategy: None,
            initial_delay: DurationText::new("100ms"),
            max_delay: DurationText::new("1m"),
            reset_after: DurationText::new("1h"),
            attempts: 1,
            delay: DurationText::new("1s"),
            failures: 1,
            window: DurationText::new("1m"),
        }
    }
}

/// How restarts are paced and limited. Only `exponentialDelay` has no limit of tries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum RestartStrategyName {
    ExponentialDelay,
    FixedDelay,
    FailureRate,
    None,
}

/// When a running job counts as unhealthy and is started anew.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Health {
    /// Whether it is watched.
    pub enabled: bool,
    /// More restarts than this within `window` are unhealthy.
    #[schemars(range(min = 0, max = 1_000_000))]
    pub max_restarts: u32,
    /// The time in which restarts are counted.
    pub window: DurationText,
    /// A job whose checkpoints make no progress is unhealthy too.
    pub checkpoint_progress: bool,
}

impl Default for Health {
    fn default() -> Self {
        Self { enabled: true, max_restarts: 10, window: DurationText::new("10m"), checkpoint_progress: true }
    }
}
