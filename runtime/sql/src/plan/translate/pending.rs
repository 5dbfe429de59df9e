//! Steps whose kind shows only by what stands above them: made real, or moved onto another node.

use streamkeeper_types::Result;

use super::{Translator, keyed::place};
use crate::plan::stream::{Column, Pending, PendingWindow, RowNumber, Stream, Value};

impl Translator<'_> {
    /// Makes the pending step a node of its own. A ROW_NUMBER without a filter on it cannot be one.
    pub(crate) fn flush_pending(&mut self, mut stream: Stream) -> Result<Stream> {
        match stream.pending.take() {
            None => Ok(stream),
            Some(Pending::Window(window)) => self.attach_window(stream, window),
            Some(Pending::RowNumber(_)) => Err(self.row_number_alone()),
        }
    }

    /// Refuses a ROW_NUMBER without a filter on it; a window may stay pending.
    pub(super) fn no_ranking(&self, stream: Stream) -> Result<Stream> {
        match stream.pending {
            Some(Pending::RowNumber(_)) => Err(self.row_number_alone()),
            _ => Ok(stream),
        }
    }

    /// Makes the real columns a node, below the step that stays pending.
    pub(super) fn flush_below_pending(&mut self, mut stream: Stream) -> Result<Stream> {
        let Some(pending) = stream.pending.take() else { return self.flush(stream) };
        let columns = stream.columns.clone();
        let mut made: Vec<Column> =
            columns.iter().filter(|column| matches!(column.value, Value::Expr(_))).cloned().collect();
        let read: Vec<usize> = read_by(&pending).into_iter().map(|column| place(&mut made, column)).collect();
        let flushed = self.flush(Stream { columns: made, ..stream })?;
        let mut real = flushed.columns.iter().cloned();
        let columns = columns
            .into_iter()
            .map(|column| match column.value {
                Value::Expr(_) => real.next().unwrap_or(column),
                Value::Pending => column,
            })
            .collect();
        let read = read.into_iter().map(|index| flushed.columns[index].clone()).collect();
        Ok(Stream { columns, pending: Some(reading(pending, read)), ..flushed })
    }
}

/// The columns that a pending step reads.
fn read_by(pending: &Pending) -> Vec<&Column> {
    match pending {
        Pending::Window(window) => vec![&window.column],
        Pending::RowNumber(ranking) => ranking.partition.iter().chain([&ranking.order]).collect(),
    }
}

/// The step with other columns in place of those of [`read_by`].
fn reading(pending: Pending, mut columns: Vec<Column>) -> Pending {
    let last = columns.pop();
    match (pending, last) {
        (Pending::Window(window), Some(column)) => Pending::Window(PendingWindow { column, ..window }),
        (Pending::RowNumber(ranking), Some(order)) => {
            Pending::RowNumber(RowNumber { partition: columns, order, ..ranking })
        }
        (pending, None) => pending,
    }
}
