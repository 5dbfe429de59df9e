//! `raw`: one column, STRING or BYTES, holds the line without its break.

use std::sync::Arc;

use arrow::{
    array::{Array, AsArray, BinaryBuilder, RecordBatch, StringBuilder},
    datatypes::{DataType, SchemaRef},
};
use streamkeeper_types::{Code, Error, Result};

use super::{BadRecord, Decoded, Decoder, Encoder, Input, lines::Lines};

pub(crate) struct Raw;

/// What the one column holds.
#[derive(Debug, Clone, Copy)]
enum Kind {
    Text,
    Bytes,
}

impl Raw {
    pub(crate) fn decoder(schema: &SchemaRef) -> Result<Box<dyn Decoder>> {
        Ok(Box::new(LineDecoder(kind(schema)?)))
    }

    pub(crate) fn encoder(schema: &SchemaRef) -> Result<Box<dyn Encoder>> {
        kind(schema)?;
        Ok(Box::new(LineEncoder))
    }
}

fn kind(schema: &SchemaRef) -> Result<Kind> {
    match schema.fields().iter().map(|field| field.data_type()).collect::<Vec<_>>()[..] {
        [DataType::Utf8] => Ok(Kind::Text),
        [DataType::Binary] => Ok(Kind::Bytes),
        _ => {
            Err(Error::new(Code::SqlInvalid, "format 'raw' wants exactly one physical column, of type STRING or BYTES")
                .way_out("declare `line STRING` and compute the other columns from it"))
        }
    }
}

struct LineDecoder(Kind);

impl Decoder for LineDecoder {
    fn decode(&mut self, input: Input<'_>) -> Result<Decoded> {
        let mut lines = Lines::new(input);
        let mut bad = Vec::new();
        let column: arrow::array::ArrayRef = match self.0 {
            Kind::Text => {
                let mut builder = StringBuilder::with_capacity(input.max_rows, input.bytes.len());
                for range in lines.by_ref().take(input.max_rows) {
                    match std::str::from_utf8(&input.bytes[range.clone()]) {
                        Ok(line) => builder.append_value(line),
                        Err(_) => bad.push(BadRecord { range, cause: "it is not UTF-8".to_owned() }),
                    }
                }
                Arc::new(builder.finish())
            }
            Kind::Bytes => {
                let mut builder = BinaryBuilder::with_capacity(input.max_rows, input.bytes.len());
                lines.by_ref().take(input.max_rows).for_each(|range| builder.append_value(&input.bytes[range]));
                Arc::new(builder.finish())
            }
        };
        let columns = if column.is_empty() { Vec::new() } else { vec![column] };
        Ok(Decoded { columns, consumed: lines.position(), bad })
    }
}

struct LineEncoder;

impl Encoder for LineEncoder {
    fn encode(&mut self, batch: &RecordBatch, out: &mut Vec<u8>) -> Result<()> {
        let column = batch.column(0);
        let write = |value: &[u8], out: &mut Vec<u8>| {
            out.extend_from_slice(value);
            out.push(b'\n');
        };
        match column.data_type() {
            DataType::Utf8 => column.as_string::<i32>().iter().flatten().for_each(|v| write(v.as_bytes(), out)),
            DataType::Utf8View => column.as_string_view().iter().flatten().for_each(|v| write(v.as_bytes(), out)),
            DataType::Binary => column.as_binary::<i32>().iter().flatten().for_each(|v| write(v, out)),
            other => return Err(Error::internal(format!("a raw sink got {other}"))),
        }
        Ok(())
    }
}
