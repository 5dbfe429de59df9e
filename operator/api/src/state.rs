//! Where keyed state lives while a job runs.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Where keyed state lives while the job runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct State {
    /// `rocksdb` holds more state than fits in memory; `memory` holds all of it there.
    pub backend: StateBackend,
    /// Share of a TaskManager's memory for state, in percent.
    #[schemars(range(min = 1, max = 90))]
    pub memory_percent: u32,
}

impl Default for State {
    fn default() -> Self {
        Self { backend: StateBackend::default(), memory_percent: 50 }
    }
}

/// Where keyed state lives.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum StateBackend {
    #[default]
    Rocksdb,
    Memory,
}
