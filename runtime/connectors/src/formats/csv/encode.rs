//! Columns to CSV bytes.

use arrow::{array::RecordBatch, datatypes::SchemaRef};
use streamkeeper_types::Result;

use super::Csv;
use crate::{
    formats::Encoder,
    text::{Column, range},
};

pub(super) struct CsvEncoder {
    csv: Csv,
    schema: SchemaRef,
    /// One value, before it is known whether it needs quotes.
    value: Vec<u8>,
}

impl CsvEncoder {
    pub(super) fn new(csv: Csv, schema: &SchemaRef) -> Self {
        Self { csv, schema: SchemaRef::clone(schema), value: Vec::new() }
    }
}

impl Encoder for CsvEncoder {
    fn header(&self, out: &mut Vec<u8>) {
        if !self.csv.header {
            return;
        }
        for (index, field) in self.schema.fields().iter().enumerate() {
            if index > 0 {
                out.push(self.csv.delimiter);
            }
            write_field(&self.csv, field.name().as_bytes(), out);
        }
        out.push(b'\n');
    }

    fn encode(&mut self, batch: &RecordBatch, out: &mut Vec<u8>) -> Result<()> {
        let columns = batch.columns().iter().map(Column::new).collect::<Result<Vec<_>>>()?;
        for row in 0..batch.num_rows() {
            for (index, column) in columns.iter().enumerate() {
                if index > 0 {
                    out.push(self.csv.delimiter);
                }
                if column.is_null(row) {
                    // The null literal as it is: quoting does not change that it means NULL.
                    out.extend_from_slice(self.csv.null_literal.as_deref().unwrap_or_default());
                } else if is_plain(column) {
                    column.write(row, out);
                } else {
                    self.value.clear();
                    write_value(column, row, self.csv.element_delimiter, &mut self.value);
                    write_field(&self.csv, &self.value, out);
                }
            }
            out.push(b'\n');
        }
        Ok(())
    }
}

/// Whether no value of the column can contain a special character. Users who choose a digit, `-`, `:` or `.` as one
/// get what they asked for.
fn is_plain(column: &Column<'_>) -> bool {
    matches!(column, Column::Boolean(_) | Column::Int8(_) | Column::Int16(_) | Column::Int32(_) | Column::Int64(_))
}

fn write_value(column: &Column<'_>, row: usize, separator: u8, out: &mut Vec<u8>) {
    match column {
        Column::List(list, items) => {
            let range = range(list.value_offsets(), row);
            for item in range.clone() {
                if item > range.start {
                    out.push(separator);
                }
                write_scalar(items, item, out);
            }
        }
        Column::Row(_, columns) => {
            for (index, (_, column)) in columns.iter().enumerate() {
                if index > 0 {
                    out.push(separator);
                }
                write_scalar(column, row, out);
            }
        }
        scalar => scalar.write(row, out),
    }
}

fn write_scalar(column: &Column<'_>, row: usize, out: &mut Vec<u8>) {
    if !column.is_null(row) {
        column.write(row, out);
    }
}

/// Writes a field, in quotes if it needs them.
fn write_field(csv: &Csv, value: &[u8], out: &mut Vec<u8>) {
    let is_special = |byte: &u8| {
        *byte == csv.delimiter || matches!(byte, b'\n' | b'\r') || Some(*byte) == csv.quote || Some(*byte) == csv.escape
    };
    let looks_like_comment = csv.comments && value.first() == Some(&b'#');
    if !looks_like_comment && !value.iter().any(is_special) {
        out.extend_from_slice(value);
        return;
    }
    let Some(quote) = csv.quote else {
        write_escaped(csv, value, is_special, out);
        return;
    };
    out.push(quote);
    for byte in value {
        if *byte == quote {
            out.push(quote);
        } else if Some(*byte) == csv.escape {
            out.push(*byte);
        }
        out.push(*byte);
    }
    out.push(quote);
}

/// Without quotes: an escape character before each special one. Without either, such a value cannot be told apart.
fn write_escaped(csv: &Csv, value: &[u8], is_special: impl Fn(&u8) -> bool, out: &mut Vec<u8>) {
    for (index, byte) in value.iter().enumerate() {
        if is_special(byte) || (index == 0 && csv.comments && *byte == b'#') {
            out.extend(csv.escape);
        }
        out.push(*byte);
    }
}
