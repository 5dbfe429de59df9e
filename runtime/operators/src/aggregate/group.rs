//! GROUP BY without windows: an updating result, one change for each input row.
//!
//! Per batch: keys to slots once, then what each row does to its group, then one loop per aggregate and state column
//! that notes the values before and after each row, from which the changelog is picked.

use std::{sync::Arc, time::Duration};

use arrow::{
    array::{Array, ArrayRef, AsArray, RecordBatch, UInt32Array, make_comparator},
    compute::{SortOptions, take},
    datatypes::{DataType, Int64Type, SchemaRef},
};
use streamkeeper_engine::{Changelog, Operator, OperatorContext, OperatorFactory, Output, SubtaskInfo};
use streamkeeper_state::{KeyEncoder, KeyRows, KeySchema, Missing, Slot, Table, TableSpec, ValueField};
use streamkeeper_types::{Code, Error, Result, ResultExt, RowKind};

use super::{
    accumulator::{Accumulator, Retraction},
    distinct::Distinct,
    extreme::OrderedValues,
    fold::{Rows, Step},
    spec::AggregateSpec,
};
use crate::{
    changelog,
    keys::KeyColumns,
    state::{table, ttl},
};

/// A GROUP BY as planned.
#[derive(Debug, Clone)]
pub struct GroupAggregateSpec {
    pub input: SchemaRef,
    /// Input columns to group by; none for one group of all rows.
    pub keys: Vec<usize>,
    pub aggregates: Vec<AggregateSpec>,
    /// Key columns, results in order of the aggregates, row kind.
    pub output: SchemaRef,
    /// `table.exec.state.ttl`: groups that no row came for are forgotten after it.
    pub state_ttl: Option<Duration>,
    /// What `state query` calls the groups.
    pub alias: String,
}

/// Makes the operators of a GROUP BY.
///
/// Output for each row, in order: `+I` when its group begins, `-D` when it takes back the group's last row, else `-U`
/// and `+U` if a result changed (with a TTL always, so that state further down is used too).
#[derive(Clone)]
pub struct GroupAggregateFactory {
    plan: Arc<Plan>,
}

struct Plan {
    keys: KeyColumns,
    retraction: Retraction,
    aggregates: Vec<Planned>,
    tables: Vec<TableSpec>,
    output: SchemaRef,
    emit: Unchanged,
}

struct Planned {
    accumulator: Accumulator,
    /// Its first value column in the table of groups.
    column: usize,
    /// Its table of values, if it needs one.
    values: Option<ValueTable>,
}

/// A table that counts the values of each group, by its number.
#[derive(Debug, Clone, Copy)]
enum ValueTable {
    Distinct(usize),
    Ordered(usize),
}

/// What happens on an update that changes no result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Unchanged {
    Emit,
    Suppress,
}

/// Number of the table of groups.
const GROUPS: usize = 0;
/// Counts the group's rows where rows may be taken back; column 0.
const ROWS: &str = "__rows";

impl GroupAggregateFactory {
    /// # Errors
    /// [`Code::SqlInvalid`] for an aggregate that is not defined over its argument, [`Code::SqlUnsupported`] for a
    /// column that state cannot hold.
    pub fn new(spec: GroupAggregateSpec) -> Result<Self> {
        let keys = KeyColumns::new(spec.keys, &spec.input)?;
        let retraction = match changelog::of_schema(&spec.input) {
            Changelog::InsertOnly => Retraction::Never,
            Changelog::Updating => Retraction::Possible,
        };
        let mut values = Vec::new();
        if retraction == Retraction::Possible {
            values.push(ValueField::zero(ROWS, DataType::Int64));
        }
        let mut aggregates = Vec::new();
        let mut value_tables = Vec::new();
        for aggregate in spec.aggregates {
            let accumulator = Accumulator::new(aggregate, &spec.input, retraction)?;
            let number = value_tables.len() + 1;
            let wanted = match accumulator.best() {
                Some(_) if retraction == Retraction::Possible => Some(ValueTable::Ordered(number)),
                None if accumulator.spec.distinct => Some(ValueTable::Distinct(number)),
                _ => None,
            };
            match wanted {
                None => {}
                Some(ValueTable::Distinct(_)) => {
                    let name = accumulator.spec.table_name("distinct");
                    value_tables.push(Distinct::table(name, &[], &keys, &accumulator.spec, &spec.input)?);
                }
                Some(ValueTable::Ordered(_)) => {
                    let name = accumulator.spec.table_name("values");
                    value_tables.push(OrderedValues::table(name, &keys, &accumulator.spec, &spec.input)?);
                }
            }
            let column = values.len();
            values.extend_from_slice(accumulator.fields());
            aggregates.push(Planned { accumulator, column, values: wanted });
        }
        let key = KeySchema::new(keys.fields().to_vec())?;
        let mut tables = vec![TableSpec::new("groups", key, values)?.with_alias(spec.alias)];
        tables.extend(value_tables);
        let ttl = ttl(spec.state_ttl);
        let tables = tables.into_iter().map(|t| t.with_ttl(ttl)).collect();
        let emit = if ttl.is_some() { Unchanged::Emit } else { Unchanged::Suppress };
        let plan = Plan { keys, retraction, aggregates, tables, output: spec.output, emit };
        Ok(Self { plan: Arc::new(plan) })
    }
}

impl OperatorFactory for GroupAggregateFactory {
    fn tables(&self) -> Vec<TableSpec> {
        self.plan.tables.clone()
    }

    fn create(&self, subtask: &SubtaskInfo) -> Result<Box<dyn Operator>> {
        let encoder = |number: usize| KeyEncoder::new(self.plan.tables[number].key().clone(), subtask.max_parallelism);
        let stages = self.plan.aggregates.iter().map(|aggregate| match aggregate.values {
            None => Stage::Plain,
            Some(ValueTable::Distinct(number)) => Stage::Distinct(Distinct::new(number, encoder(number))),
            Some(ValueTable::Ordered(number)) => Stage::Ordered(OrderedValues::new(number, encoder(number))),
        });
        Ok(Box::new(GroupAggregate {
            plan: Arc::clone(&self.plan),
            stages: stages.collect(),
            encoder: encoder(GROUPS),
            keys: KeyRows::new(),
            slots: Vec::new(),
            base: Vec::new(),
            signs: Vec::new(),
            steps: Vec::new(),
        }))
    }
}

/// What an aggregate needs besides its accumulator.
#[expect(clippy::large_enum_variant, reason = "one a distinct or ordered aggregate of the query")]
enum Stage {
    Plain,
    Distinct(Distinct),
    Ordered(OrderedValues),
}

struct GroupAggregate {
    plan: Arc<Plan>,
    stages: Vec<Stage>,
    encoder: KeyEncoder,
    keys: KeyRows,
    slots: Vec<Slot>,
    base: Vec<i8>,
    signs: Vec<i8>,
    steps: Vec<Step>,
}

impl Operator for GroupAggregate {
    fn process(
        &mut self,
        _input: usize,
        batch: RecordBatch,
        context: &mut OperatorContext,
        output: &mut dyn Output,
    ) -> Result<()> {
        let key_columns = self.plan.keys.of(&batch);
        self.encoder.encode(&key_columns, batch.num_rows(), &mut self.keys)?;
        let groups = table(context, GROUPS)?;
        groups.lookup(&self.keys, Missing::Insert, &mut self.slots)?;
        match self.plan.retraction {
            Retraction::Never => self.insert_steps(groups),
            Retraction::Possible => {
                let kinds = changelog::row_kinds(&batch)?.ok_or_else(|| Error::internal("rows without row kind"))?;
                self.retraction_steps(groups, kinds)?;
            }
        }
        let results = self.update(&batch, &key_columns, context)?;
        if self.plan.retraction == Retraction::Possible {
            self.settle(table(context, GROUPS)?)?;
        }
        self.emit(&key_columns, &results, output)
    }
}

impl GroupAggregate {
    fn insert_steps(&mut self, groups: &mut Table) {
        self.steps.clear();
        self.base.clear();
        self.base.resize(self.slots.len(), 1);
        for slot in &self.slots {
            self.steps.push(if groups.exists(*slot) { Step::Update } else { Step::Begin });
            groups.mark_dirty(*slot);
        }
    }

    fn retraction_steps(&mut self, groups: &mut Table, kinds: &[i8]) -> Result<()> {
        let counts = groups.columns_mut()[0].as_i64_mut().ok_or_else(|| changelog::batch_error(ROWS))?;
        self.steps.clear();
        self.base.clear();
        for (slot, kind) in self.slots.iter().zip(kinds) {
            let count = &mut counts.values[slot.index()];
            let (step, sign) = match (changelog::adds(*kind), *count) {
                (true, 0) => (Step::Begin, 1),
                (true, _) => (Step::Update, 1),
                (false, 0) => (Step::Ignore, 0),
                (false, 1) => (Step::End, -1),
                (false, _) => (Step::Update, -1),
            };
            *count += i64::from(sign);
            self.steps.push(step);
            self.base.push(sign);
        }
        Ok(())
    }

    /// Groups without rows leave the state; the others are written.
    fn settle(&self, groups: &mut Table) -> Result<()> {
        for slot in &self.slots {
            let counts = groups.columns()[0].as_i64().ok_or_else(|| changelog::batch_error(ROWS))?;
            match counts.values[slot.index()] {
                0 => groups.remove(*slot),
                _ => groups.mark_dirty(*slot),
            }
        }
        Ok(())
    }

    /// Results of each aggregate before and after each row, rows 2i and 2i + 1.
    fn update(
        &mut self,
        batch: &RecordBatch,
        key_columns: &[ArrayRef],
        context: &mut OperatorContext,
    ) -> Result<Vec<ArrayRef>> {
        let rows = Rows { slots: &self.slots, steps: &self.steps };
        let mut results = Vec::with_capacity(self.plan.aggregates.len());
        for (aggregate, stage) in self.plan.aggregates.iter().zip(&mut self.stages) {
            let accumulator = &aggregate.accumulator;
            accumulator.signs(batch, &self.base, &mut self.signs)?;
            let state = context.state.as_mut().ok_or_else(|| Error::internal("a keyed operator without state"))?;
            if let Stage::Ordered(values) = stage {
                results.push(values.update(
                    accumulator,
                    (GROUPS, aggregate.column),
                    state,
                    key_columns,
                    batch,
                    rows,
                    &self.signs,
                )?);
                continue;
            }
            if let (Stage::Distinct(distinct), Some(argument)) = (stage, accumulator.spec.argument) {
                let argument = batch.column(argument);
                distinct.first_and_last(
                    state.table_mut(distinct.table_number()),
                    key_columns,
                    argument,
                    &mut self.signs,
                )?;
            }
            let argument = accumulator.argument(batch)?;
            let columns = &mut state.table_mut(GROUPS).columns_mut()[aggregate.column..];
            let mut history = Vec::new();
            accumulator.update(columns, rows, &self.signs, argument.as_ref(), Some(&mut history))?;
            results.push(accumulator.finish(&history)?);
        }
        Ok(results)
    }

    fn emit(&self, key_columns: &[ArrayRef], results: &[ArrayRef], output: &mut dyn Output) -> Result<()> {
        let mut changed = vec![self.plan.emit == Unchanged::Emit; self.steps.len()];
        for result in results {
            mark_changed(result, &mut changed)?;
        }
        let mut picks: Vec<u32> = Vec::with_capacity(2 * self.steps.len());
        let mut kinds: Vec<i8> = Vec::with_capacity(2 * self.steps.len());
        for (row, step) in (0_u32..).zip(&self.steps) {
            let (before, after) = (2 * row, 2 * row + 1);
            match step {
                Step::Ignore => {}
                Step::Begin => {
                    picks.push(after);
                    kinds.push(RowKind::Insert.code());
                }
                Step::Update if changed[row as usize] => {
                    picks.extend([before, after]);
                    kinds.extend([RowKind::UpdateBefore.code(), RowKind::UpdateAfter.code()]);
                }
                Step::Update => {}
                Step::End => {
                    picks.push(before);
                    kinds.push(RowKind::Delete.code());
                }
            }
        }
        if picks.is_empty() {
            return Ok(());
        }
        let of_row = UInt32Array::from_iter_values(picks.iter().map(|p| p / 2));
        let of_result = UInt32Array::from(picks);
        let keys = key_columns.iter().map(|column| take(column, &of_row, None));
        let results = results.iter().map(|column| take(column, &of_result, None));
        let columns = keys.chain(results).collect::<Result<Vec<_>, _>>();
        let columns = columns.or_code(Code::Internal, || "rows of a changelog".to_owned())?;
        output.emit(changelog::updating_batch(&self.plan.output, columns, kinds)?)
    }
}

/// Sets `changed[i]` where rows 2i and 2i + 1 differ.
fn mark_changed(result: &ArrayRef, changed: &mut [bool]) -> Result<()> {
    if let Some(result) = result.as_primitive_opt::<Int64Type>()
        && result.null_count() == 0
    {
        for (changed, pair) in changed.iter_mut().zip(result.values().chunks_exact(2)) {
            *changed |= pair[0] != pair[1];
        }
        return Ok(());
    }
    let compare = make_comparator(result, result, SortOptions::default())
        .or_code(Code::Internal, || "results of an aggregate".to_owned())?;
    for (row, changed) in changed.iter_mut().enumerate() {
        *changed = *changed || compare(2 * row, 2 * row + 1).is_ne();
    }
    Ok(())
}
