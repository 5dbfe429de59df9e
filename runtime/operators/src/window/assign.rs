//! The table functions TUMBLE and HOP without aggregation: each row with the windows that it belongs to.

use std::sync::Arc;

use arrow::{
    array::{ArrayRef, RecordBatch, UInt32Array},
    compute::take,
    datatypes::SchemaRef,
};
use chrono_tz::Tz;
use streamkeeper_engine::{Changelog, Operator, OperatorContext, OperatorFactory, Output, SubtaskInfo};
use streamkeeper_types::{Code, Error, Millis, Result, ResultExt};

use super::{WindowSpec, WindowTime, window_columns, zone::WallClock};
use crate::{
    changelog::{self, data_columns},
    time::read_millis,
};

/// A window table function as planned.
#[derive(Debug, Clone)]
pub struct WindowAssignSpec {
    pub window: WindowSpec,
    /// Not [`WindowTime::Attached`]: such rows have their windows.
    pub time: WindowTime,
    /// The session's zone for TIMESTAMP_LTZ and processing time; `None` for TIMESTAMP.
    pub zone: Option<Tz>,
    /// Input columns, `window_start`, `window_end`, `window_time`.
    pub output: SchemaRef,
}

/// Appends `window_start`, `window_end` and `window_time`; a row of several windows comes once for each, the latest
/// window first. Judges no lateness.
#[derive(Clone)]
pub struct WindowAssignFactory {
    spec: Arc<WindowAssignSpec>,
}

impl WindowAssignFactory {
    /// # Errors
    /// [`Code::Internal`] for rows that have their windows, or an updating input.
    pub fn new(spec: WindowAssignSpec) -> Result<Self> {
        if matches!(spec.time, WindowTime::Attached(_)) || changelog::of_schema(&spec.output) == Changelog::Updating {
            return Err(Error::internal("windows are assigned once, and to insert-only rows"));
        }
        Ok(Self { spec: Arc::new(spec) })
    }
}

impl OperatorFactory for WindowAssignFactory {
    fn create(&self, _subtask: &SubtaskInfo) -> Result<Box<dyn Operator>> {
        let wall = WallClock::new(self.spec.zone);
        Ok(Box::new(WindowAssign { spec: Arc::clone(&self.spec), wall, times: Vec::new() }))
    }
}

struct WindowAssign {
    spec: Arc<WindowAssignSpec>,
    wall: WallClock,
    times: Vec<Millis>,
}

impl Operator for WindowAssign {
    fn process(
        &mut self,
        _input: usize,
        batch: RecordBatch,
        context: &mut OperatorContext,
        output: &mut dyn Output,
    ) -> Result<()> {
        match self.spec.time {
            WindowTime::Rowtime(column) => read_millis(batch.column(column), &mut self.times)?,
            _ => {
                self.times.clear();
                self.times.resize(batch.num_rows(), context.clock.now());
            }
        }
        let window = self.spec.window;
        let windows = usize::try_from(window.slices()).unwrap_or(usize::MAX);
        let mut ends = Vec::with_capacity(self.times.len().saturating_mul(windows));
        for time in &self.times {
            let first = window.slice_end(self.wall.at(*time));
            ends.extend((0..window.slices()).rev().map(|n| first.saturating_add(n * window.slide())));
        }
        let mut columns: Vec<ArrayRef> = data_columns(&batch).to_vec();
        if windows > 1 {
            let rows = (0_u32..).take(batch.num_rows());
            let repeated = UInt32Array::from_iter_values(rows.flat_map(|row| std::iter::repeat_n(row, windows)));
            let taken = columns.iter().map(|column| take(column, &repeated, None)).collect::<Result<_, _>>();
            columns = taken.or_code(Code::Internal, || "rows of several windows".to_owned())?;
        }
        let times = ends.iter().map(|end| self.wall.passed(end.saturating_sub(1))).collect();
        columns.extend(window_columns(&self.spec.output, ends, times, window.size())?);
        output.emit(changelog::batch(&self.spec.output, columns)?)
    }
}
