//! Rows as text, and changelogs applied to tables.

use std::collections::BTreeMap;

use arrow::{
    array::{Array, ArrayRef, RecordBatch},
    compute::cast,
    datatypes::DataType,
    util::display::{ArrayFormatter, FormatOptions},
};
use streamkeeper_operators::changelog;
use streamkeeper_types::RowKind;

/// A row's values as text; timestamps as milliseconds.
pub type Row = Vec<String>;

/// Rows of the batch without row kind.
pub fn rows(batch: &RecordBatch) -> Vec<Row> {
    let columns: Vec<ArrayRef> = changelog::data_columns(batch)
        .iter()
        .map(|column| match column.data_type() {
            DataType::Timestamp(_, _) => cast(column, &DataType::Int64).unwrap(),
            _ => column.clone(),
        })
        .collect();
    let options = FormatOptions::new().with_null("NULL");
    let formatters: Vec<_> = columns.iter().map(|c| ArrayFormatter::try_new(c.as_ref(), &options).unwrap()).collect();
    (0..batch.num_rows()).map(|row| formatters.iter().map(|f| f.value(row).to_string()).collect()).collect()
}

pub fn all_rows(batches: &[RecordBatch]) -> Vec<Row> {
    batches.iter().flat_map(rows).collect()
}

pub fn sorted(mut rows: Vec<Row>) -> Vec<Row> {
    rows.sort();
    rows
}

/// Kind and values of each change.
pub fn changes(batches: &[RecordBatch]) -> Vec<(&'static str, Row)> {
    let mut changes = Vec::new();
    for batch in batches {
        let kinds = changelog::row_kinds(batch).unwrap().expect("an updating stream");
        let kinds = kinds.iter().map(|kind| RowKind::from_code(*kind).unwrap().symbol());
        changes.extend(kinds.zip(rows(batch)));
    }
    changes
}

/// The table after all changes, by its first `keys` columns. Every change must fit what is there.
pub fn fold(batches: &[RecordBatch], keys: usize) -> Vec<Row> {
    let mut table: BTreeMap<Row, Row> = BTreeMap::new();
    let mut awaits_after = None;
    for (kind, row) in changes(batches) {
        let key = row[..keys].to_vec();
        if let Some(awaiting) = awaits_after.take() {
            assert_eq!((kind, &key), ("+U", &awaiting), "the other half of an update");
        }
        match kind {
            "+I" => assert_eq!(table.insert(key, row), None, "+I of a key that is there"),
            "-U" => {
                assert_eq!(table.remove(&key), Some(row), "-U");
                awaits_after = Some(key);
            }
            "+U" => assert_eq!(table.insert(key, row), None, "+U without -U"),
            _ => assert_eq!(table.remove(&key), Some(row), "-D"),
        }
    }
    assert_eq!(awaits_after, None);
    table.into_values().collect()
}
