//! `parquet`: whole row groups of a file, read by column name, and a writer.

use std::{
    fs::File,
    panic::{AssertUnwindSafe, catch_unwind},
    path::Path,
    sync::Arc,
};

use arrow::{
    array::{Array, ArrayRef, RecordBatch, new_null_array},
    compute::cast,
    datatypes::{Field, SchemaRef},
    error::ArrowError,
};
use parquet::{
    arrow::{
        ArrowWriter, ProjectionMask,
        arrow_reader::{
            ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder,
        },
    },
    basic::Compression,
    errors::ParquetError,
    file::{metadata::RowGroupMetaData, properties::WriterProperties},
};
use streamkeeper_types::{Code, Error, Result};

use super::{file_corrupt, parse::sql_name};

/// The row groups of a file that begin within a range of bytes.
pub(crate) struct ParquetSplit {
    batches: ParquetRecordBatchReader,
    schema: SchemaRef,
    /// Rows of the range that were read.
    rows: u64,
}

impl ParquetSplit {
    /// Opens `file` for the row groups that begin in `start..end`, without their first `skip` rows.
    ///
    /// # Errors
    /// `FILE_CORRUPT` if the file is no parquet or lacks a column that is NOT NULL, `SOURCE_FAILED` if it cannot be read.
    pub(crate) fn open(
        file: File,
        path: &Path,
        schema: &SchemaRef,
        range: std::ops::Range<u64>,
        skip: u64,
        batch_rows: usize,
    ) -> Result<Self> {
        // Arrow's own schema in the footer is read with panics on what it does not expect, and Parquet's says enough.
        let options = ArrowReaderOptions::new().with_skip_arrow_metadata(true);
        let metadata =
            contained(path, || ArrowReaderMetadata::load(&file, options).map_err(|e| read_failed(path, &e)))?;
        let groups = metadata.metadata().row_groups().iter().enumerate();
        let groups: Vec<usize> = groups.filter(|(_, g)| range.contains(&begin(g))).map(|(i, _)| i).collect();
        let names = metadata.schema().fields();
        let mut columns = Vec::new();
        for field in schema.fields() {
            match names.find(field.name()) {
                Some((index, _)) => columns.push(index),
                None if field.is_nullable() => {}
                None => {
                    return Err(file_corrupt(path, format!("it has no column `{}`, which is NOT NULL", field.name())));
                }
            }
        }
        let mask = ProjectionMask::roots(metadata.parquet_schema(), columns);
        let rows = skip;
        let skip = usize::try_from(skip).map_err(|e| file_corrupt(path, e))?;
        let builder = ParquetRecordBatchReaderBuilder::new_with_metadata(file, metadata)
            .with_row_groups(groups)
            .with_projection(mask)
            .with_offset(skip)
            .with_batch_size(batch_rows);
        let batches = contained(path, || builder.build().map_err(|e| read_failed(path, &e)))?;
        Ok(Self { batches, schema: Arc::clone(schema), rows })
    }

    /// The next batch in the table's columns; `None` at the end.
    ///
    /// # Errors
    /// `SOURCE_FAILED` or `FILE_CORRUPT` if the file cannot be read, `RECORD_INVALID` if a value does not fit its column.
    pub(crate) fn next(&mut self, path: &Path) -> Result<Option<RecordBatch>> {
        let read = contained(path, || self.batches.next().transpose().map_err(|e| batch_failed(path, &e)))?;
        let Some(batch) = read else { return Ok(None) };
        let mut columns: Vec<ArrayRef> = Vec::with_capacity(self.schema.fields().len());
        for field in self.schema.fields() {
            columns.push(match batch.column_by_name(field.name()) {
                None => new_null_array(field.data_type(), batch.num_rows()),
                Some(column) => fit(column, field, self.rows).map_err(|e| e.at(path.display().to_string()))?,
            });
        }
        self.rows += batch.num_rows() as u64;
        RecordBatch::try_new(Arc::clone(&self.schema), columns).map(Some).map_err(|e| file_corrupt(path, e))
    }
}

/// Runs a step of the decoder, which asserts where it meets sizes and levels that no writer makes: such a file must fail the
/// read and not the task. Nothing outlives a panic, since the caller drops the decoder with the error.
fn contained<T>(path: &Path, step: impl FnOnce() -> Result<T>) -> Result<T> {
    catch_unwind(AssertUnwindSafe(step))
        .unwrap_or_else(|_| Err(file_corrupt(path, "the Parquet decoder gave up on what no writer makes")))
}

/// The column in the table's type; `first_row` is the number of its first row in the range, for messages.
fn fit(column: &ArrayRef, field: &Field, first_row: u64) -> Result<ArrayRef> {
    let invalid = |row: usize, why: &str| {
        let cause =
            format!("row {} of the row groups of this split: column `{}` {why}", first_row + row as u64, field.name());
        Error::new(Code::RecordInvalid, cause)
            .way_out("declare the column as the file has it and CAST it in the query, or mend the file")
    };
    let name = sql_name(field.data_type());
    let fitted = if column.data_type() == field.data_type() {
        Arc::clone(column)
    } else {
        // A value that does not fit becomes NULL, which a file without NULL there betrays.
        cast(column, field.data_type()).map_err(|e| invalid(0, &format!("is no {name}: {e}")))?
    };
    if fitted.null_count() > column.logical_null_count() {
        let lost = |row: &usize| fitted.is_null(*row) && !column.is_null(*row);
        return Err(invalid(
            (0..fitted.len()).find(lost).unwrap_or_default(),
            &format!("has a value that is no {name}"),
        ));
    }
    if !field.is_nullable() && fitted.null_count() > 0 {
        let row = (0..fitted.len()).find(|row| fitted.is_null(*row)).unwrap_or_default();
        return Err(invalid(row, "is NOT NULL and has no value"));
    }
    Ok(fitted)
}

/// What the reader of metadata met: bytes that are no parquet, or a disk that does not answer.
fn read_failed(path: &Path, error: &ParquetError) -> Error {
    match error {
        ParquetError::External(inner) if inner.is::<std::io::Error>() => {
            Error::new(Code::SourceFailed, format!("{}: {inner}", path.display()))
        }
        other => file_corrupt(path, other),
    }
}

/// As [`read_failed`], for pages.
fn batch_failed(path: &Path, error: &ArrowError) -> Error {
    match error {
        ArrowError::IoError(..) => Error::new(Code::SourceFailed, format!("{}: {error}", path.display())),
        other => file_corrupt(path, other),
    }
}

/// Where a row group begins in its file.
fn begin(group: &RowGroupMetaData) -> u64 {
    let of_column = |c: &parquet::file::metadata::ColumnChunkMetaData| {
        c.dictionary_page_offset().map_or(c.data_page_offset(), |d| d.min(c.data_page_offset()))
    };
    group.columns().iter().map(of_column).min().and_then(|offset| u64::try_from(offset).ok()).unwrap_or_default()
}

/// Writes one parquet file.
pub(crate) struct ParquetWriter {
    writer: ArrowWriter<File>,
}

impl ParquetWriter {
    /// # Errors
    /// `SQL_UNSUPPORTED` for a schema that parquet cannot hold.
    pub(crate) fn new(file: File, schema: &SchemaRef) -> Result<Self> {
        let properties = WriterProperties::builder().set_compression(Compression::SNAPPY).build();
        let writer = ArrowWriter::try_new(file, Arc::clone(schema), Some(properties));
        Ok(Self { writer: writer.map_err(|e| Error::new(Code::SqlUnsupported, format!("format 'parquet': {e}")))? })
    }

    pub(crate) fn write(&mut self, batch: &RecordBatch) -> Result<(), parquet::errors::ParquetError> {
        self.writer.write(batch)
    }

    /// Bytes that the file has so far, those of the row group in memory included.
    pub(crate) fn bytes(&self) -> u64 {
        (self.writer.bytes_written() + self.writer.in_progress_size()) as u64
    }

    /// Writes the footer and gives the file back.
    pub(crate) fn finish(self) -> Result<File, parquet::errors::ParquetError> {
        self.writer.into_inner()
    }
}
