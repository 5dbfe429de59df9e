//! What happens to a job and its state when its object is deleted.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::cel;
use crate::text::DurationText;

/// What happens to the job and its state when this object is deleted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(extend("x-kubernetes-validations" = cel::deletion()))]
pub struct DeletionPolicy {
    /// How the job stops.
    pub on_delete: OnDelete,
    /// What becomes of checkpoints and ledger; savepoints made by hand always stay.
    pub state: StateOnDelete,
    /// The object goes by then, whatever could not be done; at least `30s`.
    pub timeout: DurationText,
}

impl Default for DeletionPolicy {
    fn default() -> Self {
        Self { on_delete: OnDelete::default(), state: StateOnDelete::default(), timeout: DurationText::new("10m") }
    }
}

/// How a deleted job stops.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum OnDelete {
    #[default]
    Cancel,
    Savepoint,
}

/// What becomes of a deleted job's state.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum StateOnDelete {
    #[default]
    Retain,
    Delete,
}
