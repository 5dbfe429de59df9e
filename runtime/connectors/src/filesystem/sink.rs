//! The file sink: rows into staged files, one for each partition, given their names when the checkpoint is complete.

use std::{
    collections::{BTreeMap, HashMap},
    path::PathBuf,
    sync::Arc,
};

use arrow::{
    array::{Array, ArrayRef, RecordBatch, UInt32Array},
    compute::{cast, take_record_batch},
    datatypes::SchemaRef,
};
use streamkeeper_engine::{Operator, OperatorContext, OperatorFactory, Output, RestoredLists, SubtaskInfo};
use streamkeeper_protocol::Barrier;
use streamkeeper_types::{
    CheckpointId, Code, Error, Result,
    snapshot::{ListMode, ListState},
};

use super::{
    partition::PartitionColumns,
    staging::{StagedFile, Staging, failed},
};
use crate::formats::{Encoder, Format, ParquetWriter};

/// Name of the operator state that holds prepared files.
const COMMITTABLES: &str = "committables";

/// Bytes gathered for a file before they are written.
const BUFFER: usize = 256 << 10;

/// Partitions whose files are open at the same time; with more, all are closed and others begun.
const OPEN_FILES: usize = 128;

pub(super) struct FileSinkFactory {
    pub(super) table: String,
    pub(super) job: String,
    pub(super) folder: PathBuf,
    pub(super) format: Format,
    pub(super) schema: SchemaRef,
    pub(super) file_schema: SchemaRef,
    pub(super) partitions: PartitionColumns,
    /// Bytes at which a file ends.
    pub(super) file_size: u64,
}

impl OperatorFactory for FileSinkFactory {
    fn create(&self, subtask: &SubtaskInfo) -> Result<Box<dyn Operator>> {
        let staging = Staging::open(&self.folder, &self.job, "part", subtask);
        Ok(Box::new(FileSink {
            table: format!("table {}", self.table),
            schema: Arc::clone(&self.schema),
            partitions: self.partitions.clone(),
            positions_in_files: self.partitions.positions_in_files(self.schema.fields().len()),
            files: Files {
                staging: staging.map_err(|e| e.at(format!("table {}", self.table)))?,
                format: self.format.clone(),
                encoder: self.format.encoder(&self.file_schema)?,
                schema: Arc::clone(&self.file_schema),
                file_size: self.file_size,
                open: HashMap::new(),
            },
            folder: Vec::new(),
            value: Vec::new(),
        }))
    }
}

struct FileSink {
    /// For messages.
    table: String,
    schema: SchemaRef,
    partitions: PartitionColumns,
    positions_in_files: Vec<usize>,
    files: Files,
    /// Reused for the folder name of one row, and for one value in it.
    folder: Vec<u8>,
    value: Vec<u8>,
}

/// The open files of a sink.
struct Files {
    staging: Staging,
    format: Format,
    encoder: Option<Box<dyn Encoder>>,
    schema: SchemaRef,
    file_size: u64,
    /// By partition folder.
    open: HashMap<Vec<u8>, OpenFile>,
}

enum OpenFile {
    Lines { file: StagedFile, gathered: Vec<u8>, written: u64 },
    Parquet { file: StagedFile, writer: Box<ParquetWriter> },
}

impl FileSink {
    fn write(&mut self, batch: &RecordBatch) -> Result<()> {
        let columns = self.columns(batch)?;
        let keep = |position: &usize| Arc::clone(&columns[*position]);
        let in_file: Vec<ArrayRef> = self.positions_in_files.iter().map(keep).collect();
        let in_file = RecordBatch::try_new(Arc::clone(&self.files.schema), in_file);
        let in_file = in_file.map_err(|e| Error::internal(format!("columns of a sink: {e}")))?;
        if self.partitions.is_empty() {
            return self.files.write(b"", &in_file);
        }
        for (folder, rows) in self.rows_by_folder(&columns, batch.num_rows())? {
            let part = take_record_batch(&in_file, &UInt32Array::from(rows));
            self.files.write(&folder, &part.map_err(|e| Error::internal(e.to_string()))?)?;
        }
        Ok(())
    }

    /// The batch's columns in the table's types, NOT NULL checked.
    fn columns(&self, batch: &RecordBatch) -> Result<Vec<ArrayRef>> {
        let mut columns = Vec::with_capacity(self.schema.fields().len());
        for (field, column) in self.schema.fields().iter().zip(batch.columns()) {
            if !field.is_nullable() && column.null_count() > 0 {
                let cause = format!("column `{}` is NOT NULL, and the query gives it NULL", field.name());
                return Err(Error::new(Code::RecordInvalid, cause)
                    .way_out("filter such rows out with WHERE … IS NOT NULL, or declare the column without NOT NULL"));
            }
            columns.push(if column.data_type() == field.data_type() {
                Arc::clone(column)
            } else {
                cast(column, field.data_type())
                    .map_err(|e| Error::internal(format!("column `{}`: {e}", field.name())))?
            });
        }
        Ok(columns)
    }

    fn rows_by_folder(&mut self, columns: &[ArrayRef], rows: usize) -> Result<BTreeMap<Vec<u8>, Vec<u32>>> {
        let texts = self.partitions.columns(columns)?;
        let mut by_folder: BTreeMap<Vec<u8>, Vec<u32>> = BTreeMap::new();
        for (row, index) in (0..rows).zip(0_u32..) {
            self.folder.clear();
            self.partitions.write_folder(&texts, row, &mut self.value, &mut self.folder);
            match by_folder.get_mut(&self.folder) {
                Some(rows) => rows.push(index),
                None => drop(by_folder.insert(self.folder.clone(), vec![index])),
            }
        }
        Ok(by_folder)
    }
}

impl Files {
    fn write(&mut self, folder: &[u8], batch: &RecordBatch) -> Result<()> {
        if !self.open.contains_key(folder) {
            if self.open.len() >= OPEN_FILES {
                self.finish_all()?;
            }
            let file = self.begin(folder)?;
            self.open.insert(folder.to_vec(), file);
        }
        let Some(open) = self.open.get_mut(folder) else {
            return Err(Error::internal("a file that was opened is gone"));
        };
        let bytes = match (open, &mut self.encoder) {
            (OpenFile::Lines { file, gathered, written }, Some(encoder)) => {
                encoder.encode(batch, gathered)?;
                if gathered.len() >= BUFFER {
                    *written += gathered.len() as u64;
                    file.write(gathered)?;
                    gathered.clear();
                }
                *written + gathered.len() as u64
            }
            (OpenFile::Parquet { file, writer }, _) => {
                writer.write(batch).map_err(|e| parquet_failed(file, e))?;
                writer.bytes()
            }
            (OpenFile::Lines { .. }, None) => return Err(Error::internal("a line format without an encoder")),
        };
        match if bytes >= self.file_size { self.open.remove(folder) } else { None } {
            Some(full) => self.finish(full),
            None => Ok(()),
        }
    }

    fn begin(&mut self, folder: &[u8]) -> Result<OpenFile> {
        let file = self.staging.create(&String::from_utf8_lossy(folder), self.format.extension())?;
        Ok(match &self.encoder {
            Some(encoder) => {
                let mut gathered = Vec::with_capacity(BUFFER);
                encoder.header(&mut gathered);
                OpenFile::Lines { file, gathered, written: 0 }
            }
            None => {
                let writer = Box::new(ParquetWriter::new(file.duplicate()?, &self.schema)?);
                OpenFile::Parquet { file, writer }
            }
        })
    }

    fn finish(&mut self, open: OpenFile) -> Result<()> {
        let file = match open {
            OpenFile::Lines { mut file, gathered, .. } => {
                file.write(&gathered)?;
                file
            }
            OpenFile::Parquet { file, writer } => {
                writer.finish().map_err(|e| parquet_failed(&file, e))?;
                file
            }
        };
        self.staging.finish(file)
    }

    fn finish_all(&mut self) -> Result<()> {
        let open: Vec<OpenFile> = self.open.drain().map(|(_, file)| file).collect();
        open.into_iter().try_for_each(|file| self.finish(file))
    }
}

/// A full disk and the like lie inside parquet's error.
fn parquet_failed(file: &StagedFile, error: parquet::errors::ParquetError) -> Error {
    match error {
        parquet::errors::ParquetError::External(inner) => match inner.downcast::<std::io::Error>() {
            Ok(io) => failed(file.path(), &io),
            Err(other) => Error::new(Code::SinkFailed, format!("{}: {other}", file.path().display())),
        },
        other => Error::new(Code::SinkFailed, format!("{}: {other}", file.path().display())),
    }
}

impl Operator for FileSink {
    fn open(&mut self, restored: &RestoredLists, _context: &mut OperatorContext) -> Result<()> {
        self.files.staging.restore(restored.items(COMMITTABLES)).map_err(|e| e.at(self.table.clone()))
    }

    fn process(
        &mut self,
        _input: usize,
        batch: RecordBatch,
        _context: &mut OperatorContext,
        _output: &mut dyn Output,
    ) -> Result<()> {
        self.write(&batch).map_err(|e| e.at(self.table.clone()))
    }

    fn before_barrier(
        &mut self,
        barrier: &Barrier,
        _context: &mut OperatorContext,
        _output: &mut dyn Output,
    ) -> Result<()> {
        let done = self.files.finish_all().and_then(|()| self.files.staging.prepare(barrier.id));
        done.map_err(|e| e.at(self.table.clone()))
    }

    fn snapshot_lists(&mut self, _barrier: &Barrier) -> Result<BTreeMap<String, ListState>> {
        let items = self.files.staging.state();
        Ok(BTreeMap::from([(COMMITTABLES.to_owned(), ListState { mode: ListMode::Split, items })]))
    }

    fn checkpoint_completed(&mut self, id: CheckpointId, _context: &mut OperatorContext) -> Result<()> {
        self.files.staging.commit(id).map_err(|e| e.at(self.table.clone()))
    }
}
