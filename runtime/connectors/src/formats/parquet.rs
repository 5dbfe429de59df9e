//! `parquet`: whole row groups of a file, read by column name, and a writer.

use std::{fs::File, path::Path, sync::Arc};

use arrow::{
    array::{ArrayRef, RecordBatch, new_null_array},
    compute::cast,
    datatypes::SchemaRef,
};
use parquet::{
    arrow::{
        ArrowWriter, ProjectionMask,
        arrow_reader::{ArrowReaderMetadata, ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder},
    },
    basic::Compression,
    file::{metadata::RowGroupMetaData, properties::WriterProperties},
};
use streamkeeper_types::{Code, Error, Result};

use super::parse::sql_name;

/// The row groups of a file that begin within a range of bytes.
pub(crate) struct ParquetSplit {
    batches: ParquetRecordBatchReader,
    schema: SchemaRef,
}

impl ParquetSplit {
    /// Opens `file` for the row groups that begin in `start..end`, without their first `skip` rows.
    ///
    /// # Errors
    /// `SOURCE_FAILED` if the file is no parquet or lacks a column that the table has.
    pub(crate) fn open(
        file: File,
        path: &Path,
        schema: &SchemaRef,
        range: std::ops::Range<u64>,
        skip: u64,
        batch_rows: usize,
    ) -> Result<Self> {
        let fault = |error: &dyn std::fmt::Display| {
            Error::new(Code::SourceFailed, format!("{}: {error}", path.display()))
                .way_out("see whether the file is whole and a parquet file, then run the job again")
        };
        let metadata = ArrowReaderMetadata::load(&file, Default::default()).map_err(|e| fault(&e))?;
        let groups = metadata.metadata().row_groups().iter().enumerate();
        let groups: Vec<usize> = groups.filter(|(_, g)| range.contains(&begin(g))).map(|(i, _)| i).collect();
        let names = metadata.schema().fields();
        let mut columns = Vec::new();
        for field in schema.fields() {
            match names.find(field.name()) {
                Some((index, _)) => columns.push(index),
                None if field.is_nullable() => {}
                None => return Err(fault(&format!("it has no column `{}`, which is NOT NULL", field.name()))),
            }
        }
        let mask = ProjectionMask::roots(metadata.parquet_schema(), columns);
        let skip = usize::try_from(skip).map_err(|e| fault(&e))?;
        let builder = ParquetRecordBatchReaderBuilder::new_with_metadata(file, metadata)
            .with_row_groups(groups)
            .with_projection(mask)
            .with_offset(skip)
            .with_batch_size(batch_rows);
        Ok(Self { batches: builder.build().map_err(|e| fault(&e))?, schema: Arc::clone(schema) })
    }

    /// The next batch in the table's columns; `None` at the end.
    ///
    /// # Errors
    /// `SOURCE_FAILED` if the file cannot be read, or a value does not fit its column.
    pub(crate) fn next(&mut self, path: &Path) -> Result<Option<RecordBatch>> {
        let fault =
            |error: &dyn std::fmt::Display| Error::new(Code::SourceFailed, format!("{}: {error}", path.display()));
        let Some(batch) = self.batches.next().transpose().map_err(|e| fault(&e))? else { return Ok(None) };
        let mut columns: Vec<ArrayRef> = Vec::with_capacity(self.schema.fields().len());
        for field in self.schema.fields() {
            columns.push(match batch.column_by_name(field.name()) {
                None => new_null_array(field.data_type(), batch.num_rows()),
                Some(column) if column.data_type() == field.data_type() => Arc::clone(column),
                Some(column) => cast(column, field.data_type()).map_err(|e| {
                    fault(&format!("column `{}` is no {}: {e}", field.name(), sql_name(field.data_type())))
                })?,
            });
        }
        RecordBatch::try_new(Arc::clone(&self.schema), columns).map(Some).map_err(|e| fault(&e))
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
