//! Before a keyed step: exactly the columns that it needs, keys among them.

use streamkeeper_types::Result;

use super::Translator;
use crate::plan::stream::{Column, Stream, Value};

/// A stream whose head yields its columns as they are.
pub(super) struct Keyed {
    /// The columns of the input that [`is_made`], in their order, then keys that are none of them.
    pub(super) stream: Stream,
    /// Positions of the keys in the head's columns.
    pub(super) keys: Vec<usize>,
    /// Position of the column that orders rows.
    pub(super) order: Option<usize>,
}

impl Translator<'_> {
    /// Makes the real columns of `input`, and `keys` and `order`, columns of one node.
    pub(super) fn keyed(&mut self, input: Stream, keys: &[Column], order: Option<&Column>) -> Result<Keyed> {
        let mut made: Vec<Column> = input.columns.iter().filter(|column| is_made(column)).cloned().collect();
        let keys = keys.iter().map(|key| place(&mut made, key)).collect();
        let order = order.map(|order| place(&mut made, order));
        let stream = self.flush(Stream { columns: made, pending: None, ..input })?;
        Ok(Keyed { stream, keys, order })
    }
}

/// Whether a keyed step must be given the column: not if it is still to be made, or is the clock.
pub(super) fn is_made(column: &Column) -> bool {
    matches!(column.value, Value::Expr(_)) && !column.is_clock()
}

/// Position of a column with the same values, which is added if there is none.
pub(super) fn place(columns: &mut Vec<Column>, wanted: &Column) -> usize {
    let same = |column: &Column| match (&column.value, &wanted.value) {
        (Value::Expr(a), Value::Expr(b)) => a == b,
        _ => false,
    };
    if let Some(position) = columns.iter().position(same) {
        return position;
    }
    let mut column = wanted.clone();
    let mut number = 2;
    while columns.iter().any(|other| other.name == column.name) {
        column.name = format!("{}_{number}", wanted.name);
        number += 1;
    }
    columns.push(column);
    columns.len() - 1
}
