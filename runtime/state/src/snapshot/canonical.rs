//! Canonical savepoints: one Parquet file for each table of each subtask, columns under their names.

use std::{fs::File, ops::ControlFlow, path::Path, sync::Arc};

use arrow::{
    array::{ArrayRef, Int32Array, RecordBatch, TimestampMillisecondArray},
    datatypes::{DataType, Field, FieldRef, Schema, SchemaRef, TimeUnit},
};
use parquet::{
    arrow::{ArrowWriter, arrow_reader::ParquetRecordBatchReaderBuilder},
    basic::Compression,
    errors::ParquetError,
    file::properties::WriterProperties,
};
use streamkeeper_types::{Code, Error, KeyGroupRange, Result, ResultExt};

use super::contained;
use crate::{ColdView, MemoryBudget, Slot, Table, TableSpec, table::BATCH_ROWS, table_bounds};

/// Column with the row's key group.
pub(crate) const KEY_GROUP_COLUMN: &str = "__key_group";
/// Column with the time of last use, in tables with TTL.
pub(crate) const TTL_COLUMN: &str = "__ttl";

fn schema(spec: &TableSpec) -> SchemaRef {
    let nullable = |field: &FieldRef| Field::new(field.name(), field.data_type().clone(), true);
    let mut fields: Vec<Field> = spec.key().fields().iter().map(nullable).collect();
    fields.extend(spec.values().iter().map(|field| Field::new(&field.name, field.data_type.clone(), true)));
    fields.push(Field::new(KEY_GROUP_COLUMN, DataType::Int32, false));
    if spec.ttl().is_some() {
        fields.push(Field::new(TTL_COLUMN, DataType::Timestamp(TimeUnit::Millisecond, None), false));
    }
    Arc::new(Schema::new(fields))
}

/// Rows of a table with their typed columns.
pub(crate) fn canonical_batch(table: &Table, slots: &[Slot]) -> Result<RecordBatch> {
    let spec = table.spec();
    let mut columns = table.gather_keys(slots)?;
    for column in 0..spec.values().len() {
        columns.push(table.gather(column, slots)?);
    }
    let groups = slots.iter().map(|slot| {
        let key = table.key_bytes(*slot);
        i32::from(u16::from_be_bytes([key[0], key[1]]))
    });
    columns.push(Arc::new(Int32Array::from_iter_values(groups)));
    if spec.ttl().is_some() {
        columns.push(Arc::new(TimestampMillisecondArray::from_iter_values(table.used_at(slots))));
    }
    RecordBatch::try_new(schema(spec), columns).or_code(Code::Internal, || "rows of a savepoint".into())
}

/// A Parquet file under construction.
pub(crate) struct CanonicalFile {
    writer: ArrowWriter<File>,
    rows: u64,
}

impl CanonicalFile {
    pub(crate) fn create(local: &Path, spec: &TableSpec) -> Result<Self> {
        let file = File::create(local).map_err(|error| Error::io(Code::NotWritable, local.display(), &error))?;
        let properties = WriterProperties::builder().set_compression(Compression::LZ4_RAW).build();
        let writer = ArrowWriter::try_new(file, schema(spec), Some(properties)).or_code(Code::Internal, doing)?;
        Ok(Self { writer, rows: 0 })
    }

    pub(crate) fn write(&mut self, batch: &RecordBatch) -> Result<()> {
        self.rows += batch.num_rows() as u64;
        self.writer.write(batch).map_err(failed)
    }

    /// Writes the rows that a cold store's view has in `range`.
    pub(crate) fn write_view(
        &mut self,
        view: &dyn ColdView,
        number: usize,
        spec: &TableSpec,
        range: KeyGroupRange,
    ) -> Result<()> {
        let budget = MemoryBudget::new(usize::MAX);
        let empty = || Table::new(spec.clone(), number, range, None, &budget, i64::MIN, std::path::PathBuf::new());
        let (from, to) = table_bounds(range);
        let mut table = empty();
        let mut failed = None;
        view.scan(number, &from, &to, &mut |key, value| {
            let written = table.adopt(key, value).and_then(|()| {
                if table.cached_rows() < BATCH_ROWS {
                    return Ok(());
                }
                let full = std::mem::replace(&mut table, empty());
                self.write(&canonical_batch(&full, &full.live_slots())?)
            });
            match written {
                Ok(()) => ControlFlow::Continue(()),
                Err(error) => {
                    failed = Some(error);
                    ControlFlow::Break(())
                }
            }
        })?;
        match failed {
            Some(error) => Err(error),
            None => self.write(&canonical_batch(&table, &table.live_slots())?),
        }
    }

    /// Ends the file and gives its number of rows.
    pub(crate) fn finish(self) -> Result<u64> {
        self.writer.close().map_err(failed)?;
        Ok(self.rows)
    }
}

fn doing() -> String {
    "writing a savepoint".to_owned()
}

/// A full disk and the like lie inside parquet's error.
fn failed(error: ParquetError) -> Error {
    if let ParquetError::External(inner) = &error
        && let Some(io) = inner.downcast_ref::<std::io::Error>()
    {
        return Error::io(Code::NotWritable, "a savepoint's Parquet file", io);
    }
    Error::new(Code::NotWritable, format!("{}: {error}", doing()))
}

/// Calls `visit` for the batches of a savepoint file that was fetched to `local`.
///
/// # Errors
/// `SNAPSHOT_CORRUPT` for what is no Parquet file, or the visitor's error.
pub(crate) fn read_canonical(local: &Path, mut visit: impl FnMut(&RecordBatch) -> Result<()>) -> Result<()> {
    const DOING: &str = "reading a savepoint's Parquet file";
    let corrupt = || DOING.to_owned();
    let file = File::open(local).map_err(|error| Error::io(Code::FileUnreadable, local.display(), &error))?;
    let mut reader = contained(DOING, || {
        ParquetRecordBatchReaderBuilder::try_new(file)
            .and_then(|builder| builder.with_batch_size(8192).build())
            .or_code(Code::SnapshotCorrupt, corrupt)
    })?;
    while let Some(batch) = contained(DOING, || reader.next().transpose().or_code(Code::SnapshotCorrupt, corrupt))? {
        visit(&batch)?;
    }
    Ok(())
}

/// The columns that a table takes from a savepoint's batch.
pub(crate) struct CanonicalRows {
    pub keys: Vec<ArrayRef>,
    /// `None` for a column that the savepoint does not have.
    pub values: Vec<Option<ArrayRef>>,
    pub used_at: Option<ArrayRef>,
}

impl CanonicalRows {
    /// # Errors
    /// `SNAPSHOT_CORRUPT` if a key column is missing or a column has another type than the manifest says.
    pub(crate) fn new(batch: &RecordBatch, spec: &TableSpec) -> Result<Self> {
        let typed = |name: &str, data_type: &DataType| match batch.column_by_name(name) {
            Some(column) if column.data_type() == data_type => Ok(Some(column.clone())),
            Some(column) => Err(Error::new(
                Code::SnapshotCorrupt,
                format!("column {name} of the savepoint is {} instead of {data_type}", column.data_type()),
            )),
            None => Ok(None),
        };
        let key = |field: &FieldRef| {
            typed(field.name(), field.data_type())?.ok_or_else(|| {
                Error::new(Code::SnapshotCorrupt, format!("the savepoint has no column {}", field.name()))
            })
        };
        Ok(Self {
            keys: spec.key().fields().iter().map(key).collect::<Result<_>>()?,
            values: spec.values().iter().map(|f| typed(&f.name, &f.data_type)).collect::<Result<_>>()?,
            used_at: typed(TTL_COLUMN, &DataType::Timestamp(TimeUnit::Millisecond, None))?,
        })
    }
}
