//! GROUP BY `window_start`, `window_end` and keys, over insert-only rows.
//!
//! State has a row for each slice and key, in the order of slice ends. Rows go to their slice as they come; when the
//! watermark passes a window, its slices are read by one scan each. A tumbling window is one slice, whose rows are the
//! results; the slices of a hopping window are merged, and each leaves the state with its last window.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use arrow::{
    array::{AsArray, BooleanArray, RecordBatch},
    compute::filter_record_batch,
    datatypes::{DataType, Field, FieldRef, Schema, SchemaRef, TimeUnit, TimestampMillisecondType},
};
use chrono_tz::Tz;
use streamkeeper_engine::{Changelog, Operator, OperatorContext, OperatorFactory, Output, RestoredLists, SubtaskInfo};
use streamkeeper_protocol::Barrier;
use streamkeeper_state::{KeyEncoder, KeyRows, KeySchema, Missing, Slot, TableSpec};
use streamkeeper_types::{Code, Error, Millis, Result, ResultExt, Watermark, snapshot::ListState};

use super::{WindowSpec, WindowTime, end_key, zone::WallClock};
use crate::{
    aggregate::{
        AggregateSpec,
        accumulator::{Accumulator, Retraction},
        distinct::Distinct,
        fold::Rows,
    },
    changelog,
    keys::KeyColumns,
    state::{keyed, table},
    time::read_millis,
    watermark::SeenWatermark,
};

/// A window aggregate as planned.
#[derive(Debug, Clone)]
pub struct WindowAggregateSpec {
    pub input: SchemaRef,
    /// For rows with windows attached: the windows that they were given.
    pub window: WindowSpec,
    pub time: WindowTime,
    /// The session's zone for windows over TIMESTAMP_LTZ and processing time; `None` for TIMESTAMP.
    pub zone: Option<Tz>,
    /// Input columns to group by besides the window.
    pub keys: Vec<usize>,
    pub aggregates: Vec<AggregateSpec>,
    /// `window.allowed-lateness`: how long after its end a window by rowtime keeps its state and takes rows.
    pub lateness: Duration,
    /// Key columns, results in order of the aggregates, `window_start`, `window_end`, `window_time`; with a lateness
    /// also the row kind.
    pub output: SchemaRef,
    /// What `state query` calls the slices.
    pub alias: String,
}

/// Makes the operators of a window aggregate. Output is insert-only: each window once, in the order of window ends.
///
/// A row is late for a window when the window's last millisecond ≤ watermark; it still counts in later windows of its
/// slice, and is counted as late when there is none. With an allowed lateness the output is updating: up to so much
/// later a row still changes the window, whose result is put out again as `-U` and `+U`.
#[derive(Clone)]
pub struct WindowAggregateFactory {
    plan: Arc<Plan>,
}

pub(super) struct Plan {
    pub window: WindowSpec,
    pub time: WindowTime,
    pub zone: Option<Tz>,
    pub keys: KeyColumns,
    pub aggregates: Vec<Planned>,
    pub tables: Vec<TableSpec>,
    /// Milliseconds; 0 where windows go by the clock.
    pub lateness: Millis,
    pub output: SchemaRef,
    /// The output without row kind.
    pub data: SchemaRef,
}

pub(super) struct Planned {
    pub accumulator: Accumulator,
    /// Its first value column in the table of slices.
    pub column: usize,
    /// Number of its table of distinct values.
    pub distinct: Option<usize>,
}

/// Number of the table of slices.
pub(super) const SLICES: usize = 0;

impl WindowAggregateFactory {
    /// # Errors
    /// [`Code::SqlInvalid`] for an aggregate that is not defined over its argument, [`Code::SqlUnsupported`] for an
    /// updating input or a column that state cannot hold.
    pub fn new(spec: WindowAggregateSpec) -> Result<Self> {
        if changelog::of_schema(&spec.input) == Changelog::Updating {
            return Err(Error::new(Code::SqlUnsupported, "a window aggregate over an updating table")
                .way_out("aggregate an insert-only table, or group by the windows without a window function"));
        }
        let lateness = match spec.time {
            WindowTime::ProcessingTime => 0,
            _ => Millis::try_from(spec.lateness.as_millis()).unwrap_or(Millis::MAX),
        };
        let data = match lateness {
            0 => Arc::clone(&spec.output),
            _ => Arc::new(Schema::new(&spec.output.fields()[..spec.output.fields().len().saturating_sub(1)])),
        };
        let keys = KeyColumns::new(spec.keys, &spec.input)?;
        let end: FieldRef = Arc::new(Field::new("slice_end", DataType::Timestamp(TimeUnit::Millisecond, None), false));
        let before = [end];
        let mut values = Vec::new();
        let mut aggregates = Vec::new();
        let mut distinct_tables = Vec::new();
        for aggregate in spec.aggregates {
            let accumulator = Accumulator::new(aggregate, &spec.input, Retraction::Never)?;
            let distinct =
                (accumulator.spec.distinct && accumulator.best().is_none()).then(|| distinct_tables.len() + 1);
            if distinct.is_some() {
                let name = accumulator.spec.table_name("distinct");
                distinct_tables.push(Distinct::table(name, &before, &keys, &accumulator.spec, &spec.input)?);
            }
            let column = values.len();
            values.extend_from_slice(accumulator.fields());
            aggregates.push(Planned { accumulator, column, distinct });
        }
        let fields: Vec<FieldRef> = before.into_iter().chain(keys.fields().iter().cloned()).collect();
        let hashed = 1..fields.len();
        let key = KeySchema::with_layout(fields, hashed, 1)?;
        let mut tables = vec![TableSpec::new("slices", key, values)?.with_alias(spec.alias)];
        tables.extend(distinct_tables);
        let plan = Plan {
            window: spec.window,
            time: spec.time,
            zone: spec.zone,
            keys,
            aggregates,
            tables,
            lateness,
            output: spec.output,
            data,
        };
        if lateness > 0 && plan.slices() > 1 && plan.tables.len() > 1 {
            return Err(Error::new(Code::SqlUnsupported, "DISTINCT in HOP windows that take rows after their end")
                .way_out("set window.allowed-lateness to 0s, or use TUMBLE"));
        }
        Ok(Self { plan: Arc::new(plan) })
    }
}

impl Plan {
    /// Slices of one window.
    pub(super) fn slices(&self) -> Millis {
        match self.time {
            WindowTime::Attached(_) => 1,
            _ => self.window.slices(),
        }
    }

    /// Ends of the windows that a slice belongs to, first one first.
    fn windows_of(&self, slice_end: Millis) -> impl DoubleEndedIterator<Item = Millis> + use<> {
        let slide = self.window.slide();
        (0..self.slices()).map(move |n| slice_end.saturating_add(n * slide))
    }
}

impl OperatorFactory for WindowAggregateFactory {
    fn tables(&self) -> Vec<TableSpec> {
        self.plan.tables.clone()
    }

    fn create(&self, subtask: &SubtaskInfo) -> Result<Box<dyn Operator>> {
        let encoder = |number: usize| KeyEncoder::new(self.plan.tables[number].key().clone(), subtask.max_parallelism);
        let distinct = |planned: &Planned| planned.distinct.map(|number| Distinct::new(number, encoder(number)));
        Ok(Box::new(WindowAggregate {
            distinct: self.plan.aggregates.iter().map(distinct).collect(),
            encoder: encoder(SLICES),
            wall: WallClock::new(self.plan.zone),
            plan: Arc::clone(&self.plan),
            watermark: SeenWatermark::default(),
            slices: BTreeSet::new(),
            open: BTreeSet::new(),
            fired: BTreeSet::new(),
            keys: KeyRows::new(),
            slots: Vec::new(),
            times: Vec::new(),
            ends: Vec::new(),
            base: Vec::new(),
            signs: Vec::new(),
        }))
    }
}

pub(super) struct WindowAggregate {
    pub(super) plan: Arc<Plan>,
    pub(super) distinct: Vec<Option<Distinct>>,
    pub(super) encoder: KeyEncoder,
    pub(super) wall: WallClock,
    watermark: SeenWatermark,
    /// Ends of slices that state has rows of.
    pub(super) slices: BTreeSet<Millis>,
    /// Ends of windows that have rows and did not fire.
    open: BTreeSet<Millis>,
    /// Ends of windows that fired and still have state.
    fired: BTreeSet<Millis>,
    keys: KeyRows,
    slots: Vec<Slot>,
    times: Vec<Millis>,
    /// The slice of each row of the batch, by its end.
    pub(super) ends: Vec<Millis>,
    base: Vec<i8>,
    signs: Vec<i8>,
}

impl Operator for WindowAggregate {
    fn open(&mut self, restored: &RestoredLists, context: &mut OperatorContext) -> Result<()> {
        self.watermark.restore(restored)?;
        let slices = table(context, SLICES)?;
        let prefixes = slices.prefixes()?;
        let columns = slices.spec().key().decode_prefixes(prefixes.iter())?;
        let ends = columns.first().and_then(|c| c.as_primitive_opt::<TimestampMillisecondType>());
        for end in ends.ok_or_else(|| changelog::batch_error("slice_end"))?.values() {
            self.begin_slice(*end);
        }
        Ok(())
    }

    fn process(
        &mut self,
        _input: usize,
        batch: RecordBatch,
        context: &mut OperatorContext,
        output: &mut dyn Output,
    ) -> Result<()> {
        self.assign(&batch, context.clock.now())?;
        let Some(batch) = self.drop_late(batch, context)? else { return Ok(()) };
        let fired = self.results_before(&batch, context)?;
        self.begin_slices();
        self.accumulate(&batch, context)?;
        self.put_out_again(fired, context, output)
    }

    fn on_watermark(
        &mut self,
        watermark: Watermark,
        context: &mut OperatorContext,
        output: &mut dyn Output,
    ) -> Result<()> {
        self.watermark.advance(watermark);
        if self.plan.time == WindowTime::ProcessingTime {
            return Ok(());
        }
        while let Some(end) = self.open.first().copied().filter(|end| self.is_over(*end)) {
            self.fire(end, context, output)?;
            self.open.remove(&end);
            if self.plan.lateness > 0 {
                self.fired.insert(end);
            }
        }
        while let Some(end) = self.fired.first().copied().filter(|end| self.is_expired(*end)) {
            self.end_last_slice(end, context)?;
            self.fired.remove(&end);
        }
        Ok(())
    }

    fn next_timer(&self) -> Option<Millis> {
        match self.plan.time {
            WindowTime::ProcessingTime => self.open.first().map(|end| self.ends_at(*end)),
            _ => None,
        }
    }

    fn on_timer(&mut self, now: Millis, context: &mut OperatorContext, output: &mut dyn Output) -> Result<()> {
        while let Some(end) = self.next_timer().filter(|at| *at <= now).and_then(|_| self.open.pop_first()) {
            self.fire(end, context, output)?;
        }
        Ok(())
    }

    fn snapshot_lists(&mut self, _barrier: &Barrier) -> Result<BTreeMap<String, ListState>> {
        Ok(self.watermark.snapshot())
    }

    /// Windows by rowtime have fired by the end watermark; those by processing time fire now.
    fn finish(&mut self, context: &mut OperatorContext, output: &mut dyn Output) -> Result<()> {
        self.on_timer(Millis::MAX, context, output)
    }
}

impl WindowAggregate {
    /// Sets `ends` to the slice of each row.
    fn assign(&mut self, batch: &RecordBatch, now: Millis) -> Result<()> {
        let window = self.plan.window;
        match self.plan.time {
            WindowTime::Attached(column) => return read_millis(batch.column(column), &mut self.ends),
            WindowTime::ProcessingTime => {
                let end = window.slice_end(self.wall.at(now));
                self.ends.clear();
                self.ends.resize(batch.num_rows(), end);
                return Ok(());
            }
            WindowTime::Rowtime(column) => read_millis(batch.column(column), &mut self.times)?,
        }
        self.ends.clear();
        self.ends.reserve(self.times.len());
        // Most rows lie in the slice of the row before.
        let (mut start, mut end) = (Millis::MAX, Millis::MIN);
        for time in &self.times {
            let time = self.wall.at(*time);
            if time < start || time >= end {
                end = window.slice_end(time);
                start = end.saturating_sub(window.slide());
            }
            self.ends.push(end);
        }
        Ok(())
    }

    /// Drops and counts rows all of whose windows take no more rows; `None` if no row is left.
    fn drop_late(&mut self, batch: RecordBatch, context: &OperatorContext) -> Result<Option<RecordBatch>> {
        if self.plan.time == WindowTime::ProcessingTime {
            return Ok(Some(batch));
        }
        let mut late = 0_u64;
        let mut in_time: Vec<bool> = Vec::new();
        let mut judged = None;
        for (row, end) in self.ends.iter().enumerate() {
            let is_late = match judged {
                Some((of, is_late)) if of == *end => is_late,
                _ => self.plan.windows_of(*end).next_back().is_none_or(|last| self.is_expired(last)),
            };
            judged = Some((*end, is_late));
            if is_late && late == 0 {
                in_time.resize(row, true);
            }
            late += u64::from(is_late);
            if late > 0 {
                in_time.push(!is_late);
            }
        }
        if late == 0 {
            return Ok(Some(batch));
        }
        context.metrics.add_late(late);
        if late == batch.num_rows() as u64 {
            return Ok(None);
        }
        let mut keep = in_time.iter();
        self.ends.retain(|_| keep.next().is_some_and(|k| *k));
        let kept = filter_record_batch(&batch, &BooleanArray::from(in_time));
        kept.map(Some).or_code(Code::Internal, || "late rows".to_owned())
    }

    fn begin_slices(&mut self) {
        let mut last = None;
        for row in 0..self.ends.len() {
            let end = self.ends[row];
            if last != Some(end) {
                self.begin_slice(end);
                last = Some(end);
            }
        }
    }

    fn begin_slice(&mut self, end: Millis) {
        if !self.slices.insert(end) {
            return;
        }
        let windows = self.plan.windows_of(end);
        let by_clock = self.plan.time == WindowTime::ProcessingTime;
        let (open, over): (Vec<Millis>, Vec<Millis>) = windows.partition(|window| by_clock || !self.is_over(*window));
        // A slice without any open window ends with its last one: at once, if the lateness was shortened meanwhile.
        let keeps_slice = |window: &Millis| !self.is_expired(*window) || open.is_empty();
        let fired: Vec<Millis> = over.into_iter().filter(keeps_slice).collect();
        self.open.extend(open);
        self.fired.extend(fired);
    }

    fn accumulate(&mut self, batch: &RecordBatch, context: &mut OperatorContext) -> Result<()> {
        let mut key_columns = vec![end_key(self.ends.clone())];
        key_columns.extend(self.plan.keys.of(batch));
        self.encoder.encode(&key_columns, batch.num_rows(), &mut self.keys)?;
        let state = keyed(context)?;
        state.table_mut(SLICES).lookup(&self.keys, Missing::Insert, &mut self.slots)?;
        self.base.clear();
        self.base.resize(self.slots.len(), 1);
        let rows = Rows { slots: &self.slots, steps: &[] };
        for (planned, distinct) in self.plan.aggregates.iter().zip(&mut self.distinct) {
            let accumulator = &planned.accumulator;
            accumulator.signs(batch, &self.base, &mut self.signs)?;
            if let (Some(distinct), Some(argument)) = (distinct, accumulator.spec.argument) {
                let argument = batch.column(argument);
                let values = state.table_mut(distinct.table_number());
                distinct.first_and_last(values, &key_columns, argument, &mut self.signs)?;
            }
            let argument = accumulator.argument(batch)?;
            let columns = &mut state.table_mut(SLICES).columns_mut()[planned.column..];
            accumulator.update(columns, rows, &self.signs, argument.as_ref(), None)?;
        }
        let slices = state.table_mut(SLICES);
        self.slots.iter().for_each(|slot| slices.mark_dirty(*slot));
        Ok(())
    }

    /// Whether the window that ends at `end` has passed by the watermark.
    pub(super) fn is_over(&self, end: Millis) -> bool {
        self.wall.passed(end.saturating_sub(1)) <= self.watermark.get()
    }

    /// Whether the window takes no more rows: it is over, and the lateness too.
    pub(super) fn is_expired(&self, end: Millis) -> bool {
        self.wall.passed(end.saturating_sub(1)).saturating_add(self.plan.lateness) <= self.watermark.get()
    }

    /// The instant at which a window ends.
    fn ends_at(&self, end: Millis) -> Millis {
        self.wall.passed(end.saturating_sub(1)).saturating_add(1)
    }
}
