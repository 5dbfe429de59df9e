//! Event time and watermarks: milliseconds since 1970-01-01 UTC, as SQL's rowtime columns have them.

use serde::{Deserialize, Serialize};

/// Milliseconds of wall-clock time since 1970-01-01 UTC; what pure code takes as `now`.
pub type Millis = i64;

/// The time at which a record happened, in milliseconds since 1970-01-01 UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct EventTime(pub i64);

/// «No record with a time at or below this will follow»; it never goes down on one channel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Watermark(pub i64);

impl Watermark {
    /// Before any record.
    pub const MIN: Self = Self(i64::MIN);
    /// End of input: everything fires.
    pub const MAX: Self = Self(i64::MAX);
}
