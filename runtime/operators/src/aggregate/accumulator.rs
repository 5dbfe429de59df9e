//! One aggregate: its state columns, how a batch updates them, and the result that they stand for.

use std::cmp::Ordering;

use arrow::{
    array::{Array, ArrayRef, AsArray, BooleanArray, RecordBatch},
    datatypes::{DataType, Schema},
};
use streamkeeper_state::{ValueColumn, ValueField};
use streamkeeper_types::{Code, Error, Result};

use super::{
    fold::{self, BytesHistory, History, Rows},
    spec::{AggregateFunction, AggregateSpec},
    values::{Argument, IntoColumn},
};
use crate::changelog::batch_error;

/// Unscaled values of DECIMAL(38, s) are below this.
pub(super) const DECIMAL_LIMIT: i128 = 10_i128.pow(38);

/// An aggregate and where its state lies among the table's value columns.
#[derive(Debug, Clone)]
pub(crate) struct Accumulator {
    pub spec: AggregateSpec,
    pub result: DataType,
    pub(super) kind: Kind,
    pub(super) fields: Vec<ValueField>,
}

/// What the state columns are, in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// count
    Count,
    /// sum, NULL as long as nothing was added
    Sum,
    /// sum, count
    CountedSum,
    /// sum, count
    Avg,
    /// the best value so far
    Extreme(Best),
}

/// Which value MIN and MAX keep.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Best {
    Least,
    Greatest,
}

/// Whether the input takes rows back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Retraction {
    Never,
    Possible,
}

impl Accumulator {
    /// # Errors
    /// As [`AggregateSpec::result_type`].
    pub(crate) fn new(spec: AggregateSpec, input: &Schema, retraction: Retraction) -> Result<Self> {
        let result = spec.result_type(input)?;
        let argument = spec.argument.map(|index| input.field(index).data_type().clone());
        let name = &spec.name;
        let count = || ValueField::zero(format!("{name}.count"), DataType::Int64);
        let (kind, fields) = match spec.function {
            AggregateFunction::Count => (Kind::Count, vec![ValueField::zero(name, DataType::Int64)]),
            AggregateFunction::Sum if retraction == Retraction::Never => {
                (Kind::Sum, vec![ValueField::nullable(name, result.clone())])
            }
            AggregateFunction::Sum => (Kind::CountedSum, vec![ValueField::nullable(name, result.clone()), count()]),
            AggregateFunction::Avg => {
                let sum = match argument {
                    Some(DataType::Float32 | DataType::Float64) => DataType::Float64,
                    Some(DataType::Decimal128(_, scale)) => DataType::Decimal128(38, scale),
                    _ => DataType::Int64,
                };
                (Kind::Avg, vec![ValueField::nullable(format!("{name}.sum"), sum), count()])
            }
            AggregateFunction::Min => (Kind::Extreme(Best::Least), vec![ValueField::nullable(name, result.clone())]),
            AggregateFunction::Max => (Kind::Extreme(Best::Greatest), vec![ValueField::nullable(name, result.clone())]),
        };
        Ok(Self { spec, result, kind, fields })
    }

    /// State columns, in order.
    pub(crate) fn fields(&self) -> &[ValueField] {
        &self.fields
    }

    /// Of MIN and MAX, which value they keep.
    pub(crate) fn best(&self) -> Option<Best> {
        match self.kind {
            Kind::Extreme(best) => Some(best),
            _ => None,
        }
    }

    /// Replaces `signs` by what each row does to this aggregate: 1 adds, −1 takes back, 0 nothing because the filter is
    /// not true or the argument is NULL. `base` has what it does to its group.
    pub(crate) fn signs(&self, batch: &RecordBatch, base: &[i8], signs: &mut Vec<i8>) -> Result<()> {
        signs.clear();
        signs.extend_from_slice(base);
        if let Some(filter) = self.spec.filter {
            let filter: &BooleanArray =
                batch.column(filter).as_boolean_opt().ok_or_else(|| batch_error(&self.spec.name))?;
            for (row, sign) in signs.iter_mut().enumerate() {
                if !(filter.is_valid(row) && filter.value(row)) {
                    *sign = 0;
                }
            }
        }
        if let Some(nulls) = self.spec.argument.and_then(|index| batch.column(index).logical_nulls()) {
            for (row, sign) in signs.iter_mut().enumerate() {
                if nulls.is_null(row) {
                    *sign = 0;
                }
            }
        }
        Ok(())
    }

    /// The argument column; `None` for COUNT, which needs only signs.
    pub(crate) fn argument(&self, batch: &RecordBatch) -> Result<Option<Argument>> {
        match (self.kind, self.spec.argument) {
            (Kind::Count, _) | (_, None) => Ok(None),
            (_, Some(index)) => Argument::new(batch.column(index)).map(Some),
        }
    }

    /// Updates `columns` (those of [`Accumulator::fields`]). With `history`, appends each state column's values before
    /// and after each row, rows 2i and 2i + 1.
    pub(crate) fn update(
        &self,
        columns: &mut [ValueColumn],
        rows: Rows<'_>,
        signs: &[i8],
        argument: Option<&Argument>,
        history: Option<&mut Vec<ArrayRef>>,
    ) -> Result<()> {
        match self.kind {
            Kind::Count => self.count(&mut columns[0], rows, signs, history),
            Kind::Sum => self.sum(&mut columns[0], &self.fields[0].data_type, rows, signs, argument, history),
            Kind::CountedSum | Kind::Avg => {
                let (sum, count) = columns.split_at_mut(1);
                let mut history = history;
                self.sum(&mut sum[0], &self.fields[0].data_type, rows, signs, argument, history.as_deref_mut())?;
                self.count(&mut count[0], rows, signs, history)
            }
            Kind::Extreme(best) => self.extreme(&mut columns[0], best, rows, signs, argument, history),
        }
    }

    fn count(
        &self,
        column: &mut ValueColumn,
        rows: Rows<'_>,
        signs: &[i8],
        history: Option<&mut Vec<ArrayRef>>,
    ) -> Result<()> {
        let column = column.as_i64_mut().ok_or_else(|| batch_error(&self.spec.name))?;
        let mut own = history.is_some().then(History::default);
        fold::count(column, rows, signs, own.as_mut());
        record(own, history, &DataType::Int64)
    }

    /// Adds to a state column of `data_type`.
    pub(super) fn sum(
        &self,
        column: &mut ValueColumn,
        data_type: &DataType,
        rows: Rows<'_>,
        signs: &[i8],
        argument: Option<&Argument>,
        history: Option<&mut Vec<ArrayRef>>,
    ) -> Result<()> {
        match (column, argument) {
            (ValueColumn::I64(column), Some(Argument::I64(values))) => {
                let mut own = history.is_some().then(History::default);
                // The sum of INTs is an INT and wraps as one.
                let unused = match data_type {
                    DataType::Int8 => 56,
                    DataType::Int16 => 48,
                    DataType::Int32 => 32,
                    _ => 0,
                };
                let step = |sum: i64, value: i64, sign: i8| {
                    Ok(sum.wrapping_add(value.wrapping_mul(i64::from(sign))) << unused >> unused)
                };
                fold::sum(column, rows, signs, |row| values[row], step, own.as_mut())?;
                record(own, history, data_type)
            }
            (ValueColumn::F64(column), Some(Argument::F64(values))) => {
                let mut own = history.is_some().then(History::default);
                if *data_type == DataType::Float32 {
                    // The exact sum of two f32, rounded once, is their sum as f32.
                    #[expect(clippy::cast_possible_truncation, reason = "FLOAT adds in single precision")]
                    let step = |sum: f64, value: f64, sign: i8| Ok(f64::from((sum + value * f64::from(sign)) as f32));
                    fold::sum(column, rows, signs, |row| values[row], step, own.as_mut())?;
                } else {
                    let step = |sum: f64, value: f64, sign: i8| Ok(sum + value * f64::from(sign));
                    fold::sum(column, rows, signs, |row| values[row], step, own.as_mut())?;
                }
                record(own, history, data_type)
            }
            (ValueColumn::I128(column), Some(Argument::I128(values))) => {
                let mut own = history.is_some().then(History::default);
                let step = |sum: i128, value: i128, sign: i8| {
                    // Both are below 10^38, their sum is below 2^127.
                    let sum = sum + value * i128::from(sign);
                    if sum.abs() < DECIMAL_LIMIT { Ok(sum) } else { Err(self.overflow()) }
                };
                fold::sum(column, rows, signs, |row| values[row], step, own.as_mut())?;
                record(own, history, data_type)
            }
            _ => Err(batch_error(&self.spec.name)),
        }
    }

    fn extreme(
        &self,
        column: &mut ValueColumn,
        best: Best,
        rows: Rows<'_>,
        signs: &[i8],
        argument: Option<&Argument>,
        history: Option<&mut Vec<ArrayRef>>,
    ) -> Result<()> {
        let data_type = &self.fields[0].data_type;
        match (column, argument) {
            (ValueColumn::I64(column), Some(Argument::I64(values))) => {
                let mut own = history.is_some().then(History::default);
                fold::extreme(column, rows, signs, |row| values[row], |a, b| best.prefers(a.cmp(&b)), own.as_mut());
                record(own, history, data_type)
            }
            (ValueColumn::F64(column), Some(Argument::F64(values))) => {
                let mut own = history.is_some().then(History::default);
                let is_better = |a: f64, b: f64| best.prefers(compare_f64(a, b));
                fold::extreme(column, rows, signs, |row| values[row], is_better, own.as_mut());
                record(own, history, data_type)
            }
            (ValueColumn::I128(column), Some(Argument::I128(values))) => {
                let mut own = history.is_some().then(History::default);
                fold::extreme(column, rows, signs, |row| values[row], |a, b| best.prefers(a.cmp(&b)), own.as_mut());
                record(own, history, data_type)
            }
            (ValueColumn::Bytes(column), Some(Argument::Bytes(values))) => {
                let mut own = history.is_some().then(BytesHistory::default);
                let is_better = |a: &[u8], b: &[u8]| best.prefers(a.cmp(b));
                fold::extreme_bytes(column, rows, signs, |row| values.value(row), is_better, own.as_mut());
                record(own, history, data_type)
            }
            _ => Err(batch_error(&self.spec.name)),
        }
    }

    pub(super) fn overflow(&self) -> Error {
        Error::new(Code::Evaluation, format!("{} has more than 38 digits", self.spec.name))
            .way_out("cast the argument to DOUBLE or to a DECIMAL of fewer digits")
    }
}

impl Best {
    pub(crate) fn prefers(self, candidate_to_current: Ordering) -> bool {
        match self {
            Self::Least => candidate_to_current == Ordering::Less,
            Self::Greatest => candidate_to_current == Ordering::Greater,
        }
    }
}

/// The order of key bytes: NaN is greatest, −0.0 equals 0.0.
pub(super) fn compare_f64(a: f64, b: f64) -> Ordering {
    a.partial_cmp(&b).unwrap_or_else(|| a.is_nan().cmp(&b.is_nan()))
}

fn record<H: IntoColumn>(own: Option<H>, history: Option<&mut Vec<ArrayRef>>, data_type: &DataType) -> Result<()> {
    if let (Some(own), Some(history)) = (own, history) {
        history.push(own.into_column(data_type)?);
    }
    Ok(())
}
