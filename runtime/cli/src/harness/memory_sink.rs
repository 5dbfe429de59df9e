//! A transactional sink in memory: a store that outlives the job, and the operator that writes to it in two phases.
//!
//! Stands for an outside system in tests: a crash of the job leaves the store as it was, prepared transactions included.

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use arrow::array::RecordBatch;
use parking_lot::Mutex;
use streamkeeper_engine::{Operator, OperatorContext, OperatorFactory, Output, RestoredLists, SubtaskInfo};
use streamkeeper_protocol::Barrier;
use streamkeeper_types::{
    CheckpointId, Code, Error, Result,
    snapshot::{ListMode, ListState},
};

/// The outside system: committed batches, and transactions that were prepared.
#[derive(Debug, Clone, Default)]
pub struct Store(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    transactions: Mutex<BTreeMap<u64, Vec<RecordBatch>>>,
    committed: Mutex<Committed>,
    next: AtomicU64,
}

#[derive(Debug, Default)]
struct Committed {
    ids: Vec<u64>,
    batches: Vec<RecordBatch>,
}

impl Store {
    /// Batches in the order of their commits.
    #[must_use]
    pub fn committed(&self) -> Vec<RecordBatch> {
        self.0.committed.lock().batches.clone()
    }

    fn prepare(&self, batches: Vec<RecordBatch>) -> u64 {
        let id = self.0.next.fetch_add(1, Ordering::SeqCst);
        self.0.transactions.lock().insert(id, batches);
        id
    }

    /// Idempotent: a transaction that is committed already changes nothing.
    fn commit(&self, id: u64) -> Result<()> {
        let mut committed = self.0.committed.lock();
        if committed.ids.contains(&id) {
            return Ok(());
        }
        let Some(batches) = self.0.transactions.lock().remove(&id) else {
            return Err(Error::new(Code::SinkFailed, format!("transaction {id} is not known")));
        };
        committed.ids.push(id);
        committed.batches.extend(batches);
        Ok(())
    }
}

/// Makes the sink's subtasks.
pub struct MemorySink {
    pub store: Store,
}

impl OperatorFactory for MemorySink {
    fn create(&self, _subtask: &SubtaskInfo) -> Result<Box<dyn Operator>> {
        Ok(Box::new(Writer { store: self.store.clone(), open: Vec::new(), prepared: Vec::new() }))
    }
}

struct Writer {
    store: Store,
    open: Vec<RecordBatch>,
    /// Transactions with the checkpoint that closed them.
    prepared: Vec<(CheckpointId, u64)>,
}

const COMMITTABLES: &str = "committables";

impl Operator for Writer {
    fn open(&mut self, restored: &RestoredLists, _context: &mut OperatorContext) -> Result<()> {
        for item in restored.items(COMMITTABLES) {
            let bytes: [u8; 8] = item
                .as_slice()
                .try_into()
                .map_err(|_| Error::new(Code::SnapshotCorrupt, "a committable of the memory sink has not 8 bytes"))?;
            self.store.commit(u64::from_be_bytes(bytes))?;
        }
        Ok(())
    }

    fn process(
        &mut self,
        _input: usize,
        batch: RecordBatch,
        _context: &mut OperatorContext,
        _output: &mut dyn Output,
    ) -> Result<()> {
        self.open.push(batch);
        Ok(())
    }

    fn before_barrier(
        &mut self,
        barrier: &Barrier,
        _context: &mut OperatorContext,
        _output: &mut dyn Output,
    ) -> Result<()> {
        if !self.open.is_empty() {
            self.prepared.push((barrier.id, self.store.prepare(std::mem::take(&mut self.open))));
        }
        Ok(())
    }

    fn snapshot_lists(&mut self, _barrier: &Barrier) -> Result<BTreeMap<String, ListState>> {
        let items = self.prepared.iter().map(|(_, id)| id.to_be_bytes().to_vec()).collect();
        Ok(BTreeMap::from([(COMMITTABLES.to_owned(), ListState { mode: ListMode::Split, items })]))
    }

    fn checkpoint_completed(&mut self, id: CheckpointId, _context: &mut OperatorContext) -> Result<()> {
        for (_, transaction) in self.prepared.extract_if(.., |(checkpoint, _)| *checkpoint <= id) {
            self.store.commit(transaction)?;
        }
        Ok(())
    }
}
