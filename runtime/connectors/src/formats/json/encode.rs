//! Columns to JSON lines.

use arrow::{array::RecordBatch, datatypes::SchemaRef};
use streamkeeper_types::Result;

use super::{Json, Nulls, Timestamps};
use crate::{
    formats::Encoder,
    text::{Column, range, write_timestamp},
};

pub(super) struct JsonEncoder {
    json: Json,
    /// `"name":` of each column.
    names: Vec<Vec<u8>>,
}

impl JsonEncoder {
    pub(super) fn new(json: Json, schema: &SchemaRef) -> Self {
        let name = |name: &str| {
            let mut out = Vec::new();
            write_string(name, &mut out);
            out.push(b':');
            out
        };
        Self { json, names: schema.fields().iter().map(|field| name(field.name())).collect() }
    }
}

impl Encoder for JsonEncoder {
    fn encode(&mut self, batch: &RecordBatch, out: &mut Vec<u8>) -> Result<()> {
        let columns = batch.columns().iter().map(Column::new).collect::<Result<Vec<_>>>()?;
        for row in 0..batch.num_rows() {
            let mut object = Object::open(out);
            for (name, column) in self.names.iter().zip(&columns) {
                if self.json.nulls == Nulls::LeftOut && column.is_null(row) {
                    continue;
                }
                object.member(out).extend_from_slice(name);
                self.json.write(column, row, out);
            }
            out.extend_from_slice(b"}\n");
        }
        Ok(())
    }
}

/// Puts commas between members.
struct Object {
    is_empty: bool,
}

impl Object {
    fn open(out: &mut Vec<u8>) -> Self {
        out.push(b'{');
        Self { is_empty: true }
    }

    fn member<'a>(&mut self, out: &'a mut Vec<u8>) -> &'a mut Vec<u8> {
        if !std::mem::replace(&mut self.is_empty, false) {
            out.push(b',');
        }
        out
    }
}

impl Json {
    fn write(self, column: &Column<'_>, row: usize, out: &mut Vec<u8>) {
        if column.is_null(row) {
            out.extend_from_slice(b"null");
            return;
        }
        match column {
            Column::Null
            | Column::Boolean(_)
            | Column::Int8(_)
            | Column::Int16(_)
            | Column::Int32(_)
            | Column::Int64(_)
            | Column::Decimal(..) => column.write(row, out),
            Column::Float32(array) => self.write_float(column, row, array.value(row).is_finite(), out),
            Column::Float64(array) => self.write_float(column, row, array.value(row).is_finite(), out),
            Column::Text(array) => write_string(array.value(row), out),
            Column::TextView(array) => write_string(array.value(row), out),
            Column::Bytes(_) | Column::Date(_) | Column::Time(_) => {
                out.push(b'"');
                column.write(row, out);
                out.push(b'"');
            }
            Column::Timestamp(ticks, zone) => {
                let separator = if self.timestamps == Timestamps::Sql { b' ' } else { b'T' };
                out.push(b'"');
                write_timestamp(ticks, *zone, row, separator, out);
                out.push(b'"');
            }
            Column::Row(_, columns) => {
                let mut object = Object::open(out);
                for (name, column) in columns {
                    if self.nulls == Nulls::LeftOut && column.is_null(row) {
                        continue;
                    }
                    write_string(name, object.member(out));
                    out.push(b':');
                    self.write(column, row, out);
                }
                out.push(b'}');
            }
            Column::List(list, items) => {
                out.push(b'[');
                let range = range(list.value_offsets(), row);
                for item in range.clone() {
                    if item > range.start {
                        out.push(b',');
                    }
                    self.write(items, item, out);
                }
                out.push(b']');
            }
            Column::Map(map, keys, values) => {
                let mut object = Object::open(out);
                for item in range(map.value_offsets(), row) {
                    object.member(out);
                    write_key(keys, item, out);
                    out.push(b':');
                    self.write(values, item, out);
                }
                out.push(b'}');
            }
        }
    }

    /// JSON has no words for NaN and infinity: they become strings.
    fn write_float(self, column: &Column<'_>, row: usize, is_finite: bool, out: &mut Vec<u8>) {
        if is_finite {
            column.write(row, out);
        } else {
            out.push(b'"');
            column.write(row, out);
            out.push(b'"');
        }
    }
}

/// A map's key as a member name.
fn write_key(keys: &Column<'_>, row: usize, out: &mut Vec<u8>) {
    let mut text = Vec::new();
    keys.write(row, &mut text);
    write_string(&String::from_utf8_lossy(&text), out);
}

/// Writes a JSON string with what must be escaped.
pub(crate) fn write_string(text: &str, out: &mut Vec<u8>) {
    out.push(b'"');
    let mut rest = text.as_bytes();
    while let Some(at) = rest.iter().position(|b| *b < 0x20 || matches!(b, b'"' | b'\\')) {
        out.extend_from_slice(&rest[..at]);
        match rest[at] {
            b'"' => out.extend_from_slice(b"\\\""),
            b'\\' => out.extend_from_slice(b"\\\\"),
            b'\n' => out.extend_from_slice(b"\\n"),
            b'\r' => out.extend_from_slice(b"\\r"),
            b'\t' => out.extend_from_slice(b"\\t"),
            control => {
                let hex = |nibble: u8| b"0123456789abcdef"[usize::from(nibble)];
                out.extend_from_slice(&[b'\\', b'u', b'0', b'0', hex(control >> 4), hex(control & 15)]);
            }
        }
        rest = &rest[at + 1..];
    }
    out.extend_from_slice(rest);
    out.push(b'"');
}
