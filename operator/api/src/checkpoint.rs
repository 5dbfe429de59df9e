//! Settings of checkpoints.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::cel;
use crate::text::{DurationText, StorageUri};

/// When and how checkpoints are taken, and where they lie.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(extend("x-kubernetes-validations" = cel::checkpoint()))]
pub struct Checkpoint {
    /// Where checkpoints lie. On a cluster the operator's default if absent; on a laptop `.streamkeeper/` beside the file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub storage: Option<StorageUri>,
    /// Time between the starts of two checkpoints, at least `1s`; `0s` turns them off.
    pub interval: DurationText,
    /// A checkpoint that takes longer is given up.
    pub timeout: DurationText,
    /// Least time between the end of a checkpoint and the start of the next.
    pub min_pause: DurationText,
    /// Completed checkpoints that are kept.
    #[schemars(range(min = 1, max = 100))]
    pub retained: u32,
    /// Consecutive failed checkpoints that the job lives with.
    #[schemars(range(min = 0, max = 1000))]
    pub tolerable_failures: u32,
    /// What a checkpoint promises after a failure.
    pub mode: CheckpointMode,
    /// Barriers overtake records in flight, which become part of the checkpoint.
    pub unaligned: bool,
    /// A checkpoint starts aligned and turns unaligned after this time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub aligned_timeout: Option<DurationText>,
    /// Share unchanged files with earlier checkpoints. No effect with the memory backend.
    pub incremental: bool,
}

impl Default for Checkpoint {
    fn default() -> Self {
        Self {
            storage: None,
            interval: DurationText::new("10s"),
            timeout: DurationText::new("10m"),
            min_pause: DurationText::new("500ms"),
            retained: 2,
            tolerable_failures: 3,
            mode: CheckpointMode::default(),
            unaligned: false,
            aligned_timeout: None,
            incremental: true,
        }
    }
}

/// What a checkpoint promises after a failure.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum CheckpointMode {
    #[default]
    ExactlyOnce,
    AtLeastOnce,
}
