//! Settings of the autoscaler.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::cel;
use crate::savepoint_policy::default_time_zone;
use crate::text::{DurationText, QuantityText};

/// Moves the parallelism with the load.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(extend("x-kubernetes-validations" = cel::autoscaler()))]
pub struct Autoscaler {
    /// `advise` only says what it would do.
    pub mode: AutoscalerMode,
    /// Never below.
    #[schemars(range(min = 1, max = 32_768))]
    pub min_parallelism: u32,
    /// Never above. The job's `maxParallelism` if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 32_768))]
    pub max_parallelism: Option<u32>,
    /// Share of capacity that shall be in use, in percent.
    #[schemars(range(min = 10, max = 95))]
    pub target_utilization: u32,
    /// How far the share may lie from its target before anything happens, in percent.
    #[schemars(range(min = 5, max = 45))]
    pub utilization_band: u32,
    /// Time over which load is measured; at least `30s`.
    pub window: DurationText,
    /// Least time between a change and the next decision.
    pub stabilization: DurationText,
    /// Time in which a backlog shall be worked off.
    pub catch_up: DurationText,
    /// Load must stay low for this long before the job shrinks.
    pub scale_down_delay: DurationText,
    /// Lag that calls for more, whatever the utilisation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_lag: Option<DurationText>,
    /// One step up multiplies the parallelism by at most this.
    #[schemars(range(min = 2, max = 100))]
    pub max_up_factor: u32,
    /// One step down takes at most this share away, in percent.
    #[schemars(range(min = 1, max = 90))]
    pub max_down_percent: u32,
    /// Changes in 24 hours.
    #[schemars(range(min = 1, max = 200))]
    pub max_per_day: u32,
    /// All TaskManagers together never ask for more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limits: Option<AutoscalerLimits>,
    /// Times in which nothing is changed.
    #[schemars(length(max = 16))]
    pub excluded_periods: Vec<ExcludedPeriod>,
}

impl Default for Autoscaler {
    fn default() -> Self {
        Self {
            mode: AutoscalerMode::default(),
            min_parallelism: 1,
            max_parallelism: None,
            target_utilization: 70,
            utilization_band: 20,
            window: DurationText::new("3m"),
            stabilization: DurationText::new("1m"),
            catch_up: DurationText::new("10m"),
            scale_down_delay: DurationText::new("15m"),
            max_lag: None,
            max_up_factor: 4,
            max_down_percent: 50,
            max_per_day: 20,
            limits: None,
            excluded_periods: Vec::new(),
        }
    }
}

/// What the autoscaler may do.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum AutoscalerMode {
    #[default]
    Off,
    Advise,
    Active,
}

/// Upper bounds of all TaskManagers together.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct AutoscalerLimits {
    /// CPU, for example `16`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu: Option<QuantityText>,
    /// Memory, for example `64Gi`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory: Option<QuantityText>,
}

/// A time in which nothing is changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ExcludedPeriod {
    /// When it begins: minute, hour, day of month, month, day of week.
    #[schemars(length(min = 1, max = 128))]
    pub cron: String,
    /// How long it lasts.
    pub duration: DurationText,
    /// IANA name of the zone that `cron` is read in.
    #[serde(default = "default_time_zone")]
    #[schemars(length(min = 1, max = 64))]
    pub time_zone: String,
}
