//! The folds that all aggregates are made of: one state column, updated row by row in the order of the batch.
//!
//! COUNT is a sum of ones; SUM is a sum, with a count beside it where rows are taken back; AVG a sum and a count whose
//! quotient is taken at the end; MIN and MAX keep the better value. Each fold is one loop over one column.

use streamkeeper_state::{BytesColumn, Fixed, Slot};
use streamkeeper_types::Result;

/// What a row does to its group as a whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    /// Takes back a row from a group that does not exist: nothing happens.
    Ignore,
    /// The group begins with this row.
    Begin,
    /// The group was there and stays.
    Update,
    /// The group's last row is taken back.
    End,
}

/// Rows of a batch as folds see them.
#[derive(Clone, Copy)]
pub(crate) struct Rows<'a> {
    /// Slot of the row's group in the state table.
    pub slots: &'a [Slot],
    /// Empty where every group exists and none ends, as in windows.
    pub steps: &'a [Step],
}

impl Rows<'_> {
    fn begins(&self, row: usize) -> bool {
        self.steps.get(row) == Some(&Step::Begin)
    }
}

/// Values of a column before and after each row: of row i at 2i and 2i + 1.
#[derive(Debug, Default)]
pub(crate) struct History<T> {
    pub values: Vec<T>,
    pub valid: Vec<bool>,
}

impl<T> History<T> {
    fn push(&mut self, value: T, valid: bool) {
        self.values.push(value);
        self.valid.push(valid);
    }
}

/// As [`History`], for strings and binary: value i ends at `ends[i]` in `data`.
#[derive(Debug, Default)]
pub(crate) struct BytesHistory {
    pub data: Vec<u8>,
    pub ends: Vec<usize>,
    pub valid: Vec<bool>,
}

impl BytesHistory {
    fn push(&mut self, value: Option<&[u8]>) {
        self.data.extend_from_slice(value.unwrap_or_default());
        self.ends.push(self.data.len());
        self.valid.push(value.is_some());
    }
}

/// Adds each row's value (`signs` 1) or takes it back (−1) by `step(sum, value, sign)`; a column without any is NULL.
pub(crate) fn sum<T: Copy + Default>(
    column: &mut Fixed<T>,
    rows: Rows<'_>,
    signs: &[i8],
    value: impl Fn(usize) -> T,
    step: impl Fn(T, T, i8) -> Result<T>,
    mut history: Option<&mut History<T>>,
) -> Result<()> {
    for (row, slot) in rows.slots.iter().enumerate() {
        let slot = slot.index();
        let was_valid = !rows.begins(row) && column.valid[slot];
        // What lies under a NULL is anything: restored columns keep what their file had there.
        let before = if was_valid { column.values[slot] } else { T::default() };
        let (after, is_valid) =
            if signs[row] == 0 { (before, was_valid) } else { (step(before, value(row), signs[row])?, true) };
        column.values[slot] = after;
        column.valid[slot] = is_valid;
        if let Some(history) = history.as_deref_mut() {
            history.push(before, was_valid);
            history.push(after, is_valid);
        }
    }
    Ok(())
}

/// Adds up `signs`; never NULL.
pub(crate) fn count(column: &mut Fixed<i64>, rows: Rows<'_>, signs: &[i8], mut history: Option<&mut History<i64>>) {
    for (row, slot) in rows.slots.iter().enumerate() {
        let slot = slot.index();
        let before = if rows.begins(row) { 0 } else { column.values[slot] };
        let after = before + i64::from(signs[row]);
        column.values[slot] = after;
        column.valid[slot] = true;
        if let Some(history) = history.as_deref_mut() {
            history.push(before, true);
            history.push(after, true);
        }
    }
}

/// Keeps the better of the column's value and each row's, for rows whose sign is not 0.
pub(crate) fn extreme<T: Copy + Default>(
    column: &mut Fixed<T>,
    rows: Rows<'_>,
    signs: &[i8],
    value: impl Fn(usize) -> T,
    is_better: impl Fn(T, T) -> bool,
    mut history: Option<&mut History<T>>,
) {
    for (row, slot) in rows.slots.iter().enumerate() {
        let slot = slot.index();
        let (before, was_valid) =
            if rows.begins(row) { (T::default(), false) } else { (column.values[slot], column.valid[slot]) };
        let (mut after, mut is_valid) = (before, was_valid);
        if signs[row] != 0 && (!was_valid || is_better(value(row), before)) {
            (after, is_valid) = (value(row), true);
        }
        column.values[slot] = after;
        column.valid[slot] = is_valid;
        if let Some(history) = history.as_deref_mut() {
            history.push(before, was_valid);
            history.push(after, is_valid);
        }
    }
}

/// [`extreme`] for strings and binary, compared by bytes.
pub(crate) fn extreme_bytes<'a>(
    column: &mut BytesColumn,
    rows: Rows<'_>,
    signs: &[i8],
    value: impl Fn(usize) -> &'a [u8],
    is_better: impl Fn(&[u8], &[u8]) -> bool,
    mut history: Option<&mut BytesHistory>,
) {
    for (row, slot) in rows.slots.iter().enumerate() {
        if rows.begins(row) {
            column.set(*slot, None);
        }
        if let Some(history) = history.as_deref_mut() {
            history.push(column.get(*slot));
        }
        if signs[row] != 0 && column.get(*slot).is_none_or(|before| is_better(value(row), before)) {
            column.set(*slot, Some(value(row)));
        }
        if let Some(history) = history.as_deref_mut() {
            history.push(column.get(*slot));
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_sum_that_is_null_begins_at_zero_whatever_lies_under_the_null() {
        let mut column = Fixed { values: vec![700, 40], valid: vec![false, true] };
        let slots = [Slot(0), Slot(1)];
        let rows = Rows { slots: &slots, steps: &[] };
        let step = |sum: i64, value: i64, sign: i8| Ok(sum + value * i64::from(sign));
        sum(&mut column, rows, &[1, 1], |_| 2, step, None).unwrap();
        assert_eq!(column.values, [2, 42]);
        assert_eq!(column.valid, [true, true]);
    }
}
