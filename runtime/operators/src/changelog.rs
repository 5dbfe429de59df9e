//! Changelog streams: their row-kind column, and the table that a changelog describes.
//!
//! A stream that only adds rows has no row-kind column; an updating stream carries one as its last column. Must not
//! know: operators, state.

use std::{collections::HashMap, sync::Arc};

use arrow::{
    array::{Array, ArrayRef, AsArray, Int8Array, RecordBatch},
    datatypes::{DataType, Field, Int8Type, Schema, SchemaRef},
    row::{OwnedRow, RowConverter, SortField},
};
use streamkeeper_engine::Changelog;
use streamkeeper_types::{Code, Error, ROW_KIND_COLUMN, Result, ResultExt, RowKind};

/// Whether streams of this schema are updating: their last column is the row kind.
#[must_use]
pub fn of_schema(schema: &Schema) -> Changelog {
    match schema.fields().last() {
        Some(field) if field.name() == ROW_KIND_COLUMN => Changelog::Updating,
        _ => Changelog::InsertOnly,
    }
}

/// `schema` with the row-kind column behind its columns, unless it has one.
#[must_use]
pub fn updating_schema(schema: &Schema) -> SchemaRef {
    let mut fields = schema.fields().to_vec();
    if of_schema(schema) == Changelog::InsertOnly {
        fields.push(Arc::new(Field::new(ROW_KIND_COLUMN, DataType::Int8, false)));
    }
    Arc::new(Schema::new_with_metadata(fields, schema.metadata().clone()))
}

/// Columns of a batch without its row kind.
#[must_use]
pub fn data_columns(batch: &RecordBatch) -> &[ArrayRef] {
    match of_schema(batch.schema_ref()) {
        Changelog::InsertOnly => batch.columns(),
        Changelog::Updating => &batch.columns()[..batch.num_columns() - 1],
    }
}

/// Codes of the row kinds, one a row; `None` for an insert-only batch.
///
/// # Errors
/// [`Code::Internal`] when the column is not what the format says.
pub fn row_kinds(batch: &RecordBatch) -> Result<Option<&[i8]>> {
    if of_schema(batch.schema_ref()) == Changelog::InsertOnly {
        return Ok(None);
    }
    let column = batch.columns().last().and_then(|c| c.as_primitive_opt::<Int8Type>());
    match column {
        Some(kinds) if kinds.null_count() == 0 => Ok(Some(kinds.values())),
        _ => Err(Error::internal(format!("{ROW_KIND_COLUMN} is not a column of Int8 without NULL"))),
    }
}

/// Whether the row adds to the table (`+I`, `+U`) rather than takes back (`-U`, `-D`).
#[must_use]
pub fn adds(code: i8) -> bool {
    code == RowKind::Insert.code() || code == RowKind::UpdateAfter.code()
}

/// A batch of `schema`, whose last column is the row kind.
///
/// # Errors
/// [`Code::Internal`] when columns and schema do not fit together.
pub fn updating_batch(schema: &SchemaRef, mut columns: Vec<ArrayRef>, kinds: Vec<i8>) -> Result<RecordBatch> {
    columns.push(Arc::new(Int8Array::from(kinds)));
    batch(schema, columns)
}

/// A batch of `schema`.
///
/// # Errors
/// [`Code::Internal`] when columns and schema do not fit together.
pub(crate) fn batch(schema: &SchemaRef, columns: Vec<ArrayRef>) -> Result<RecordBatch> {
    RecordBatch::try_new(Arc::clone(schema), columns).or_code(Code::Internal, || "a batch against its plan".to_owned())
}

/// A column that is not what planning said, named by `what` reads it.
pub(crate) fn batch_error(what: &str) -> Error {
    Error::internal(format!("{what}: a column is not of the planned type"))
}

/// The table (a multiset of rows) that a changelog describes, as far as it was read.
pub struct FoldedTable {
    schema: SchemaRef,
    converter: RowConverter,
    rows: HashMap<OwnedRow, i64>,
}

impl FoldedTable {
    /// An empty table of a stream's schema, with or without row kind.
    ///
    /// # Errors
    /// [`Code::Internal`] for a type that has no order.
    pub fn new(stream: &Schema) -> Result<Self> {
        let fields: Vec<_> = stream.fields().iter().filter(|f| f.name() != ROW_KIND_COLUMN).map(Arc::clone).collect();
        let sort = fields.iter().map(|f| SortField::new(f.data_type().clone())).collect();
        let converter = RowConverter::new(sort).or_code(Code::Internal, || "folding a changelog".to_owned())?;
        Ok(Self { schema: Arc::new(Schema::new(fields)), converter, rows: HashMap::new() })
    }

    /// Applies the rows of `batch`. Rows may be taken back before they were added, as long as sums come out.
    ///
    /// # Errors
    /// [`Code::Internal`] when the batch is not of the stream's schema.
    pub fn apply(&mut self, batch: &RecordBatch) -> Result<()> {
        let rows = self
            .converter
            .convert_columns(data_columns(batch))
            .or_code(Code::Internal, || "folding a changelog".to_owned())?;
        let kinds = row_kinds(batch)?;
        for (index, row) in rows.iter().enumerate() {
            let sign = if kinds.is_none_or(|k| adds(k[index])) { 1 } else { -1 };
            let count = self.rows.entry(row.owned()).or_default();
            *count += sign;
            if *count == 0 {
                self.rows.remove(&row.owned());
            }
        }
        Ok(())
    }

    /// The table's rows in the order of its columns (NULL first), each as often as it is there.
    ///
    /// # Errors
    /// [`Code::Internal`] when the changelog took back more than it had added.
    pub fn rows(&self) -> Result<RecordBatch> {
        let mut rows: Vec<(&OwnedRow, i64)> = self.rows.iter().map(|(row, count)| (row, *count)).collect();
        if rows.iter().any(|(_, count)| *count < 0) {
            return Err(Error::internal("a changelog takes back a row that it never added"));
        }
        rows.sort_unstable();
        let repeated = rows.iter().flat_map(|(row, count)| (0..*count).map(|_| row.row()));
        let columns =
            self.converter.convert_rows(repeated).or_code(Code::Internal, || "folding a changelog".to_owned())?;
        batch(&self.schema, columns)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use arrow::array::Int64Array;

    use super::*;

    fn stream(values: Vec<i64>, kinds: Vec<RowKind>) -> RecordBatch {
        let schema = updating_schema(&Schema::new(vec![Field::new("v", DataType::Int64, true)]));
        let kinds = kinds.into_iter().map(RowKind::code).collect();
        updating_batch(&schema, vec![Arc::new(Int64Array::from(values))], kinds).unwrap()
    }

    #[test]
    fn folding_keeps_rows_as_often_as_they_are_there() {
        use RowKind::{Delete, Insert, UpdateAfter, UpdateBefore};
        let changes =
            stream(vec![7, 7, 3, 3, 4, 9, 9], vec![Insert, Insert, Insert, UpdateBefore, UpdateAfter, Insert, Delete]);
        let mut table = FoldedTable::new(changes.schema_ref()).unwrap();
        table.apply(&changes).unwrap();
        let rows = table.rows().unwrap();
        assert_eq!(rows.column(0).as_primitive::<arrow::datatypes::Int64Type>().values(), &[4, 7, 7]);
        assert_eq!(of_schema(rows.schema_ref()), Changelog::InsertOnly);
    }

    #[test]
    fn taking_back_what_was_never_added_is_an_error() {
        let changes = stream(vec![1], vec![RowKind::Delete]);
        let mut table = FoldedTable::new(changes.schema_ref()).unwrap();
        table.apply(&changes).unwrap();
        assert_eq!(table.rows().unwrap_err().code, Code::Internal);
    }
}
