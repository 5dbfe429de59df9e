//! A two-phase sink, and the world outside that it commits to.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use arrow::record_batch::RecordBatch;
use parking_lot::Mutex;
use streamkeeper_engine::{Operator, OperatorContext, OperatorFactory, Output, RestoredLists, SubtaskInfo};
use streamkeeper_protocol::Barrier;
use streamkeeper_types::{
    CheckpointId, Result,
    snapshot::{ListMode, ListState},
};

use crate::{counting::rows, mortal::Fuse};

/// Outlives every run: transactions by name, committed or not. Committing twice changes nothing.
#[derive(Debug, Clone)]
pub struct Outside {
    transactions: Arc<Mutex<Transactions>>,
    /// A dead process changes nothing here.
    fuse: Fuse,
}

#[derive(Debug, Default)]
struct Transactions {
    next: u64,
    prepared: BTreeMap<u64, Vec<[i64; 3]>>,
    committed: BTreeSet<u64>,
}

impl Outside {
    pub fn new(fuse: Fuse) -> Self {
        Self { transactions: Arc::default(), fuse }
    }

    fn prepare(&self, rows: Vec<[i64; 3]>) -> u64 {
        self.fuse.step();
        let mut all = self.transactions.lock();
        all.next += 1;
        let name = all.next;
        all.prepared.insert(name, rows);
        name
    }

    fn commit(&self, name: u64) {
        if self.fuse.step() {
            self.transactions.lock().committed.insert(name);
        }
    }

    /// All committed rows, sorted.
    pub fn rows(&self) -> Vec<[i64; 3]> {
        let all = self.transactions.lock();
        let mut rows: Vec<[i64; 3]> = all.committed.iter().flat_map(|name| all.prepared[name].clone()).collect();
        rows.sort_unstable();
        rows
    }
}

impl OperatorFactory for Outside {
    fn create(&self, _subtask: &SubtaskInfo) -> Result<Box<dyn Operator>> {
        Ok(Box::new(Sink { outside: self.clone(), open: Vec::new(), prepared: Vec::new() }))
    }
}

struct Sink {
    outside: Outside,
    open: Vec<[i64; 3]>,
    /// Transactions that no completed checkpoint is known to hold, with the checkpoint that prepared them.
    prepared: Vec<(CheckpointId, u64)>,
}

impl Operator for Sink {
    fn open(&mut self, restored: &RestoredLists, _context: &mut OperatorContext) -> Result<()> {
        for item in restored.items("prepared") {
            self.outside.commit(u64::from_be_bytes(item.as_slice().try_into().unwrap()));
        }
        Ok(())
    }

    fn process(&mut self, _: usize, batch: RecordBatch, _: &mut OperatorContext, _: &mut dyn Output) -> Result<()> {
        self.open.extend(rows(&batch));
        Ok(())
    }

    fn before_barrier(&mut self, barrier: &Barrier, _: &mut OperatorContext, _: &mut dyn Output) -> Result<()> {
        if !self.open.is_empty() {
            let name = self.outside.prepare(std::mem::take(&mut self.open));
            self.prepared.push((barrier.id, name));
        }
        Ok(())
    }

    fn snapshot_lists(&mut self, _barrier: &Barrier) -> Result<BTreeMap<String, ListState>> {
        let items = self.prepared.iter().map(|(_, name)| name.to_be_bytes().to_vec()).collect();
        Ok(BTreeMap::from([("prepared".to_owned(), ListState { mode: ListMode::Split, items })]))
    }

    fn checkpoint_completed(&mut self, id: CheckpointId, _: &mut OperatorContext) -> Result<()> {
        let (due, later) = std::mem::take(&mut self.prepared).into_iter().partition(|(prepared, _)| *prepared <= id);
        self.prepared = later;
        let due: Vec<(CheckpointId, u64)> = due;
        due.iter().for_each(|(_, name)| self.outside.commit(*name));
        Ok(())
    }
}
