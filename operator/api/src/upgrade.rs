//! How an edit that stops the job is carried out, judged and taken back.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::cel;
use crate::text::DurationText;

/// How an edit that stops the job is carried out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Upgrade {
    /// What the new version starts from.
    pub mode: UpgradeMode,
    /// Drop state that the new version has no place for, whatever it is restored from.
    pub allow_non_restored_state: bool,
    /// What to use when the job cannot take a savepoint.
    pub fallback: UpgradeFallback,
    /// In mode `lastCheckpoint`, an older checkpoint is not used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_checkpoint_age: Option<DurationText>,
    /// How long the savepoint of an upgrade may take.
    pub savepoint_timeout: DurationText,
    /// Check by the new image, before the old job stops.
    pub preflight: Preflight,
    /// Return to the last good version when the new one does not prove itself.
    pub rollback: Rollback,
}

impl Default for Upgrade {
    fn default() -> Self {
        Self {
            mode: UpgradeMode::default(),
            allow_non_restored_state: false,
            fallback: UpgradeFallback::default(),
            max_checkpoint_age: None,
            savepoint_timeout: DurationText::new("10m"),
            preflight: Preflight::default(),
            rollback: Rollback::default(),
        }
    }
}

/// What a new version starts from.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum UpgradeMode {
    #[default]
    Savepoint,
    LastCheckpoint,
    Stateless,
}

/// What to use when the job cannot take a savepoint: its newest verified point, or nothing, which means waiting.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum UpgradeFallback {
    #[default]
    LastCheckpoint,
    None,
}

/// Check by the new image, before the old job stops.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Preflight {
    /// Whether it is done.
    pub enabled: bool,
    /// A check that takes longer has failed.
    pub timeout: DurationText,
}

impl Default for Preflight {
    fn default() -> Self {
        Self { enabled: true, timeout: DurationText::new("5m") }
    }
}

/// Return to the last good version.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(extend("x-kubernetes-validations" = cel::rollback()))]
pub struct Rollback {
    /// Whether it is done.
    pub enabled: bool,
    /// The new version must run by then.
    pub deadline: DurationText,
    /// How long the new version must prove itself; at least `10s`.
    pub soak: DurationText,
    /// Restarts during the soak that are still good.
    #[schemars(range(min = 0, max = 1000))]
    pub max_restarts: u32,
}

impl Default for Rollback {
    fn default() -> Self {
        Self { enabled: true, deadline: DurationText::new("10m"), soak: DurationText::new("2m"), max_restarts: 3 }
    }
}
