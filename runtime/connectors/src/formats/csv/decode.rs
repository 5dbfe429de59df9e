//! CSV bytes to columns: find all fields of a batch, then read them column by column.

use arrow::datatypes::{DataType, SchemaRef};
use streamkeeper_types::Result;

use super::{Csv, records::Records};
use crate::formats::{BadRecord, keep_good};
use crate::formats::{
    Decoded, Decoder, Input,
    parse::{BadRows, check_not_null, parse_column},
};

pub(super) struct CsvDecoder {
    csv: Csv,
    schema: SchemaRef,
    /// Reused from batch to batch.
    records: Records,
}

impl CsvDecoder {
    pub(super) fn new(csv: Csv, schema: &SchemaRef) -> Self {
        Self { csv, schema: SchemaRef::clone(schema), records: Records::default() }
    }
}

impl Decoder for CsvDecoder {
    fn decode(&mut self, input: Input<'_>) -> Result<Decoded> {
        let count = self.schema.fields().len();
        let consumed = self.records.read(&self.csv, count, input);
        let mut bad = std::mem::take(&mut self.records.bad);
        if self.records.ranges.is_empty() {
            return Ok(Decoded { columns: Vec::new(), consumed, bad });
        }
        let mut bad_rows = BadRows::default();
        let mut columns = Vec::with_capacity(count);
        for (index, field) in self.schema.fields().iter().enumerate() {
            let texts = self.records.column(input.bytes, index, count);
            let mut bad_here = BadRows::default();
            let separator = self.csv.element_delimiter;
            let array = match self.csv.null_literal.as_deref() {
                None => parse_column(field.data_type(), separator, texts.map(Some), &mut bad_here)?,
                Some(null) => {
                    let texts = texts.map(|text| (text != null).then_some(text));
                    parse_column(field.data_type(), separator, texts, &mut bad_here)?
                }
            };
            for (row, cause) in bad_here.into_sorted() {
                bad_rows.add(row, || match field.data_type() {
                    DataType::Utf8 => format!("column `{}`: {cause}", field.name()),
                    _ if cause.starts_with("`` ") => {
                        format!(
                            "column `{}`: {cause} (an empty field is NULL with 'csv.null-literal' = '')",
                            field.name()
                        )
                    }
                    _ => format!("column `{}`: {cause}", field.name()),
                });
            }
            if !field.is_nullable() {
                check_not_null(field.name(), &array, &mut bad_rows);
            }
            columns.push(array);
        }
        let bad_rows = bad_rows.into_sorted();
        let columns = keep_good(columns, &bad_rows)?;
        bad.extend(bad_rows.into_iter().map(|(row, cause)| {
            let (start, end) = self.records.ranges[row];
            BadRecord { range: start as usize..end as usize, cause }
        }));
        bad.sort_unstable_by_key(|record| record.range.start);
        Ok(Decoded { columns, consumed, bad })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::sync::Arc;

    use arrow::{
        array::{Array, ArrayRef, AsArray, RecordBatch},
        datatypes::{Field, Int64Type, Schema},
        util::display::array_value_to_string,
    };
    use proptest::prelude::*;

    use super::*;
    use crate::formats::{End, csv::LineBreaks};

    fn csv() -> Csv {
        Csv {
            delimiter: b',',
            quote: Some(b'"'),
            escape: None,
            line_breaks: LineBreaks::Allow,
            null_literal: None,
            comments: false,
            header: false,
            element_delimiter: b';',
        }
    }

    fn schema(types: &[DataType]) -> SchemaRef {
        let field = |(index, data_type): (usize, &DataType)| Field::new(format!("c{index}"), data_type.clone(), true);
        Arc::new(Schema::new(types.iter().enumerate().map(field).collect::<Vec<_>>()))
    }

    fn whole(bytes: &[u8]) -> Input<'_> {
        Input { bytes, stop: bytes.len(), end: End::OfFile, max_rows: 1_000 }
    }

    /// Rows as text, `∅` for NULL, and causes of bad records.
    fn read(csv: Csv, types: &[DataType], text: &str) -> (Vec<Vec<String>>, Vec<String>) {
        let decoded = csv.decoder(&schema(types)).unwrap().decode(whole(text.as_bytes())).unwrap();
        assert_eq!(decoded.consumed, text.len());
        let value = |array: &ArrayRef, row| {
            if array.is_null(row) { "∅".to_owned() } else { array_value_to_string(array, row).unwrap() }
        };
        let rows = decoded.columns.first().map_or(0, Array::len);
        let rows = (0..rows).map(|row| decoded.columns.iter().map(|c| value(c, row)).collect()).collect();
        (rows, decoded.bad.into_iter().map(|bad| bad.cause).collect())
    }

    const TEXT: DataType = DataType::Utf8;
    const LONG: DataType = DataType::Int64;

    #[test]
    fn quotes_line_breaks_and_returns() {
        let (rows, bad) = read(csv(), &[TEXT, TEXT], "a,b\r\n\"x,\"\"y\"\"\",\"1\n2\"\n\nc\"d,\n,\"\"");
        assert_eq!(rows, [["a", "b"], ["x,\"y\"", "1\n2"], ["c\"d", ""], ["", ""]]);
        assert_eq!(bad, [""; 0]);
    }

    #[test]
    fn an_empty_text_is_empty_and_an_empty_number_is_bad_without_a_null_literal() {
        let (rows, bad) = read(csv(), &[TEXT, LONG], ",1\n,\n");
        assert_eq!(rows, [["", "1"]]);
        assert_eq!(bad, ["column `c1`: `` is no BIGINT (an empty field is NULL with 'csv.null-literal' = '')"]);
    }

    #[test]
    fn with_the_empty_null_literal_all_empty_fields_are_null_quoted_ones_too() {
        let csv = Csv { null_literal: Some(Vec::new()), ..csv() };
        let (rows, bad) = read(csv, &[TEXT, LONG, TEXT], ",,\"\"\nx,1,y\n");
        assert_eq!(rows, [["∅", "∅", "∅"], ["x", "1", "y"]]);
        assert_eq!(bad, [""; 0]);
    }

    #[test]
    fn bad_records_do_not_disturb_their_neighbours() {
        let (rows, bad) = read(csv(), &[LONG, TEXT], "1,a\n2\nx,c\n4,d,e\n5,\"e\"f\n6,f\n7,\"open\n8,h\n");
        assert_eq!(rows, [["1", "a"], ["6", "f"]]);
        assert_eq!(
            bad,
            [
                "it has 1 fields, the table has 2 columns",
                "column `c0`: `x` is no BIGINT",
                "it has 3 fields, the table has 2 columns",
                "text follows a closing quote",
                "a quoted field has no end",
            ]
        );
    }

    #[test]
    fn without_line_breaks_in_quotes_an_open_quote_ends_with_its_line() {
        let csv = Csv { line_breaks: LineBreaks::Refuse, ..csv() };
        let (rows, bad) = read(csv, &[LONG, TEXT], "7,\"open\n8,h\n");
        assert_eq!(rows, [["8", "h"]]);
        assert_eq!(bad, ["a quoted field has a line break"]);
    }

    #[test]
    fn comments_escapes_and_other_delimiters() {
        let csv = Csv { delimiter: b';', quote: Some(b'\''), escape: Some(b'\\'), comments: true, ..csv() };
        let (rows, bad) = read(csv, &[TEXT, TEXT], "# no, record\na\\;b;c\n'd\\'e';'f'';'\n");
        assert_eq!(rows, [["a;b", "c"], ["d'e", "f';"]]);
        assert_eq!(bad, [""; 0]);
    }

    #[test]
    fn arrays_and_rows_stand_between_their_delimiter() {
        let list = DataType::List(Arc::new(Field::new_list_field(LONG, true)));
        let row = DataType::Struct(vec![Field::new("a", LONG, true), Field::new("b", TEXT, true)].into());
        let (rows, bad) = read(csv(), &[list, row], "1;2,3;x\n,4;y\n5;q,6;z\n7,8\n");
        assert_eq!(rows, [["[1, 2]", "{a: 3, b: x}"], ["[]", "{a: 4, b: y}"]]);
        assert_eq!(bad.len(), 2);
    }

    #[test]
    fn a_not_null_column_without_a_value_makes_its_record_bad() {
        let csv = Csv { null_literal: Some(b"-".to_vec()), ..csv() };
        let schema = Arc::new(Schema::new(vec![Field::new("a", LONG, false)]));
        let decoded = csv.decoder(&schema).unwrap().decode(whole(b"1\n-\n3\n")).unwrap();
        assert_eq!(decoded.bad[0].cause, "column `a` is NOT NULL and has no value");
        assert_eq!(decoded.columns[0].as_primitive::<Int64Type>().values()[..], [1, 3]);
    }

    fn field() -> impl Strategy<Value = String> {
        prop_oneof!["[a-z]{0,4}", "[a,\"\n\r]{0,4}", "\\PC{0,3}"]
    }

    fn quoted(field: &str) -> String {
        format!("\"{}\"", field.replace('"', "\"\""))
    }

    proptest! {
        /// Fields are quoted at random; the rows read are those that were written, whatever the cuts of the input.
        #[test]
        fn records_are_read_as_they_were_written_wherever_the_input_is_cut(
            rows in prop::collection::vec((field(), field(), any::<bool>()), 1..20), cut in any::<prop::sample::Index>(),
        ) {
            let plain = |text: &str| !text.contains([',', '"', '\n', '\r']);
            let mut text = String::new();
            for (a, b, quotes) in &rows {
                let shown = |f: &String| if *quotes || !plain(f) { quoted(f) } else { f.clone() };
                text += &format!("{},{}\n", shown(a), shown(b));
            }
            let bytes = text.as_bytes();
            let mut decoder = csv().decoder(&schema(&[TEXT, TEXT])).unwrap();
            let cut = cut.index(bytes.len());
            let mut found: Vec<(String, String)> = Vec::new();
            let mut take = |decoded: Decoded| {
                assert_eq!(decoded.bad, []);
                if let [a, b] = &decoded.columns[..] {
                    found.extend((0..a.len()).map(|r| (a.as_string::<i32>().value(r).to_owned(), b.as_string::<i32>().value(r).to_owned())));
                }
                decoded.consumed
            };
            let first = Input { bytes: &bytes[..cut], stop: cut, end: End::MoreFollows, max_rows: 1_000 };
            let consumed = take(decoder.decode(first).unwrap());
            let rest = take(decoder.decode(whole(&bytes[consumed..])).unwrap());
            prop_assert_eq!(consumed + rest, bytes.len());
            prop_assert_eq!(found, rows.into_iter().map(|(a, b, _)| (a, b)).collect::<Vec<_>>());
        }

        #[test]
        fn no_bytes_panic_and_every_byte_is_consumed(bytes: Vec<u8>, special in prop::collection::vec(prop::sample::select(b",\"\n\r\\#;a1".to_vec()), 0..60), escape: bool, refuse: bool) {
            let csv = Csv {
                escape: escape.then_some(b'\\'),
                comments: true,
                line_breaks: if refuse { LineBreaks::Refuse } else { LineBreaks::Allow },
                ..csv()
            };
            for bytes in [bytes, special] {
                let mut decoder = csv.decoder(&schema(&[TEXT, LONG])).unwrap();
                let decoded = decoder.decode(whole(&bytes)).unwrap();
                prop_assert_eq!(decoded.consumed, bytes.len());
            }
        }
    }

    #[test]
    fn columns_form_a_batch() {
        let schema = schema(&[LONG, TEXT]);
        let decoded = csv().decoder(&schema).unwrap().decode(whole(b"1,a\n2,b\n")).unwrap();
        assert_eq!(RecordBatch::try_new(schema, decoded.columns).unwrap().num_rows(), 2);
    }
}
