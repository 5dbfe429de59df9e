//! What the sink writes the source reads back, for every type and format.

use std::sync::Arc;

use arrow::{
    array::{
        Array, ArrayRef, BinaryArray, BooleanArray, Date32Array, Decimal128Array, Float32Array, Float64Array,
        Int8Array, Int16Array, Int32Array, Int64Array, ListArray, RecordBatch, StringArray, StructArray,
        Time32SecondArray, Time64MicrosecondArray, TimestampMicrosecondArray, TimestampMillisecondArray,
        TimestampNanosecondArray,
    },
    datatypes::{DataType, Field, Int64Type},
};
use proptest::prelude::*;

use crate::harness::{Sinks, barrier, batch, read_all, rows, table};

#[derive(Debug, Clone)]
struct Row {
    boolean: Option<bool>,
    long: Option<i64>,
    double: Option<f64>,
    text: Option<String>,
    bytes: Option<Vec<u8>>,
    /// Milliseconds of a year from 1 to 9999.
    millis: Option<i64>,
    list: Option<Vec<i64>>,
}

fn row() -> impl Strategy<Value = Row> {
    let text = prop_oneof!["[a-z,;\"' #\\\\\r\n\t]{0,6}", "\\PC{0,6}", "[\u{0}-\u{1f}]{0,3}"];
    let option = prop::option::of::<BoxedStrategy<i64>>;
    (
        any::<Option<bool>>(),
        any::<Option<i64>>(),
        prop::option::of(prop::num::f64::NORMAL | prop::num::f64::ZERO | prop::num::f64::SUBNORMAL),
        prop::option::of(text),
        any::<Option<Vec<u8>>>(),
        option((-62_000_000_000_000_i64..253_000_000_000_000).boxed()),
        prop::option::of(prop::collection::vec(any::<i64>(), 0..4)),
    )
        .prop_map(|(boolean, long, double, text, bytes, millis, list)| Row {
            boolean,
            long,
            double,
            text,
            bytes,
            millis,
            list,
        })
}

fn array<'a, T, A: FromIterator<Option<T>> + Array + 'static>(
    rows: &'a [Row],
    value: impl Fn(&'a Row) -> Option<T> + 'a,
) -> ArrayRef {
    Arc::new(rows.iter().map(value).collect::<A>())
}

fn scalars(rows: &[Row]) -> Vec<(&'static str, ArrayRef)> {
    let decimal = Decimal128Array::from_iter(rows.iter().map(|r| r.long.map(i128::from)));
    let instants: TimestampMicrosecondArray = rows.iter().map(|r| r.millis.map(|m| m * 1_000 + 7)).collect();
    let day = |millis: i64| millis.div_euclid(86_400_000) as i32;
    let second = |millis: i64| (millis.rem_euclid(86_400_000) / 1_000) as i32;
    // Nanoseconds reach from 1677 to 2262 only.
    let nanos = |millis: i64| (millis % 9_000_000_000_000) * 1_000_000 + 1;
    vec![
        ("boolean", array::<_, BooleanArray>(rows, |r| r.boolean)),
        ("tiny", array::<_, Int8Array>(rows, |r| r.long.map(|v| v as i8))),
        ("small", array::<_, Int16Array>(rows, |r| r.long.map(|v| v as i16))),
        ("int", array::<_, Int32Array>(rows, |r| r.long.map(|v| v as i32))),
        ("long", array::<_, Int64Array>(rows, |r| r.long)),
        ("float", array::<_, Float32Array>(rows, |r| r.double.map(|v| (v % 1e30) as f32))),
        ("double", array::<_, Float64Array>(rows, |r| r.double)),
        ("decimal", Arc::new(decimal.with_precision_and_scale(38, 9).unwrap())),
        ("text", array::<_, StringArray>(rows, |r| r.text.clone())),
        ("bytes", array::<_, BinaryArray>(rows, |r| r.bytes.as_deref())),
        ("date", array::<_, Date32Array>(rows, |r| r.millis.map(day))),
        ("time", array::<_, Time32SecondArray>(rows, |r| r.millis.map(second))),
        ("time6", array::<_, Time64MicrosecondArray>(rows, |r| r.millis.map(|m| m.rem_euclid(86_400_000) * 1_000 + 1))),
        ("ts3", array::<_, TimestampMillisecondArray>(rows, |r| r.millis)),
        ("ts6", Arc::new(instants.with_timezone("UTC"))),
        ("ts9", array::<_, TimestampNanosecondArray>(rows, |r| r.millis.map(nanos))),
    ]
}

fn nested(rows: &[Row]) -> Vec<(&'static str, ArrayRef)> {
    let lists = rows.iter().map(|r| r.list.clone().map(|list| list.into_iter().map(Some)));
    let inner: Vec<(&str, ArrayRef)> = vec![
        ("a", array::<_, Int64Array>(rows, |r| r.long)),
        ("t", array::<_, TimestampMillisecondArray>(rows, |r| r.millis)),
    ];
    let fields = inner.iter().map(|(name, array)| Field::new(*name, array.data_type().clone(), true));
    let row = StructArray::new(fields.collect(), inner.iter().map(|(_, array)| Arc::clone(array)).collect(), None);
    vec![("list", Arc::new(ListArray::from_iter_primitive::<Int64Type, _, _>(lists))), ("row", Arc::new(row))]
}

fn round_trip(batch: &RecordBatch, options: &[(&str, &str)]) {
    let folder = tempfile::tempdir().unwrap();
    let table = table(folder.path(), batch.schema(), &[&[("path", "t")], options].concat());
    let mut sinks = Sinks::open(&table, 1, &[]).unwrap();
    sinks.write(0, batch).unwrap();
    sinks.cut(&barrier(1)).unwrap();
    sinks.complete_all(1);
    assert_eq!(read_all(&table).unwrap(), rows(batch), "{options:?}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn every_value_reads_back_as_it_was_written(values in prop::collection::vec(row(), 1..12)) {
        let flat = batch(scalars(&values));
        let deep = batch([scalars(&values), nested(&values)].concat());
        round_trip(&flat, &[("format", "csv"), ("csv.null-literal", "NULL!")]);
        round_trip(&flat, &[("format", "csv"), ("csv.null-literal", "NULL!"), ("csv.field-delimiter", "\\t"),
            ("csv.escape-character", "\\"), ("csv.allow-comments", "true"), ("csv.header", "true")]);
        round_trip(&deep, &[("format", "json")]);
        round_trip(&deep, &[("format", "json"), ("json.timestamp-format.standard", "ISO-8601"), ("json.encode.ignore-null-fields", "true")]);
        round_trip(&deep, &[("format", "parquet")]);
    }

    #[test]
    fn rows_of_one_column_read_back_too(values in prop::collection::vec("[a,\"#\n]{0,3}", 1..8)) {
        let one = batch(vec![("text", Arc::new(StringArray::from(values.clone())))]);
        round_trip(&one, &[("format", "csv"), ("csv.allow-comments", "true")]);
        let lines: Vec<String> = values.iter().map(|v| v.replace('\n', " ")).collect();
        round_trip(&batch(vec![("text", Arc::new(StringArray::from(lines)))]), &[("format", "raw")]);
    }
}

#[test]
fn the_csv_of_timestamps_is_what_users_expect() {
    let folder = tempfile::tempdir().unwrap();
    let columns = crate::harness::schema(&[("t", DataType::Timestamp(arrow::datatypes::TimeUnit::Millisecond, None))]);
    let table = table(folder.path(), columns, &[("path", "t"), ("format", "csv")]);
    let mut sinks = Sinks::open(&table, 1, &[]).unwrap();
    let times = TimestampMillisecondArray::from(vec![Some(1_431_857_100_000), Some(1_431_857_100_250), None]);
    sinks.write(0, &batch(vec![("t", Arc::new(times))])).unwrap();
    sinks.cut(&barrier(1)).unwrap();
    sinks.complete_all(1);
    assert_eq!(crate::harness::lines(&folder.path().join("t")), ["", "2015-05-17 10:05:00", "2015-05-17 10:05:00.25"]);
}
