//! Sources: splits, a reader in each subtask, and a coordinator beside the JobManager that deals the splits out.
//!
//! The coordinator finds splits (files, partitions) and gives them to readers that ask. A reader reads its splits,
//! each with a position of its own. Both are cut at the same checkpoint: a split lies either in the coordinator's
//! snapshot or in exactly one reader's (R29, R30). Positions are opaque, versioned bytes of the connector.

use std::{sync::Arc, time::Duration};

use arrow::{array::RecordBatch, datatypes::SchemaRef};
use streamkeeper_types::{Millis, Result};

use crate::{Clock, OperatorMetrics, SubtaskInfo};

/// A source as the graph holds it.
pub trait SourceFactory: Send + Sync {
    /// Schema of the batches that readers yield, before computed columns.
    fn schema(&self) -> SchemaRef;

    /// Coordinator of this source. Made where the JobManager runs; it may list files but reads no records.
    ///
    /// # Errors
    /// When the input cannot be found or listed.
    fn coordinator(&self, parallelism: u32) -> Result<Box<dyn SplitCoordinator>>;

    /// Reader of one subtask.
    ///
    /// # Errors
    /// When the source cannot be opened.
    fn reader(&self, subtask: &SubtaskInfo, context: SourceContext) -> Result<Box<dyn SourceReader>>;
}

/// What a reader is given for its life.
#[derive(Clone)]
pub struct SourceContext {
    pub clock: Arc<dyn Clock>,
    pub metrics: Arc<OperatorMetrics>,
    /// Rows that a batch should have at most.
    pub batch_rows: usize,
}

/// A part of the input that one reader reads, with how far it was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Split {
    /// Unique in the source, stable over restarts.
    pub id: String,
    /// Definition and position, encoded by the connector with a version byte first.
    pub state: Vec<u8>,
}

/// Deals splits out. Pure but for listing its input: calls are serial, and each returns what is to be assigned.
pub trait SplitCoordinator: Send {
    /// Readers present: all of them start with no split. Called at a start and after each restart, before requests.
    fn reset(&mut self, readers: u32);

    /// A reader asks for work, or for more of it. It is answered at once, with nothing if there is nothing now: the tasks
    /// behind read no record before each reader knows whether it has a split.
    ///
    /// # Errors
    /// When the input cannot be listed.
    fn on_request(&mut self, request: SplitRequest) -> Result<Vec<Assignment>>;

    /// What a reader says of itself through [`SourceReader::report`]. Not part of a cut: a reader tells it anew after
    /// each restart.
    ///
    /// # Errors
    /// Fails the job.
    fn on_report(&mut self, _reader: u32, _report: &[u8]) -> Result<()> {
        Ok(())
    }

    /// Looks for new splits; called every [`SplitCoordinator::discovery_interval`].
    ///
    /// # Errors
    /// When the input cannot be listed.
    fn discover(&mut self, _now: Millis) -> Result<Vec<Assignment>> {
        Ok(Vec::new())
    }

    /// `None`: the input is bounded and was listed once.
    fn discovery_interval(&self) -> Option<Duration> {
        None
    }

    /// Whether bounded splits exist that no reader has. While they do, readers hold their watermark unless the table
    /// says `scan.watermark.unread-splits = ignore` (decision 14). Asked after each other call.
    fn has_unread_splits(&self) -> bool {
        false
    }

    /// Splits found and not assigned, and what is needed to find no split twice; versioned bytes.
    ///
    /// # Errors
    /// Aborts the checkpoint.
    fn snapshot(&mut self) -> Result<Vec<u8>>;

    /// State from [`SplitCoordinator::snapshot`]. Splits that readers held come back with the readers' own state.
    ///
    /// # Errors
    /// When the bytes are of an unknown version or torn.
    fn restore(&mut self, bytes: &[u8]) -> Result<()>;
}

/// A reader's request for splits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SplitRequest {
    /// Subtask index.
    pub reader: u32,
}

/// What a coordinator decides for one reader.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Assignment {
    pub reader: u32,
    pub splits: Vec<Split>,
    /// No further split will come for this reader.
    pub no_more: bool,
}

/// Reads the splits of one subtask. Runs on the task's thread; its positions are exact at each return from `poll`.
pub trait SourceReader: Send {
    /// New or restored splits.
    ///
    /// # Errors
    /// When a split cannot be opened or its state not be read.
    fn add_splits(&mut self, splits: Vec<Split>) -> Result<()>;

    /// Reads on. Blocks for a few milliseconds at most.
    ///
    /// # Errors
    /// When the input fails, or a record is bad and the table says `fail`.
    fn poll(&mut self) -> Result<Polled>;

    /// Splits with their positions: everything that `poll` returned is before them, nothing else.
    fn snapshot(&self) -> Vec<Split>;

    /// Stops or goes on reading one split (watermark alignment).
    fn set_paused(&mut self, _split: &str, _paused: Paused) {}

    /// Two-phase side outputs (dead letters): called as for operators.
    ///
    /// # Errors
    /// Fails the attempt.
    fn before_barrier(&mut self, _barrier: &streamkeeper_protocol::Barrier) -> Result<()> {
        Ok(())
    }

    /// Extra operator state of the reader besides its splits (dead-letter files, say), as list items.
    fn extra_state(&self) -> Vec<Vec<u8>> {
        Vec::new()
    }

    /// The items of [`SourceReader::extra_state`] of all old readers that fell to this one.
    ///
    /// # Errors
    /// When the bytes cannot be read.
    fn restore_extra(&mut self, _items: &[Vec<u8>]) -> Result<()> {
        Ok(())
    }

    /// What the coordinator must know and was not told since the restart; bytes of the connector. Asked between polls.
    fn report(&mut self) -> Option<Vec<u8>> {
        None
    }

    /// As [`crate::Operator::checkpoint_completed`].
    ///
    /// # Errors
    /// Fails the attempt.
    fn checkpoint_completed(&mut self, _id: streamkeeper_types::CheckpointId) -> Result<()> {
        Ok(())
    }

    /// Bytes read, and bytes of all splits seen where that is known.
    fn progress(&self) -> (u64, Option<u64>) {
        (0, None)
    }
}

/// Whether a split is held back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Paused {
    No,
    Yes,
}

/// Result of one `poll`.
#[derive(Debug)]
pub enum Polled {
    /// At least one row, all of one split.
    Batch { batch: RecordBatch, split: Arc<str> },
    /// This split is read to its end; its watermark no longer counts.
    SplitFinished(Arc<str>),
    /// Nothing right now; ask again at the latest after this time.
    Wait(Duration),
    /// No split is left: the reader wants more from its coordinator.
    NeedSplits,
}

/// How a source derives watermarks (`WATERMARK FOR ts AS ts - INTERVAL '4' SECOND`), evaluated after computed columns.
#[derive(Clone)]
pub struct WatermarkStrategy {
    /// Index of the rowtime column in the batch after computed columns.
    pub rowtime_column: usize,
    /// Value of the WATERMARK expression for each row, in milliseconds. NULL where the rowtime is NULL.
    #[expect(clippy::type_complexity, reason = "one closure")]
    pub expression: Arc<dyn Fn(&RecordBatch) -> Result<arrow::array::Int64Array> + Send + Sync>,
    /// After this time without a record in which it could be read, a split no longer holds back the watermark.
    pub idle_timeout: Option<Duration>,
    /// Least distance between two emitted watermarks; never delays one that a late row needs (decision 13).
    pub min_gap: Duration,
    /// Whether a bounded split that nobody reads yet holds the watermark (decision 14).
    pub unread_splits: UnreadSplits,
}

/// Option `scan.watermark.unread-splits`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UnreadSplits {
    Hold,
    Ignore,
}
