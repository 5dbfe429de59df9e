//! Batches of every kind that travels.

use std::sync::Arc;

use arrow::{
    array::{
        ArrayRef, AsArray, BinaryViewArray, BooleanArray, Decimal128Array, DictionaryArray, Float64Array, Int64Array,
        ListArray, ListBuilder, NullArray, RecordBatch, StringArray, StringViewArray, StringViewBuilder, StructArray,
        TimestampMicrosecondArray,
    },
    datatypes::{DataType, Field, Int32Type, Int64Type, Schema},
};
use streamkeeper_network::Element;

/// One column of numbers.
pub fn numbers(range: std::ops::Range<i64>) -> RecordBatch {
    let schema = Arc::new(Schema::new(vec![Field::new("v", DataType::Int64, false)]));
    RecordBatch::try_new(schema, vec![Arc::new(Int64Array::from_iter_values(range))]).unwrap()
}

/// The numbers of a batch made by [`numbers`].
pub fn values(element: &Element) -> Vec<i64> {
    match element {
        Element::Batch(batch) => batch.column(0).as_primitive::<Int64Type>().values().to_vec(),
        other => panic!("{other:?}"),
    }
}

/// A column of each kind, NULLs among them.
pub fn wide(rows: usize) -> RecordBatch {
    let number = |row: usize| i64::try_from(row).unwrap();
    let text = |row: usize| (!row.is_multiple_of(5)).then(|| format!("row {row} {}", "x".repeat(row % 40)));
    let texts: Vec<Option<String>> = (0..rows).map(text).collect();
    let ints: Int64Array = (0..rows).map(|row| (row % 3 != 0).then(|| number(row))).collect();
    let views: StringViewArray = texts.iter().map(Option::as_deref).collect();
    let bytes: BinaryViewArray = texts.iter().map(|t| t.as_ref().map(String::as_bytes)).collect();
    let strings: StringArray = texts.iter().map(Option::as_deref).collect();
    let dictionary: DictionaryArray<Int32Type> =
        (0..rows).map(|row| (row % 4 != 0).then_some(["red", "green", "blue"][row % 3])).collect();
    let floats: Float64Array = (0..rows).map(|row| Some(row as f64 / 3.0)).collect();
    let flags: BooleanArray = (0..rows).map(|row| (row % 7 != 0).then_some(row % 2 == 0)).collect();
    let decimals: Decimal128Array = (0..rows).map(|row| Some(i128::from(number(row)) << 70)).collect();
    let times: TimestampMicrosecondArray = (0..rows).map(|row| Some(number(row))).collect();
    let lists: ArrayRef = Arc::new(lists(&texts));
    let nested = StructArray::from(vec![
        (Arc::new(Field::new("a", DataType::Int64, true)), Arc::new(ints.clone()) as ArrayRef),
        (Arc::new(Field::new("b", DataType::Utf8View, true)), Arc::new(views.clone()) as ArrayRef),
    ]);
    RecordBatch::try_from_iter_with_nullable(vec![
        ("ints", Arc::new(ints) as ArrayRef, true),
        ("views", Arc::new(views), true),
        ("bytes", Arc::new(bytes), true),
        ("strings", Arc::new(strings), true),
        ("dictionary", Arc::new(dictionary), true),
        ("floats", Arc::new(floats), true),
        ("flags", Arc::new(flags), true),
        ("decimals", Arc::new(decimals), true),
        ("times", Arc::new(times), true),
        ("lists", lists, true),
        ("nested", Arc::new(nested), true),
        ("nothing", Arc::new(NullArray::new(rows)), true),
    ])
    .unwrap()
}

/// Lists of views, of 0 to 3 elements.
fn lists(texts: &[Option<String>]) -> ListArray {
    let mut builder = ListBuilder::new(StringViewBuilder::new());
    for (row, text) in texts.iter().enumerate() {
        (0..row % 4).for_each(|_| builder.values().append_option(text.as_deref()));
        builder.append(row % 6 != 0);
    }
    builder.finish()
}
