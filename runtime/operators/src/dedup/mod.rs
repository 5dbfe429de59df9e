//! Deduplication: `ROW_NUMBER() OVER (PARTITION BY k ORDER BY t [ASC | DESC]) = 1`.
//!
//! | keep | by processing time | by rowtime |
//! | --- | --- | --- |
//! | first | passes a key's first row on at once; insert-only | waits for the watermark, drops late rows; insert-only |
//! | last | updates at once; a repeat that changes nothing is silent | updates at once; an older row never shows |

mod first;
mod first_rowtime;
mod last;

use std::{sync::Arc, time::Duration};

use arrow::{
    array::{ArrayRef, Int64Array},
    datatypes::{DataType, Field, FieldRef, SchemaRef},
};
use streamkeeper_engine::{Operator, OperatorFactory, SubtaskInfo};
use streamkeeper_state::{KeyEncoder, KeySchema, TableSpec, ValueField};
use streamkeeper_types::Result;

use crate::{
    keys::KeyColumns,
    state::ttl,
    time::{ROWTIME, TimeOrder},
};

/// Which row of a key stays.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Keep {
    /// `ORDER BY t ASC`.
    First,
    /// `ORDER BY t DESC`.
    Last,
}

/// Whether the row number, always 1, is a column of the output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RowNumber {
    Omit,
    /// BIGINT behind the input's columns.
    Append,
}

/// A deduplication as planned, over an insert-only input.
#[derive(Debug, Clone)]
pub struct DeduplicateSpec {
    pub input: SchemaRef,
    /// PARTITION BY; none keeps one row of all.
    pub keys: Vec<usize>,
    pub keep: Keep,
    pub order: TimeOrder,
    pub row_number: RowNumber,
    /// Input columns, the row number if wanted, and for [`Keep::Last`] the row kind.
    pub output: SchemaRef,
    /// `table.exec.state.ttl`: keys that no row came for are forgotten after it.
    pub state_ttl: Option<Duration>,
    /// What `state query` calls the kept rows.
    pub alias: String,
}

/// Makes the operators of a deduplication.
#[derive(Clone)]
pub struct DeduplicateFactory {
    plan: Arc<Plan>,
}

pub(crate) struct Plan {
    keys: KeyColumns,
    keep: Keep,
    order: TimeOrder,
    row_number: RowNumber,
    output: SchemaRef,
    has_ttl: bool,
    tables: Vec<TableSpec>,
}

/// Number of the table with a row for each key.
const KEPT: usize = 0;
/// Number of the table of rows that wait for the watermark.
const WAITING: usize = 1;

impl DeduplicateFactory {
    /// # Errors
    /// [`streamkeeper_types::Code::SqlUnsupported`] for a column that state cannot hold.
    pub fn new(spec: DeduplicateSpec) -> Result<Self> {
        let keys = KeyColumns::new(spec.keys, &spec.input)?;
        let key = KeySchema::new(keys.fields().to_vec())?;
        let ttl = ttl(spec.state_ttl);
        let table = |values: Vec<ValueField>| -> Result<TableSpec> {
            Ok(TableSpec::new("kept", key.clone(), values)?.with_alias(spec.alias.clone()).with_ttl(ttl))
        };
        let row: Vec<ValueField> =
            spec.input.fields().iter().map(|f| ValueField::nullable(f.name(), f.data_type().clone())).collect();
        let tables = match (spec.keep, spec.order) {
            (Keep::First, TimeOrder::ProcessingTime) => vec![table(Vec::new())?],
            (Keep::First, TimeOrder::Rowtime(_)) => {
                let rowtime: FieldRef = Arc::new(Field::new(ROWTIME, DataType::Int64, false));
                let fields: Vec<FieldRef> = std::iter::once(rowtime).chain(keys.fields().iter().cloned()).collect();
                let hashed = 1..fields.len();
                let waiting = KeySchema::with_layout(fields, hashed, 1)?;
                // NULL once the row was put out.
                let kept = table(vec![ValueField::nullable(ROWTIME, DataType::Int64)])?;
                vec![kept, TableSpec::new("waiting", waiting, row)?]
            }
            (Keep::Last, _) => vec![table(row)?],
        };
        let plan = Plan {
            keys,
            keep: spec.keep,
            order: spec.order,
            row_number: spec.row_number,
            output: spec.output,
            has_ttl: ttl.is_some(),
            tables,
        };
        Ok(Self { plan: Arc::new(plan) })
    }
}

impl OperatorFactory for DeduplicateFactory {
    fn tables(&self) -> Vec<TableSpec> {
        self.plan.tables.clone()
    }

    fn create(&self, subtask: &SubtaskInfo) -> Result<Box<dyn Operator>> {
        let plan = Arc::clone(&self.plan);
        let encoder = |number: usize| KeyEncoder::new(self.plan.tables[number].key().clone(), subtask.max_parallelism);
        Ok(match (plan.keep, plan.order) {
            (Keep::First, TimeOrder::ProcessingTime) => Box::new(first::KeepFirst::new(plan, encoder(KEPT))),
            (Keep::First, TimeOrder::Rowtime(column)) => {
                Box::new(first_rowtime::KeepFirstByRowtime::new(plan, column, encoder(KEPT), encoder(WAITING)))
            }
            (Keep::Last, _) => Box::new(last::KeepLast::new(plan, encoder(KEPT))),
        })
    }
}

impl Plan {
    /// Rows with the row number behind their columns, if it is wanted.
    fn numbered(&self, mut columns: Vec<ArrayRef>, rows: usize) -> Vec<ArrayRef> {
        if self.row_number == RowNumber::Append {
            columns.push(Arc::new(Int64Array::from(vec![1; rows])));
        }
        columns
    }
}
