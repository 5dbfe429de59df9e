//! JSON lines to columns, by Arrow's tape decoder over many lines at once. Only when something is wrong the lines are
//! tried one by one, to find the bad ones.

use std::sync::Arc;

use arrow::{
    array::ArrayRef,
    datatypes::{DataType, Field, Schema, SchemaRef},
    error::ArrowError,
    json::{ReaderBuilder, reader::Decoder as Tape},
};
use streamkeeper_types::{Code, Error, Result};

use crate::formats::{
    BadRecord, Decoded, Decoder, Input, keep_good,
    lines::Lines,
    parse::{BadRows, check_not_null, sql_name},
};

use super::text_values::{parsed, read_type};

pub(super) struct JsonDecoder {
    schema: SchemaRef,
    /// What the tape decoder yields: BYTES and DECIMAL still as text, every column nullable.
    read: SchemaRef,
    tape: Option<(usize, Tape)>,
    lines: Vec<std::ops::Range<usize>>,
}

impl JsonDecoder {
    pub(super) fn new(schema: &SchemaRef) -> Result<Self> {
        let mut fields = Vec::with_capacity(schema.fields().len());
        for field in schema.fields() {
            if *field.data_type() != DataType::Binary && holds_bytes(field.data_type()) {
                return Err(unsupported(field));
            }
            fields.push(Field::new(field.name(), read_type(field.data_type()), true));
        }
        let read: SchemaRef = Arc::new(Schema::new(fields));
        for field in read.fields() {
            let one = Arc::new(Schema::new(vec![Arc::clone(field)]));
            tape(&one, 1).map_err(|_| unsupported(field))?;
        }
        Ok(Self { schema: Arc::clone(schema), read, tape: None, lines: Vec::new() })
    }

    /// All lines at once; `None` if not every line is exactly one good record.
    fn at_once(&mut self, bytes: &[u8], lines: usize, max_rows: usize) -> Option<Vec<ArrayRef>> {
        let (_, mut tape) = match self.tape.take().filter(|(rows, _)| *rows == max_rows) {
            Some(ready) => ready,
            None => (max_rows, tape(&self.read, max_rows).ok()?),
        };
        let consumed = tape.decode(bytes).ok()?;
        let batch = tape.flush().ok()??;
        if batch.num_rows() != lines || !bytes[consumed..].trim_ascii().is_empty() {
            return None;
        }
        self.tape = Some((max_rows, tape));
        Some(batch.columns().to_vec())
    }

    /// Each line by itself: the lines that are good, joined, and how many there are.
    fn one_by_one(&self, bytes: &[u8], bad: &mut Vec<BadRecord>) -> Result<(Vec<u8>, Vec<std::ops::Range<usize>>)> {
        let mut good = Vec::new();
        let mut ranges = Vec::new();
        let mut tape = None;
        for range in &self.lines {
            let line = &bytes[range.clone()];
            let mut trial = match tape.take() {
                Some(ready) => ready,
                None => self::tape(&self.read, 2).map_err(|e| Error::internal(e.to_string()))?,
            };
            match trial.decode(line).and_then(|consumed| Ok((consumed, trial.flush()?))) {
                Ok((consumed, Some(batch))) if batch.num_rows() == 1 && line[consumed..].trim_ascii().is_empty() => {
                    good.extend_from_slice(line);
                    good.push(b'\n');
                    ranges.push(range.clone());
                    tape = Some(trial);
                }
                Ok(_) => bad.push(BadRecord { range: range.clone(), cause: "it is not one JSON object".to_owned() }),
                Err(error) => bad.push(BadRecord { range: range.clone(), cause: cause_of(&error) }),
            }
        }
        Ok((good, ranges))
    }
}

impl Decoder for JsonDecoder {
    fn decode(&mut self, input: Input<'_>) -> Result<Decoded> {
        let mut lines = Lines::new(input);
        let mut bad = Vec::new();
        self.lines.clear();
        while self.lines.len() < input.max_rows {
            let Some(range) = lines.next() else { break };
            let line = &input.bytes[range.clone()];
            if is_too_deep(line) {
                bad.push(BadRecord { range, cause: format!("it is nested deeper than {DEEPEST} levels") });
            } else if !line.trim_ascii().is_empty() {
                self.lines.push(range);
            }
        }
        let consumed = lines.position();
        if self.lines.is_empty() {
            return Ok(Decoded { columns: Vec::new(), consumed, bad });
        }
        let whole = &input.bytes[..consumed];
        let at_once = if bad.is_empty() { self.at_once(whole, self.lines.len(), input.max_rows) } else { None };
        let (columns, ranges) = match at_once {
            Some(columns) => (columns, std::mem::take(&mut self.lines)),
            None => {
                let (good, ranges) = self.one_by_one(input.bytes, &mut bad)?;
                if ranges.is_empty() {
                    bad.sort_unstable_by_key(|record| record.range.start);
                    return Ok(Decoded { columns: Vec::new(), consumed, bad });
                }
                let columns = self.at_once(&good, ranges.len(), input.max_rows);
                (columns.ok_or_else(|| Error::internal("JSON lines that were good one by one"))?, ranges)
            }
        };
        let mut bad_rows = BadRows::default();
        let mut finished = Vec::with_capacity(columns.len());
        for (field, column) in self.schema.fields().iter().zip(columns) {
            let column = parsed(field.data_type(), column, &mut bad_rows, &|row| row)?;
            if !field.is_nullable() {
                check_not_null(field.name(), &column, &mut bad_rows);
            }
            finished.push(column);
        }
        let bad_rows = bad_rows.into_sorted();
        let columns = keep_good(finished, &bad_rows)?;
        bad.extend(bad_rows.into_iter().map(|(row, cause)| BadRecord { range: ranges[row].clone(), cause }));
        bad.sort_unstable_by_key(|record| record.range.start);
        self.lines = ranges;
        Ok(Decoded { columns, consumed, bad })
    }
}

/// Deepest nesting of a record. The tape decoder recurses when it words an error, so the stack sets a limit.
const DEEPEST: usize = 512;

/// Whether brackets outside texts nest too deeply. Short lines cannot, and cost nothing.
fn is_too_deep(line: &[u8]) -> bool {
    if line.len() <= DEEPEST || memchr::memchr2_iter(b'[', b'{', line).nth(DEEPEST).is_none() {
        return false;
    }
    let (mut depth, mut in_text, mut escaped) = (0_usize, false, false);
    line.iter().any(|byte| {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_text => escaped = true,
            b'"' => in_text = !in_text,
            b'[' | b'{' if !in_text => depth += 1,
            b']' | b'}' if !in_text => depth = depth.saturating_sub(1),
            _ => {}
        }
        depth > DEEPEST
    })
}

fn tape(schema: &SchemaRef, rows: usize) -> Result<Tape, ArrowError> {
    ReaderBuilder::new(Arc::clone(schema)).with_batch_size(rows).with_coerce_primitive(true).build_decoder()
}

fn holds_bytes(data_type: &DataType) -> bool {
    match data_type {
        DataType::Binary => true,
        DataType::List(field) | DataType::Map(field, _) => holds_bytes(field.data_type()),
        DataType::Struct(fields) => fields.iter().any(|field| holds_bytes(field.data_type())),
        _ => false,
    }
}

fn cause_of(error: &ArrowError) -> String {
    match error {
        ArrowError::JsonError(text) | ArrowError::ParseError(text) | ArrowError::InvalidArgumentError(text) => {
            text.clone()
        }
        other => other.to_string(),
    }
}

fn unsupported(field: &Field) -> Error {
    let name = sql_name(field.data_type());
    Error::new(Code::SqlUnsupported, format!("format 'json' cannot read column `{}` of type {name}", field.name()))
        .way_out("maps want STRING keys, and BYTES may not lie inside another type")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use arrow::{array::Array as _, util::display::array_value_to_string};
    use proptest::prelude::*;

    use super::*;
    use crate::formats::End;

    fn schema(fields: Vec<Field>) -> SchemaRef {
        Arc::new(Schema::new(fields))
    }

    fn simple() -> SchemaRef {
        schema(vec![Field::new("id", DataType::Int64, true), Field::new("name", DataType::Utf8, true)])
    }

    fn read(schema: &SchemaRef, text: &[u8]) -> (Vec<Vec<String>>, Vec<BadRecord>) {
        let input = Input { bytes: text, stop: text.len(), end: End::OfFile, max_rows: 1_000 };
        let decoded = JsonDecoder::new(schema).unwrap().decode(input).unwrap();
        assert_eq!(decoded.consumed, text.len());
        let rows = decoded.columns.first().map_or(0, arrow::array::Array::len);
        let value =
            |c: &ArrayRef, row| if c.is_null(row) { "∅".to_owned() } else { array_value_to_string(c, row).unwrap() };
        ((0..rows).map(|row| decoded.columns.iter().map(|c| value(c, row)).collect()).collect(), decoded.bad)
    }

    #[test]
    fn missing_members_are_null_and_unknown_ones_ignored() {
        let (rows, bad) =
            read(&simple(), b"{\"id\": 1, \"x\": [1, {}]}\n\n{\"name\":\"a\\nb\"}\r\n{\"id\":null,\"name\":7}");
        assert_eq!(rows, [["1", "∅"], ["∅", "a\nb"], ["∅", "7"]]);
        assert_eq!(bad, []);
    }

    #[test]
    fn bad_lines_are_found_and_their_neighbours_kept() {
        let text = b"{\"id\":1}\n{\"id\":\"x\"}\n{\"id\":\nnot json\n{\"id\":2} {\"id\":3}\n[1]\n{\"id\":4}\n";
        let (rows, bad) = read(&simple(), text);
        assert_eq!(rows, [["1", "∅"], ["4", "∅"]]);
        assert_eq!(bad.len(), 5);
        assert_eq!(bad[0].range, 9..19);
        assert_eq!(bad[3].cause, "it is not one JSON object");
    }

    #[test]
    fn a_record_over_two_lines_is_two_bad_lines() {
        let (rows, bad) = read(&simple(), b"{\"id\":\n1}\n{\"id\":2}\n");
        assert_eq!(rows, [["2", "∅"]]);
        assert_eq!(bad.len(), 2);
    }

    #[test]
    fn bytes_are_base64_and_not_null_is_checked() {
        let schema = schema(vec![Field::new("b", DataType::Binary, false)]);
        let (rows, bad) = read(&schema, b"{\"b\":\"Zm9v\"}\n{\"b\":\"!\"}\n{}\n");
        assert_eq!(rows, [["666f6f"]]);
        assert_eq!(bad.len(), 2);
    }

    #[test]
    fn decimals_are_rounded_half_up_as_in_every_format_and_named_when_too_large() {
        let schema = schema(vec![Field::new("a", DataType::Decimal128(5, 2), true)]);
        let (rows, bad) =
            read(&schema, b"{\"a\":12.345}\n{\"a\":\"12.355\"}\n{\"a\":-0.005}\n{\"a\":1e2}\n{\"a\":1234.5}\n{}\n");
        assert_eq!(rows, [["12.35"], ["12.36"], ["-0.01"], ["100.00"], ["∅"]]);
        assert_eq!(bad.len(), 1);
        assert!(bad[0].cause.contains("DECIMAL(5, 2)"), "{}", bad[0].cause);
    }

    #[test]
    fn decimals_within_rows_arrays_and_maps_are_rounded_and_named_as_well() {
        let decimal = || DataType::Decimal128(5, 2);
        let item = Field::new("item", DataType::Struct(vec![Field::new("p", decimal(), false)].into()), true);
        let entries = vec![Field::new("keys", DataType::Utf8, false), Field::new("values", decimal(), true)];
        let entries = Arc::new(Field::new("entries", DataType::Struct(entries.into()), false));
        let schema = schema(vec![
            Field::new("list", DataType::List(Arc::new(item)), true),
            Field::new("map", DataType::Map(entries, false), true),
        ]);
        let lines: &[&[u8]] = &[
            br#"{"list":[{"p":12.345},{"p":"0.001"}],"map":{"a":-0.005}}"#,
            br#"{"list":[],"map":{"a":null}}"#,
            br#"{"list":[{"p":1},{"p":2},{"p":12345.6}],"map":{"a":1}}"#,
            br#"{"list":[null,{"p":1e2}]}"#,
            br#"{"list":[{"p":1}],"map":{"a":1,"b":1e9}}"#,
            br#"{}"#,
        ];
        let (rows, bad) = read(&schema, &[lines.join(&b"\n"[..]), b"\n".to_vec()].concat());
        assert_eq!(
            rows,
            [["[{p: 12.35}, {p: 0.00}]", "{a: -0.01}"], ["[]", "{a: }"], ["[, {p: 100.00}]", "∅"], ["∅", "∅"],]
        );
        assert_eq!(bad.len(), 2);
        assert!(bad.iter().all(|bad| bad.cause.contains("DECIMAL(5, 2)")), "{bad:?}");
    }

    #[test]
    fn types_that_json_lines_cannot_hold_are_refused() {
        let list = DataType::List(Arc::new(Field::new_list_field(DataType::Binary, true)));
        let error = JsonDecoder::new(&schema(vec![Field::new("a", list, true)])).err().unwrap();
        assert_eq!(error.code, Code::SqlUnsupported);
    }

    proptest! {
        #[test]
        fn no_bytes_panic_and_every_byte_is_consumed(
            bytes: Vec<u8>, special in prop::collection::vec(prop::sample::select(b"{}[]\":,id1\n \\u".to_vec()), 0..60),
        ) {
            read(&simple(), &bytes);
            read(&simple(), &special);
        }
    }
}
