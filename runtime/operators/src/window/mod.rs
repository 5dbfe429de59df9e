//! TUMBLE and HOP windows: which rows belong to which, aggregates over them, and the table functions alone.
//!
//! Three to know: [`WindowSpec`] (the arithmetic), [`WindowAggregateFactory`] (GROUP BY `window_start`, `window_end`),
//! [`WindowAssignFactory`] (only appends the windows' columns).

mod aggregate;
mod assign;
mod fire;
mod late;
mod merge;
mod spec;
mod zone;

use std::sync::Arc;

use arrow::{array::ArrayRef, datatypes::SchemaRef};
use streamkeeper_types::{Error, Millis, Result};

pub use aggregate::{WindowAggregateFactory, WindowAggregateSpec};
pub use assign::{WindowAssignFactory, WindowAssignSpec};
pub use spec::WindowSpec;

use crate::time::timestamps;

/// By what rows are assigned to windows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WindowTime {
    /// This TIMESTAMP or TIMESTAMP_LTZ input column; windows fire by the watermark.
    Rowtime(usize),
    /// The rows already belong to windows, whose `window_end` is this input column; windows fire by the watermark.
    Attached(usize),
    /// The clock of the machine; windows fire by it.
    ProcessingTime,
}

/// Number of columns that windows put behind the others: `window_start`, `window_end`, `window_time`.
pub(crate) const WINDOW_COLUMNS: usize = 3;

/// The windows' columns for windows that end at `ends` on the wall clock; `times` are the instants of their last
/// milliseconds. Types are those of the last three fields of `output`.
pub(crate) fn window_columns(
    output: &SchemaRef,
    ends: Vec<Millis>,
    times: Vec<Millis>,
    size: Millis,
) -> Result<[ArrayRef; WINDOW_COLUMNS]> {
    let fields = output.fields();
    let first = fields.len().checked_sub(WINDOW_COLUMNS).ok_or_else(|| Error::internal("no columns for windows"))?;
    let starts = ends.iter().map(|end| end.saturating_sub(size)).collect();
    Ok([
        timestamps(starts, fields[first].data_type())?,
        timestamps(ends, fields[first + 1].data_type())?,
        timestamps(times, fields[first + 2].data_type())?,
    ])
}

/// A column of window ends as state keys have it.
pub(crate) fn end_key(ends: Vec<Millis>) -> ArrayRef {
    Arc::new(arrow::array::TimestampMillisecondArray::from(ends))
}
