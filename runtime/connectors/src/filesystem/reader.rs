//! Reads the splits of one subtask.

use std::{path::Path, sync::Arc, time::Duration};

use arrow::array::{ArrayRef, RecordBatch};
use streamkeeper_engine::{Paused, Polled, SourceContext, SourceReader, Split, SubtaskInfo};
use streamkeeper_protocol::Barrier;
use streamkeeper_types::{CheckpointId, Error, Result};

use super::{
    FileTable,
    bad_records::{BadRecords, Found},
    lines::{LineStream, open_file},
    split::{FileSplit, Position},
};
use crate::formats::ParquetSplit;

/// Splits that are open at the same time. They are read in turn, so that their event times advance together.
const OPEN_SPLITS: usize = 64;

pub(super) struct FileReader {
    table: Arc<FileTable>,
    context: SourceContext,
    splits: Vec<Active>,
    /// Index of the split that was read last.
    turn: usize,
    bad: BadRecords,
    /// Bytes of splits that are finished.
    finished_bytes: u64,
}

/// A split with what is needed to read it.
struct Active {
    id: Arc<str>,
    split: FileSplit,
    paused: Paused,
    /// Opened when its turn comes.
    stream: Option<Stream>,
    /// Values of the partition columns.
    values: Vec<ArrayRef>,
}

enum Stream {
    Lines(Box<LineStream>),
    Parquet(Box<ParquetSplit>),
}

impl FileReader {
    pub(super) fn new(table: Arc<FileTable>, subtask: &SubtaskInfo, context: SourceContext) -> Result<Self> {
        let metrics = Arc::clone(&context.metrics);
        let bad = BadRecords::new(&table.name, &table.job, &table.policy, subtask, metrics)?;
        Ok(Self { table, context, splits: Vec::new(), turn: 0, bad, finished_bytes: 0 })
    }

    /// The next split that may be read.
    fn next_turn(&mut self) -> Option<usize> {
        let open = self.splits.len().min(OPEN_SPLITS);
        let candidates = (1..=open).map(|step| (self.turn + step) % open);
        let turn = candidates.into_iter().find(|index| self.splits[*index].paused == Paused::No)?;
        self.turn = turn;
        Some(turn)
    }

    /// Rows of one split; `None` if it is read to its end, a batch of no rows if only bad records came.
    fn read(&mut self, turn: usize) -> Result<Option<RecordBatch>> {
        let Active { split, stream, values, .. } = &mut self.splits[turn];
        let path = split.path.clone();
        let stream = match stream {
            Some(stream) => stream,
            None => {
                *values = self.table.partitions.values_of(&path)?;
                stream.insert(open(&self.table, split, self.context.batch_rows)?)
            }
        };
        let columns = match stream {
            Stream::Parquet(parquet) => {
                let Some(batch) = parquet.next(Path::new(&path))? else { return Ok(None) };
                let done = if let Position::Rows(rows) = split.position { rows } else { 0 };
                split.position = Position::Rows(done + batch.num_rows() as u64);
                batch.columns().to_vec()
            }
            Stream::Lines(lines) => {
                let Some(step) = lines.next(Path::new(&path), self.context.batch_rows)? else { return Ok(None) };
                for bad in &step.bad {
                    self.bad.add(Found {
                        path: &path,
                        offset: step.offset + bad.range.start as u64,
                        bytes: &step.bytes[bad.range.clone()],
                        cause: &bad.cause,
                    })?;
                }
                let columns = step.columns;
                split.position = Position::Byte(lines.position());
                columns
            }
        };
        if columns.is_empty() {
            return Ok(Some(RecordBatch::new_empty(Arc::clone(&self.table.schema))));
        }
        let columns = self.table.partitions.join(columns, values)?;
        let batch = RecordBatch::try_new(Arc::clone(&self.table.schema), columns);
        batch.map(Some).map_err(|e| Error::internal(format!("columns of a file: {e}")))
    }
}

fn open(table: &FileTable, split: &FileSplit, batch_rows: usize) -> Result<Stream> {
    Ok(match table.format.decoder(&table.file_schema)? {
        Some(decoder) => {
            Stream::Lines(Box::new(LineStream::open(split, &table.format, table.longest_record, decoder)?))
        }
        None => {
            let done = if let Position::Rows(rows) = split.position { rows } else { 0 };
            let (file, path) = (open_file(split)?, Path::new(&split.path));
            let range = split.start..split.end;
            let parquet = ParquetSplit::open(file, path, &table.file_schema, range, done, batch_rows)?;
            Stream::Parquet(Box::new(parquet))
        }
    })
}

impl SourceReader for FileReader {
    fn add_splits(&mut self, splits: Vec<Split>) -> Result<()> {
        for split in splits {
            self.splits.push(Active {
                split: FileSplit::from_split(&split)?,
                id: split.id.into(),
                paused: Paused::No,
                stream: None,
                values: Vec::new(),
            });
        }
        Ok(())
    }

    fn poll(&mut self) -> Result<Polled> {
        if self.splits.is_empty() {
            return Ok(Polled::NeedSplits);
        }
        let Some(turn) = self.next_turn() else { return Ok(Polled::Wait(Duration::from_millis(10))) };
        match self.read(turn).map_err(|e| e.at(format!("table {}", self.table.name)))? {
            Some(batch) if batch.num_rows() == 0 => Ok(Polled::Wait(Duration::ZERO)),
            Some(batch) => Ok(Polled::Batch { batch, split: Arc::clone(&self.splits[turn].id) }),
            None => {
                let finished = self.splits.remove(turn);
                self.turn = turn.saturating_sub(1);
                self.finished_bytes += finished.split.end - finished.split.start;
                Ok(Polled::SplitFinished(finished.id))
            }
        }
    }

    fn snapshot(&self) -> Vec<Split> {
        // A split that `add_splits` decoded encodes again.
        self.splits.iter().filter_map(|active| active.split.to_split().ok()).collect()
    }

    fn set_paused(&mut self, split: &str, paused: Paused) {
        if let Some(active) = self.splits.iter_mut().find(|active| &*active.id == split) {
            active.paused = paused;
        }
    }

    fn before_barrier(&mut self, barrier: &Barrier) -> Result<()> {
        self.bad.prepare(barrier)
    }

    fn extra_state(&self) -> Vec<Vec<u8>> {
        self.bad.state()
    }

    fn restore_extra(&mut self, items: &[Vec<u8>]) -> Result<()> {
        self.bad.restore(items)
    }

    fn report(&mut self) -> Option<Vec<u8>> {
        self.bad.report()
    }

    fn checkpoint_completed(&mut self, id: CheckpointId) -> Result<()> {
        self.bad.commit(id)
    }

    fn progress(&self) -> (u64, Option<u64>) {
        let read = |split: &FileSplit| match split.position {
            Position::Byte(byte) if !split.is_compressed() => byte.saturating_sub(split.start),
            _ => 0,
        };
        let active = self.splits.iter().map(|active| &active.split);
        let total: u64 = active.clone().map(|split| split.end - split.start).sum();
        let done: u64 = active.map(read).sum();
        (self.finished_bytes + done, Some(self.finished_bytes + total))
    }
}
