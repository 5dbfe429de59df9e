//! Savepoints that a job takes by itself: schedule, retention, place, format.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::cel;
use crate::text::{DurationText, StorageUri};

/// Savepoints by schedule, their retention and format.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(extend("x-kubernetes-validations" = cel::savepoint_policy()))]
pub struct SavepointPolicy {
    /// When savepoints are taken by the clock.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub schedule: Option<Schedule>,
    /// How long scheduled and upgrade savepoints are kept; the newest always is.
    pub retention: Retention,
    /// Where savepoints lie. Below `checkpoint.storage` if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub storage: Option<StorageUri>,
    /// How state is written.
    pub format: SavepointFormat,
    /// A savepoint that takes longer is given up; at least `10s`.
    pub timeout: DurationText,
}

impl Default for SavepointPolicy {
    fn default() -> Self {
        Self {
            schedule: None,
            retention: Retention::default(),
            storage: None,
            format: SavepointFormat::default(),
            timeout: DurationText::new("30m"),
        }
    }
}

/// A time table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Schedule {
    /// Five fields: minute, hour, day of month, month, day of week.
    #[schemars(length(min = 1, max = 128))]
    pub cron: String,
    /// IANA name of the zone that the fields are read in.
    #[serde(default = "default_time_zone")]
    #[schemars(length(min = 1, max = 64))]
    pub time_zone: String,
}

pub(crate) fn default_time_zone() -> String {
    "Etc/UTC".to_owned()
}

/// How many savepoints are kept, and for how long.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Retention {
    /// At most this many.
    #[schemars(range(min = 1, max = 1000))]
    pub count: u32,
    /// Older ones go.
    pub age: DurationText,
}

impl Default for Retention {
    fn default() -> Self {
        Self { count: 10, age: DurationText::new("168h") }
    }
}

/// How a savepoint writes state: `canonical` is Parquet, which any tool and any backend can read; `native` is the backend's own files.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum SavepointFormat {
    #[default]
    Canonical,
    Native,
}
