//! `LAG(x) OVER (PARTITION BY k ORDER BY t)`: each row with a value of the row before it under the same key.
//!
//! By processing time rows pass at once. By rowtime they wait for the watermark and pass in the order of time; a row at
//! or before the latest that passed for its key is late.

use std::{sync::Arc, time::Duration};

use arrow::{
    array::{Array, ArrayRef, AsArray, BooleanArray, Int64Array, RecordBatch, new_null_array},
    compute::{filter, filter_record_batch, interleave},
    datatypes::{DataType, Field, FieldRef, Int64Type, SchemaRef},
};
use streamkeeper_engine::{Operator, OperatorContext, OperatorFactory, Output, RestoredLists, SubtaskInfo};
use streamkeeper_state::{KeyEncoder, KeyRows, KeySchema, Missing, Slot, Table, TableSpec, ValueField};
use streamkeeper_types::{Code, Error, Millis, Result, ResultExt, Watermark};

use crate::{
    changelog::{self, batch_error},
    keys::KeyColumns,
    latest::Latest,
    state::{table, ttl},
    time::{ROWTIME, TimeOrder, read_millis},
    waiting::{Waiting, rowtime_key},
};

/// One `LAG`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LagColumn {
    /// Input column whose value of the row before is given.
    pub argument: usize,
    /// Input column, of the argument's type, that stands in for the first row of a key; else NULL.
    pub default: Option<usize>,
    /// As in the SQL text, `LAG(hits)`; names the state, so it must be unique in the operator.
    pub name: String,
}

/// LAGs with one OVER clause as planned, over an insert-only input.
#[derive(Debug, Clone)]
pub struct LagSpec {
    pub input: SchemaRef,
    /// PARTITION BY; none for one sequence of all rows.
    pub keys: Vec<usize>,
    pub order: TimeOrder,
    pub lags: Vec<LagColumn>,
    /// Input columns, then one for each LAG.
    pub output: SchemaRef,
    /// `table.exec.state.ttl`: keys that no row came for are forgotten after it.
    pub state_ttl: Option<Duration>,
    /// What `state query` calls the rows before.
    pub alias: String,
}

/// Makes the operators of LAG. Output is insert-only.
#[derive(Clone)]
pub struct LagFactory {
    plan: Arc<Plan>,
}

struct Plan {
    keys: KeyColumns,
    order: TimeOrder,
    lags: Vec<LagColumn>,
    output: SchemaRef,
    tables: Vec<TableSpec>,
}

/// Number of the table with the row before for each key: a value for each LAG, and by rowtime these two columns behind.
const BEFORE: usize = 0;
/// Number of the table of rows that wait for the watermark.
const WAITING: usize = 1;
/// Numbers the rows of a key, so that those of equal time stay apart and in order.
const NUMBER: &str = "__number";

impl LagFactory {
    /// # Errors
    /// [`Code::SqlUnsupported`] for a column that state cannot hold.
    pub fn new(spec: LagSpec) -> Result<Self> {
        let keys = KeyColumns::new(spec.keys, &spec.input)?;
        let field = |index: usize| {
            let field = spec.input.fields().get(index);
            field.ok_or_else(|| Error::internal(format!("LAG over column {index}, which is not there")))
        };
        let value = |lag: &LagColumn| Ok(ValueField::nullable(&lag.name, field(lag.argument)?.data_type().clone()));
        let mut values = spec.lags.iter().map(value).collect::<Result<Vec<_>>>()?;
        let mut tables = Vec::new();
        if let TimeOrder::Rowtime(_) = spec.order {
            // Of the latest row that passed.
            values.push(ValueField::nullable(ROWTIME, DataType::Int64));
            // Of the next row that comes.
            values.push(ValueField::zero(NUMBER, DataType::Int64));
            let long = |name: &str| -> FieldRef { Arc::new(Field::new(name, DataType::Int64, false)) };
            let mut fields = vec![long(ROWTIME)];
            fields.extend_from_slice(keys.fields());
            let hashed = 1..fields.len();
            fields.push(long(NUMBER));
            let key = KeySchema::with_layout(fields, hashed, 1)?;
            let row = spec.input.fields().iter().map(|f| ValueField::nullable(f.name(), f.data_type().clone()));
            tables.push(TableSpec::new("waiting", key, row.collect())?);
        }
        let key = KeySchema::new(keys.fields().to_vec())?;
        let before = TableSpec::new("before", key, values)?.with_alias(spec.alias).with_ttl(ttl(spec.state_ttl));
        tables.insert(BEFORE, before);
        let plan = Plan { keys, order: spec.order, lags: spec.lags, output: spec.output, tables };
        Ok(Self { plan: Arc::new(plan) })
    }
}

impl OperatorFactory for LagFactory {
    fn tables(&self) -> Vec<TableSpec> {
        self.plan.tables.clone()
    }

    fn create(&self, subtask: &SubtaskInfo) -> Result<Box<dyn Operator>> {
        let encoder = |number: usize| KeyEncoder::new(self.plan.tables[number].key().clone(), subtask.max_parallelism);
        let shift = Shift {
            plan: Arc::clone(&self.plan),
            encoder: encoder(BEFORE),
            keys: KeyRows::new(),
            slots: Vec::new(),
            latest: Latest::default(),
        };
        Ok(match self.plan.order {
            TimeOrder::ProcessingTime => Box::new(LagByArrival { shift }),
            TimeOrder::Rowtime(rowtime) => {
                Box::new(LagByRowtime { shift, rowtime, times: Vec::new(), waiting: Waiting::new(encoder(WAITING)) })
            }
        })
    }
}

struct LagByArrival {
    shift: Shift,
}

impl Operator for LagByArrival {
    fn process(
        &mut self,
        _input: usize,
        batch: RecordBatch,
        context: &mut OperatorContext,
        output: &mut dyn Output,
    ) -> Result<()> {
        let before = table(context, BEFORE)?;
        let keys = self.shift.plan.keys.of(&batch);
        self.shift.look_up(&keys, batch.num_rows(), before)?;
        let has_before: Vec<bool> = self.shift.slots.iter().map(|slot| before.exists(*slot)).collect();
        let lagged = self.shift.apply(batch.columns(), &has_before, before)?;
        output.emit(lagged)
    }
}

struct LagByRowtime {
    shift: Shift,
    rowtime: usize,
    times: Vec<Millis>,
    waiting: Waiting,
}

impl Operator for LagByRowtime {
    fn open(&mut self, _restored: &RestoredLists, context: &mut OperatorContext) -> Result<()> {
        self.waiting.restore(table(context, WAITING)?)
    }

    fn process(
        &mut self,
        _input: usize,
        batch: RecordBatch,
        context: &mut OperatorContext,
        _output: &mut dyn Output,
    ) -> Result<()> {
        read_millis(batch.column(self.rowtime), &mut self.times)?;
        let mut keys = self.shift.plan.keys.of(&batch);
        let before = table(context, BEFORE)?;
        self.shift.look_up(&keys, batch.num_rows(), before)?;
        let (in_time, numbers) = self.number(before)?;
        let mut batch = batch;
        let late = self.times.len() - numbers.len();
        if late > 0 {
            context.metrics.add_late(late as u64);
            if numbers.is_empty() {
                return Ok(());
            }
            let in_time = BooleanArray::from(in_time);
            let kept = keys.iter().map(|column| filter(column, &in_time)).collect::<Result<Vec<_>, _>>();
            keys = kept.or_code(Code::Internal, || "late rows".to_owned())?;
            batch = filter_record_batch(&batch, &in_time).or_code(Code::Internal, || "late rows".to_owned())?;
            read_millis(batch.column(self.rowtime), &mut self.times)?;
        }
        keys.insert(0, rowtime_key(self.times.clone()));
        keys.push(Arc::new(Int64Array::from(numbers)));
        self.waiting.put(table(context, WAITING)?, &keys, &self.times, &batch)
    }

    fn on_watermark(
        &mut self,
        watermark: Watermark,
        context: &mut OperatorContext,
        output: &mut dyn Output,
    ) -> Result<()> {
        while let Some(due) = self.waiting.next_due(table(context, WAITING)?, watermark)? {
            let before = table(context, BEFORE)?;
            self.shift.look_up(&due.keys[1..due.keys.len() - 1], due.len, before)?;
            let rowtime = self.rowtime_column();
            let passed = before.columns()[rowtime].as_i64().ok_or_else(|| batch_error(ROWTIME))?;
            let has_before: Vec<bool> = self.shift.slots.iter().map(|slot| passed.valid[slot.index()]).collect();
            let lagged = self.shift.apply(&due.rows, &has_before, before)?;
            let times = due.keys[0].as_primitive_opt::<Int64Type>().ok_or_else(|| batch_error(ROWTIME))?;
            let passed = before.columns_mut()[rowtime].as_i64_mut().ok_or_else(|| batch_error(ROWTIME))?;
            for (slot, time) in self.shift.slots.iter().zip(times.values()) {
                passed.values[slot.index()] = *time;
                passed.valid[slot.index()] = true;
            }
            output.emit(lagged)?;
        }
        Ok(())
    }
}

impl LagByRowtime {
    /// Place of the latest rowtime in the table of rows before.
    fn rowtime_column(&self) -> usize {
        self.shift.plan.lags.len()
    }

    /// Whether each row is in time, and the numbers of those that are.
    fn number(&self, before: &mut Table) -> Result<(Vec<bool>, Vec<i64>)> {
        let rowtime = self.rowtime_column();
        let (mut in_time, mut numbers) = (Vec::with_capacity(self.times.len()), Vec::with_capacity(self.times.len()));
        for (slot, time) in self.shift.slots.iter().zip(&self.times) {
            let passed = before.columns()[rowtime].as_i64().ok_or_else(|| batch_error(ROWTIME))?;
            let is_late = passed.valid[slot.index()] && *time <= passed.values[slot.index()];
            in_time.push(!is_late);
            if is_late {
                continue;
            }
            let next = before.columns_mut()[rowtime + 1].as_i64_mut().ok_or_else(|| batch_error(NUMBER))?;
            let number = &mut next.values[slot.index()];
            numbers.push(*number);
            *number += 1;
            before.mark_dirty(*slot);
        }
        Ok((in_time, numbers))
    }
}

/// Gives rows in their final order the values of the rows before.
struct Shift {
    plan: Arc<Plan>,
    encoder: KeyEncoder,
    keys: KeyRows,
    slots: Vec<Slot>,
    latest: Latest,
}

/// Sources of values for `interleave`.
const STATE: usize = 0;
const BATCH: usize = 1;
const DEFAULT: usize = 2;

impl Shift {
    fn look_up(&mut self, keys: &[ArrayRef], rows: usize, before: &mut Table) -> Result<()> {
        self.encoder.encode(keys, rows, &mut self.keys)?;
        before.lookup(&self.keys, Missing::Insert, &mut self.slots)
    }

    /// The rows that were looked up with the LAG columns, and state brought up to them. `has_before` says whether state
    /// has a row before, by row.
    fn apply(&mut self, columns: &[ArrayRef], has_before: &[bool], before: &mut Table) -> Result<RecordBatch> {
        self.latest.begin();
        let mut picks = Vec::with_capacity(self.slots.len());
        for (row, slot) in (0_u32..).zip(&self.slots) {
            picks.push(match self.latest.replace(*slot, row) {
                Some(earlier) => (BATCH, earlier as usize),
                None if has_before[row as usize] => (STATE, row as usize),
                None => (DEFAULT, row as usize),
            });
        }
        let (slots, rows): (Vec<Slot>, Vec<u32>) = self.latest.rows().unzip();
        let mut output = columns.to_vec();
        for (index, lag) in self.plan.lags.iter().enumerate() {
            let argument = &columns[lag.argument];
            let state = before.gather(index, &self.slots)?;
            let default = match lag.default {
                Some(column) => Arc::clone(&columns[column]),
                None => new_null_array(argument.data_type(), argument.len()),
            };
            let lagged = interleave(&[&state, argument, &default], &picks);
            output.push(lagged.or_code(Code::Internal, || lag.name.clone())?);
            before.scatter(index, argument, &rows, &slots)?;
        }
        slots.iter().for_each(|slot| before.mark_dirty(*slot));
        changelog::batch(&self.plan.output, output)
    }
}
