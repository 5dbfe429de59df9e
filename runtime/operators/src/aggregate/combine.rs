//! Partial results to one, outside of state: the slices of a hopping window.

use arrow::{
    array::{Array, ArrayRef, UInt32Array},
    compute::take,
    datatypes::DataType,
};
use streamkeeper_state::{Fixed, Initial, Slot, ValueColumn};
use streamkeeper_types::{Code, Result, ResultExt};

use super::{
    accumulator::{Accumulator, Best, Kind, compare_f64},
    fold::{History, Rows},
    values::{Argument, IntoColumn},
};
use crate::changelog::batch_error;

impl Accumulator {
    /// Merges state columns of partial results: row i belongs to group `groups[i]`, of which there are `count`.
    pub(crate) fn merge(&self, states: &[ArrayRef], groups: &[Slot], count: usize) -> Result<Vec<ArrayRef>> {
        if let Kind::Extreme(best) = self.kind {
            return Ok(vec![extremes(best, &states[0], groups, count)?]);
        }
        let rows = Rows { slots: groups, steps: &[] };
        let mut merged = Vec::with_capacity(states.len());
        for (state, field) in states.iter().zip(&self.fields) {
            let signs: Vec<i8> = (0..state.len()).map(|row| i8::from(state.is_valid(row))).collect();
            let mut column = transient(&field.data_type, field.initial, count);
            self.sum(&mut column, &field.data_type, rows, &signs, Some(&Argument::new(state)?), None)?;
            merged.push(self.column_of(column, &field.data_type)?);
        }
        Ok(merged)
    }

    /// State columns of COUNT, SUM or AVG over `values`, none of them NULL: value i belongs to group `groups[i]`.
    pub(crate) fn fold(&self, groups: &[Slot], count: usize, values: &ArrayRef) -> Result<Vec<ArrayRef>> {
        let rows = Rows { slots: groups, steps: &[] };
        let signs = vec![1; groups.len()];
        let argument = if self.kind == Kind::Count { None } else { Some(Argument::new(values)?) };
        let mut columns: Vec<ValueColumn> =
            self.fields.iter().map(|field| transient(&field.data_type, field.initial, count)).collect();
        self.update(&mut columns, rows, &signs, argument.as_ref(), None)?;
        let columns = columns.into_iter().zip(&self.fields);
        columns.map(|(column, field)| self.column_of(column, &field.data_type)).collect()
    }

    fn column_of(&self, column: ValueColumn, data_type: &DataType) -> Result<ArrayRef> {
        match column {
            ValueColumn::I64(Fixed { values, valid }) => History { values, valid }.into_column(data_type),
            ValueColumn::F64(Fixed { values, valid }) => History { values, valid }.into_column(data_type),
            ValueColumn::I128(Fixed { values, valid }) => History { values, valid }.into_column(data_type),
            ValueColumn::Bytes(_) => Err(batch_error(&self.spec.name)),
        }
    }
}

/// A column of numbers outside of any table.
fn transient(data_type: &DataType, initial: Initial, slots: usize) -> ValueColumn {
    fn zeros<T: Copy + Default>(initial: Initial, slots: usize) -> Fixed<T> {
        Fixed { values: vec![T::default(); slots], valid: vec![initial == Initial::Zero; slots] }
    }
    match data_type {
        DataType::Float32 | DataType::Float64 => ValueColumn::F64(zeros(initial, slots)),
        DataType::Decimal128(_, _) => ValueColumn::I128(zeros(initial, slots)),
        _ => ValueColumn::I64(zeros(initial, slots)),
    }
}

/// The best value of each group.
fn extremes(best: Best, values: &ArrayRef, groups: &[Slot], count: usize) -> Result<ArrayRef> {
    let argument = Argument::new(values)?;
    let compare = |a: usize, b: usize| match &argument {
        Argument::I64(values) => values[a].cmp(&values[b]),
        Argument::F64(values) => compare_f64(values[a], values[b]),
        Argument::I128(values) => values[a].cmp(&values[b]),
        Argument::Bytes(values) => values.value(a).cmp(values.value(b)),
    };
    let mut rows: Vec<Option<u32>> = vec![None; count];
    for (row, group) in groups.iter().enumerate().filter(|(row, _)| values.is_valid(*row)) {
        let current = &mut rows[group.index()];
        if current.is_none_or(|current| best.prefers(compare(row, current as usize))) {
            *current = u32::try_from(row).ok();
        }
    }
    take(values, &UInt32Array::from(rows), None).or_code(Code::Internal, || "slices of a window".to_owned())
}
