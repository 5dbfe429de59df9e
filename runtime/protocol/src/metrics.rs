//! Figures that tasks report. Counters grow; gauges are of the moment.

use serde::{Deserialize, Serialize};
use streamkeeper_types::Millis;

/// One task's part of one checkpoint.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckpointMetrics {
    /// Microseconds from the trigger to the first barrier at this task.
    pub start_delay_us: u64,
    /// Microseconds from the first barrier to the last.
    pub alignment_us: u64,
    /// Microseconds that the task thread did not process records.
    pub sync_us: u64,
    /// Microseconds of the upload.
    pub async_us: u64,
    /// Bytes written for this checkpoint.
    pub uploaded_bytes: u64,
    /// Bytes of all files that the snapshot refers to.
    pub full_bytes: u64,
}

/// Microseconds since the attempt started; the three together are its life.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskTime {
    pub busy_us: u64,
    pub idle_us: u64,
    pub back_pressured_us: u64,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SubtaskMetrics {
    pub records_in: u64,
    pub records_out: u64,
    pub bytes_in: u64,
    pub bytes_out: u64,
    pub time: TaskTime,
    /// Milliseconds of event time; `None` before the first.
    pub watermark: Option<Millis>,
    /// Bytes of keyed state in memory and below it.
    pub state_bytes: u64,
    /// Records that came after their window had passed.
    pub late_records: u64,
    /// Bad records skipped or sent to the dead-letter output.
    pub bad_records: u64,
    /// Of sources only.
    pub source: Option<SourceProgress>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SourceProgress {
    /// Bytes read and, where known, to be read in the splits seen so far.
    pub read_bytes: u64,
    pub total_bytes: Option<u64>,
}
