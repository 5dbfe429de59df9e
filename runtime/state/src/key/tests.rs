#![allow(clippy::unwrap_used)]

use std::sync::Arc;

use arrow::{
    array::{
        ArrayRef, BooleanArray, Date32Array, Decimal128Array, Float32Array, Float64Array, Int8Array, Int16Array,
        Int32Array, Int64Array, ListArray, StringArray, StructArray, TimestampMicrosecondArray,
        TimestampMillisecondArray,
    },
    datatypes::{DataType, Field, Fields, Int32Type},
};
use proptest::prelude::*;
use streamkeeper_types::{Code, KeyGroup, hex};

use super::*;

fn schema(columns: &[ArrayRef]) -> KeySchema {
    let fields = columns.iter().enumerate();
    KeySchema::new(fields.map(|(i, c)| Arc::new(Field::new(format!("c{i}"), c.data_type().clone(), true))).collect())
        .unwrap()
}

fn encode(columns: &[ArrayRef]) -> KeyRows {
    let mut keys = KeyRows::new();
    KeyEncoder::new(schema(columns), 128).encode(columns, columns[0].len(), &mut keys).unwrap();
    keys
}

/// Bytes behind the key group, of the first row.
fn first(columns: &[ArrayRef]) -> String {
    hex::encode(&encode(columns).key(0)[2..])
}

#[test]
fn keys_have_the_documented_vectors() {
    let check = |columns: &[ArrayRef], bytes: &str, hash: u64, group: u16| {
        let keys = encode(columns);
        assert_eq!(hex::encode(keys.key(0)), format!("{group:04x}{bytes}"));
        assert_eq!(keys.hashes()[0], hash);
        assert_eq!(keys.groups()[0], KeyGroup(group));
    };
    let int = |v: Option<i64>| -> ArrayRef { Arc::new(Int64Array::from(vec![v])) };
    let text = |v: &str| -> ArrayRef { Arc::new(StringArray::from(vec![v])) };
    check(&[int(Some(42))], "01800000000000002a", 0x5bf7_6a38_8e4a_df0a, 10);
    check(&[int(Some(-1))], "017fffffffffffffff", 0xa3c3_59fd_3e03_bbfc, 124);
    check(&[int(None)], "00", 0xc44b_dff4_074e_ecdb, 91);
    check(&[text("hello")], "0168656c6c6f0001", 0xbb0b_c25a_f3f2_312f, 47);
    check(&[text("a"), int(Some(1))], "01610001018000000000000001", 0xbe2e_c508_871f_52d7, 87);
    check(&[Arc::new(Float64Array::from(vec![-0.0]))], "018000000000000000", 0x5ed9_3512_6821_1059, 89);
}

/// Golden bytes of version 1: a change here is a new version of every stored key.
#[test]
fn every_type_has_its_golden_bytes() {
    assert_eq!(first(&[Arc::new(BooleanArray::from(vec![true]))]), "0101");
    assert_eq!(first(&[Arc::new(Int8Array::from(vec![-1]))]), "017f");
    assert_eq!(first(&[Arc::new(Int16Array::from(vec![1]))]), "018001");
    assert_eq!(first(&[Arc::new(Int32Array::from(vec![i32::MIN]))]), "0100000000");
    assert_eq!(first(&[Arc::new(Date32Array::from(vec![1]))]), "0180000001");
    assert_eq!(first(&[Arc::new(TimestampMillisecondArray::from(vec![1]))]), "0180000000000003e8");
    assert_eq!(first(&[Arc::new(TimestampMicrosecondArray::from(vec![1000]))]), "0180000000000003e8");
    assert_eq!(first(&[Arc::new(Decimal128Array::from(vec![-1]))]), "017fffffffffffffffffffffffffffffff");
    assert_eq!(first(&[Arc::new(Float32Array::from(vec![1.0]))]), "01bf800000");
    assert_eq!(first(&[Arc::new(Float64Array::from(vec![f64::NAN]))]), "01fff8000000000000");
    assert_eq!(first(&[Arc::new(Float64Array::from(vec![-f64::NAN]))]), "01fff8000000000000");
    assert_eq!(first(&[Arc::new(StringArray::from(vec!["a\0"]))]), "016100ff0001");
    let list = ListArray::from_iter_primitive::<Int32Type, _, _>(vec![Some(vec![Some(1), None])]);
    assert_eq!(first(&[Arc::new(list)]), "010101800000010100 00".replace(' ', ""));
    let row = StructArray::new(
        Fields::from(vec![Field::new("a", DataType::Boolean, true), Field::new("b", DataType::Boolean, true)]),
        vec![Arc::new(BooleanArray::from(vec![Some(false)])), Arc::new(BooleanArray::from(vec![None]))],
        None,
    );
    assert_eq!(first(&[Arc::new(row)]), "01010000");
}

#[test]
fn a_map_is_refused_as_a_key() {
    let entries = DataType::Struct(Fields::from(vec![
        Field::new("keys", DataType::Utf8, false),
        Field::new("values", DataType::Int64, true),
    ]));
    let map = DataType::Map(Arc::new(Field::new("entries", entries, false)), false);
    let error = KeySchema::new(vec![Arc::new(Field::new("m", map, true))]).unwrap_err();
    assert_eq!(error.code, Code::SqlUnsupported);
    assert!(error.to_string().contains("column m"), "{error}");
}

#[test]
fn only_hashed_columns_choose_the_group() {
    let fields = || ["end", "k", "v"].map(|name| Arc::new(Field::new(name, DataType::Int64, true))).to_vec();
    let schema = KeySchema::with_layout(fields(), 1..2, 1).unwrap();
    let columns = |end: i64, key: i64, value: i64| -> Vec<ArrayRef> {
        [end, key, value].map(|v| Arc::new(Int64Array::from(vec![v])) as ArrayRef).to_vec()
    };
    let mut keys = KeyRows::new();
    let mut encoder = KeyEncoder::new(schema, 128);
    let group = encode(&columns(0, 42, 0)[1..2]).groups()[0];
    for (end, value) in [(0, 0), (5, 9), (-7, 1)] {
        encoder.encode(&columns(end, 42, value), 1, &mut keys).unwrap();
        assert_eq!(keys.groups()[0], group);
    }
    assert!(KeySchema::with_layout(fields(), 1..2, 2).is_err());
}

#[test]
fn a_key_without_columns_is_the_same_for_every_row() {
    let mut keys = KeyRows::new();
    KeyEncoder::new(KeySchema::new(Vec::new()).unwrap(), 128).encode(&[], 3, &mut keys).unwrap();
    assert_eq!(keys.len(), 3);
    assert_eq!((keys.key(0), keys.key(2)), (&[0, 66][..], &[0, 66][..]));
}

type Row = (Option<i64>, Option<f64>, Option<String>, Option<i32>);

fn columns() -> impl Strategy<Value = Vec<Row>> {
    let row =
        (any::<Option<i64>>(), any::<Option<f64>>(), prop::option::of("[a\\x00\\x01b]{0,4}"), any::<Option<i32>>());
    prop::collection::vec(row, 1..20)
}

proptest! {
    #[test]
    fn keys_decode_to_what_was_encoded_and_sort_as_their_columns(rows in columns()) {
        let arrays: Vec<ArrayRef> = vec![
            Arc::new(Int64Array::from_iter(rows.iter().map(|r| r.0))),
            Arc::new(StringArray::from_iter(rows.iter().map(|r| r.2.clone()))),
            Arc::new(Int32Array::from_iter(rows.iter().map(|r| r.3))),
            Arc::new(Float64Array::from_iter(rows.iter().map(|r| r.1))),
        ];
        let keys = encode(&arrays);
        let decoded = schema(&arrays).decode((0..rows.len()).map(|row| keys.key(row))).unwrap();
        prop_assert_eq!(&decoded[0], &arrays[0]);
        prop_assert_eq!(&decoded[1], &arrays[1]);
        prop_assert_eq!(&decoded[2], &arrays[2]);
        for a in 0..rows.len() {
            for b in 0..rows.len() {
                let values = |r: usize| (rows[r].0, rows[r].2.clone(), rows[r].3);
                let by_values = values(a).cmp(&values(b));
                if by_values.is_ne() {
                    prop_assert_eq!(keys.key(a)[2..].cmp(&keys.key(b)[2..]), by_values);
                }
            }
        }
    }

    #[test]
    fn hostile_key_bytes_are_an_error_and_no_panic(bytes in prop::collection::vec(any::<u8>(), 0..40)) {
        let list = ListArray::from_iter_primitive::<Int32Type, _, _>(vec![Some(vec![Some(1)])]);
        let arrays: Vec<ArrayRef> = vec![Arc::new(list), Arc::new(StringArray::from(vec!["a"]))];
        let decoded = schema(&arrays).decode(std::iter::once(&bytes[..]));
        prop_assert_eq!(decoded.is_ok(), schema(&arrays).is_key(&bytes) && decoded.is_ok());
    }
}
