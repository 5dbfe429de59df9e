//! Parquet files: row groups feed several readers, and positions count rows.

use std::{fs::File, sync::Arc};

use ::parquet::{arrow::ArrowWriter, file::properties::WriterProperties};
use arrow::{
    array::{Int32Array, RecordBatch, StringArray},
    datatypes::DataType,
};
use streamkeeper_types::{Code, Result};

use crate::harness::{Running, batch, read_all, schema, source, table};

fn rows(count: i32) -> RecordBatch {
    let text = StringArray::from_iter_values((0..count).map(|n| format!("{n:x<200}")));
    batch(vec![("other", Arc::new(text)), ("n", Arc::new(Int32Array::from_iter_values(0..count)))])
}

#[test]
fn row_groups_are_shared_and_a_restore_goes_on_at_the_next_row() {
    let folder = tempfile::tempdir().unwrap();
    let batch = rows(4_000);
    let properties =
        WriterProperties::builder().set_max_row_group_row_count(Some(250)).set_dictionary_enabled(false).build();
    let file = File::create(folder.path().join("a.parquet")).unwrap();
    let mut writer = ArrowWriter::try_new(file, batch.schema(), Some(properties)).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
    // INT in the file, BIGINT in the table; a column that the file does not have is NULL.
    let columns = schema(&[("n", DataType::Int64), ("missing", DataType::Utf8)]);
    let table = table(folder.path(), columns, &[("path", "a.parquet"), ("format", "parquet")]);
    let source = source(&table);
    let mut running = Running::start(&source, 3, 100).unwrap();
    let mut found = Vec::new();
    (0..24).for_each(|poll| found.extend(running.step(poll % 3).unwrap().unwrap_or_default()));
    assert!(running.readers.iter().all(|reader| reader.snapshot().len() == 1));
    let cut = running.cut(1);
    found.extend(Running::restore(&source, 2, 70, &cut).unwrap().finish().unwrap());
    let mut numbers: Vec<i64> = found.iter().map(|row| row.strip_suffix("|∅").unwrap().parse().unwrap()).collect();
    numbers.sort_unstable();
    assert_eq!(numbers, (0..4_000).collect::<Vec<_>>());
}

/// A file of these rows, as bytes.
fn file_of(batch: &RecordBatch) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut writer = ArrowWriter::try_new(&mut bytes, batch.schema(), None).unwrap();
    writer.write(batch).unwrap();
    writer.close().unwrap();
    bytes
}

/// Reads these bytes as a table of one column.
fn read_bytes(bytes: &[u8], column: (&str, DataType)) -> Result<Vec<String>> {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("a.parquet"), bytes).unwrap();
    read_all(&table(folder.path(), schema(&[column]), &[("path", "a.parquet"), ("format", "parquet")]))
}

#[test]
fn a_file_that_was_cut_anywhere_or_is_no_parquet_is_one_clear_error() {
    let whole = file_of(&rows(3));
    assert_eq!(read_bytes(&whole, ("n", DataType::Int64)).unwrap().len(), 3);
    let cut = (0..whole.len()).map(|length| &whole[..length]);
    for bytes in cut.chain([&b"PAR1 but not really"[..], b"PAR1\xff\xff\xff\x7fPAR1"]) {
        let error = read_bytes(bytes, ("n", DataType::Int64)).unwrap_err();
        assert_eq!(error.code, Code::FileCorrupt, "{} bytes: {error}", bytes.len());
        assert!(error.cause.contains("a.parquet") && error.way_out.is_some(), "{error}");
    }
}

#[test]
fn a_value_that_does_not_fit_its_column_is_an_error_and_never_null() {
    let text = batch(vec![("n", Arc::new(StringArray::from(vec![Some("1"), None, Some("many")])))]);
    let error = read_bytes(&file_of(&text), ("n", DataType::Int64)).unwrap_err();
    assert_eq!(error.code, Code::RecordInvalid);
    assert!(
        error.cause.contains("row 2 of the row groups of this split: column `n` has a value that is no BIGINT"),
        "{error}"
    );
    let good = batch(vec![("n", Arc::new(StringArray::from(vec![Some("1"), None])))]);
    assert_eq!(read_bytes(&file_of(&good), ("n", DataType::Int64)).unwrap(), ["1", "∅"]);
}
