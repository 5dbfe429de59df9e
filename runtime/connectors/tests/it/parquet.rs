//! Parquet files: row groups feed several readers, and positions count rows.

use std::{fs::File, sync::Arc};

use ::parquet::{arrow::ArrowWriter, file::properties::WriterProperties};
use arrow::{
    array::{Int32Array, RecordBatch, StringArray},
    datatypes::DataType,
};
use streamkeeper_types::Code;

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

#[test]
fn a_file_that_is_no_parquet_is_one_clear_error() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("a.parquet"), "PAR1 but not really").unwrap();
    let table = table(folder.path(), schema(&[("n", DataType::Int64)]), &[("path", "."), ("format", "parquet")]);
    assert_eq!(read_all(&table).unwrap_err().code, Code::SourceFailed);
}
