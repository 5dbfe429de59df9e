//! What a step of the dataflow implements, and what the task gives it.
//!
//! A task calls an operator from its one thread, in this order: [`OperatorFactory::create`], [`Operator::open`], then
//! any mix of batches, watermarks, timers and checkpoints, then [`Operator::finish`] if its input ended. Between the
//! synchronous parts of two chained operators nothing else is called (R2).

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use arrow::array::RecordBatch;
use streamkeeper_protocol::Barrier;
use streamkeeper_state::{DroppedState, KeyedState, TableSpec};
use streamkeeper_types::{
    CheckpointId, Millis, OperatorId, Result, SubtaskId, Watermark,
    snapshot::{KeyedHandle, ListState},
};

use crate::Clock;

/// Makes the operator of one subtask. Held by the graph; shared by all subtasks.
pub trait OperatorFactory: Send + Sync {
    /// The keyed state that the operator uses, by which the task opens and restores it before [`Operator::open`].
    /// Tables are then named by their position here.
    fn tables(&self) -> Vec<TableSpec> {
        Vec::new()
    }

    /// # Errors
    /// When the operator's settings cannot work in this subtask.
    fn create(&self, subtask: &SubtaskInfo) -> Result<Box<dyn Operator>>;
}

/// One step of the dataflow, in one subtask. Its methods run on the task's thread and may block.
pub trait Operator: Send {
    /// State is in place; no record has come. Two-phase sinks commit here what the restored snapshot holds (R17).
    ///
    /// # Errors
    /// Fails the attempt.
    fn open(&mut self, _restored: &RestoredLists, _context: &mut OperatorContext) -> Result<()> {
        Ok(())
    }

    /// A batch from logical input `input`. It has at least one row and the schema that planning gave this input.
    ///
    /// # Errors
    /// Fails the attempt; the job restarts from its latest checkpoint.
    fn process(
        &mut self,
        input: usize,
        batch: RecordBatch,
        context: &mut OperatorContext,
        output: &mut dyn Output,
    ) -> Result<()>;

    /// The watermark over all inputs rose to `watermark`; fire what is due. The task forwards it afterwards.
    ///
    /// # Errors
    /// As [`Operator::process`].
    fn on_watermark(
        &mut self,
        _watermark: Watermark,
        _context: &mut OperatorContext,
        _output: &mut dyn Output,
    ) -> Result<()> {
        Ok(())
    }

    /// When [`Operator::on_timer`] should run next, in processing time.
    fn next_timer(&self) -> Option<Millis> {
        None
    }

    /// Processing time `now` reached [`Operator::next_timer`].
    ///
    /// # Errors
    /// As [`Operator::process`].
    fn on_timer(&mut self, _now: Millis, _context: &mut OperatorContext, _output: &mut dyn Output) -> Result<()> {
        Ok(())
    }

    /// Work that must be before the cut: mini-batches emit, sinks flush and prepare (S4 b). The barrier leaves after it.
    ///
    /// # Errors
    /// Fails the attempt.
    fn before_barrier(
        &mut self,
        _barrier: &Barrier,
        _context: &mut OperatorContext,
        _output: &mut dyn Output,
    ) -> Result<()> {
        Ok(())
    }

    /// Synchronous part of a snapshot for operator state. Keyed state is frozen by the task itself.
    ///
    /// # Errors
    /// Fails the attempt.
    fn snapshot_lists(&mut self, _barrier: &Barrier) -> Result<BTreeMap<String, ListState>> {
        Ok(BTreeMap::new())
    }

    /// Checkpoint `id` is in the log: commit everything prepared at or below it, idempotently (R16). Never called for
    /// an intermediate savepoint (R18).
    ///
    /// # Errors
    /// Fails the attempt; the restart commits again.
    fn checkpoint_completed(&mut self, _id: CheckpointId, _context: &mut OperatorContext) -> Result<()> {
        Ok(())
    }

    /// Checkpoint `id` will not complete. What it prepared stays prepared for the next one.
    fn checkpoint_aborted(&mut self, _id: CheckpointId) {}

    /// All inputs ended, after the end watermark: emit what is left. A final checkpoint follows (F1).
    ///
    /// # Errors
    /// Fails the attempt.
    fn finish(&mut self, _context: &mut OperatorContext, _output: &mut dyn Output) -> Result<()> {
        Ok(())
    }
}

/// Where an operator's rows go: to the next operator of the chain or over the task's edges.
pub trait Output {
    /// Hands on a batch of at least one row; empty batches are dropped here. May block under back-pressure.
    ///
    /// # Errors
    /// Those of the operators behind, or cancellation.
    fn emit(&mut self, batch: RecordBatch) -> Result<()>;
}

/// Who and where this subtask is.
#[derive(Debug, Clone)]
pub struct SubtaskInfo {
    pub operator: OperatorId,
    /// For messages, as in `window(api, 1m)`.
    pub name: String,
    pub subtask: SubtaskId,
    pub parallelism: u32,
    pub max_parallelism: u32,
}

/// What the task gives an operator with each call.
pub struct OperatorContext {
    pub info: SubtaskInfo,
    /// Of keyed operators, with the tables that the factory declared.
    pub state: Option<KeyedState>,
    /// The operator's current watermark; not state, so [`Watermark::MIN`] after a restore (R13).
    pub watermark: Watermark,
    pub clock: Arc<dyn Clock>,
    pub metrics: Arc<OperatorMetrics>,
}

/// Counters that operators raise; the task reports them.
#[derive(Debug, Default)]
pub struct OperatorMetrics {
    late_records: AtomicU64,
    bad_records: AtomicU64,
}

impl OperatorMetrics {
    /// Counts records that came after their window had passed.
    pub fn add_late(&self, records: u64) {
        self.late_records.fetch_add(records, Ordering::Relaxed);
    }

    /// Counts bad records skipped or sent to the dead-letter output.
    pub fn add_bad(&self, records: u64) {
        self.bad_records.fetch_add(records, Ordering::Relaxed);
    }

    #[must_use]
    pub fn late(&self) -> u64 {
        self.late_records.load(Ordering::Relaxed)
    }

    #[must_use]
    pub fn bad(&self) -> u64 {
        self.bad_records.load(Ordering::Relaxed)
    }
}

/// Operator state that this subtask received on restore.
#[derive(Debug, Clone, Default)]
pub struct RestoredLists {
    /// `None` on a first start: restored-but-empty is something else (B81).
    pub from: Option<CheckpointId>,
    pub lists: BTreeMap<String, Vec<Vec<u8>>>,
}

impl RestoredLists {
    /// Items of a list; none if the snapshot has no such list.
    #[must_use]
    pub fn items(&self, name: &str) -> &[Vec<u8>] {
        self.lists.get(name).map_or(&[], Vec::as_slice)
    }
}

/// What one operator of a task is restored from.
#[derive(Debug, Clone, Default)]
pub struct OperatorRestore {
    pub lists: RestoredLists,
    /// Keyed state of all old subtasks whose key groups intersect ours.
    pub keyed: Vec<KeyedHandle>,
    /// Whether the job agreed to lose state that the operator does not declare any more.
    pub dropped: DroppedState,
    /// The operator had finished in all subtasks (F3).
    pub finished: bool,
}
