//! A source that stops after a number of records until it is let on: so a crash happens at a known record.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use arrow::datatypes::SchemaRef;
use streamkeeper_engine::{Polled, SourceContext, SourceFactory, SourceReader, Split, SplitCoordinator, SubtaskInfo};
use streamkeeper_types::Result;

/// Counts the records of all gated sources of a job together and holds them back at a limit.
#[derive(Debug, Clone)]
pub struct Gate(Arc<Counters>);

#[derive(Debug)]
struct Counters {
    limit: AtomicU64,
    read: AtomicU64,
}

impl Gate {
    /// Lets nothing through yet.
    #[must_use]
    pub fn closed() -> Self {
        Self(Arc::new(Counters { limit: AtomicU64::new(0), read: AtomicU64::new(0) }))
    }

    /// Lets `more` records through.
    pub fn raise(&self, more: u64) {
        let raised = self.0.limit.load(Ordering::SeqCst).saturating_add(more);
        self.0.limit.store(raised, Ordering::SeqCst);
    }

    /// Records let through so far.
    #[must_use]
    pub fn read(&self) -> u64 {
        self.0.read.load(Ordering::SeqCst)
    }

    /// Whether the limit is reached.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.read() >= self.0.limit.load(Ordering::SeqCst)
    }
}

/// Another source behind a [`Gate`].
pub struct GatedSource {
    pub inner: Arc<dyn SourceFactory>,
    pub gate: Gate,
    /// Rows a batch; small ones put the limit where it is wanted.
    pub batch_rows: usize,
}

impl SourceFactory for GatedSource {
    fn schema(&self) -> SchemaRef {
        self.inner.schema()
    }

    fn coordinator(&self, parallelism: u32) -> Result<Box<dyn SplitCoordinator>> {
        self.inner.coordinator(parallelism)
    }

    fn reader(&self, subtask: &SubtaskInfo, mut context: SourceContext) -> Result<Box<dyn SourceReader>> {
        context.batch_rows = self.batch_rows;
        Ok(Box::new(GatedReader { inner: self.inner.reader(subtask, context)?, gate: self.gate.clone() }))
    }
}

struct GatedReader {
    inner: Box<dyn SourceReader>,
    gate: Gate,
}

impl SourceReader for GatedReader {
    fn add_splits(&mut self, splits: Vec<Split>) -> Result<()> {
        self.inner.add_splits(splits)
    }

    fn poll(&mut self) -> Result<Polled> {
        if self.gate.is_closed() {
            return Ok(Polled::Wait(Duration::from_millis(1)));
        }
        let polled = self.inner.poll()?;
        if let Polled::Batch { batch, .. } = &polled {
            self.gate.0.read.fetch_add(batch.num_rows() as u64, Ordering::SeqCst);
        }
        Ok(polled)
    }

    fn snapshot(&self) -> Vec<Split> {
        self.inner.snapshot()
    }

    fn before_barrier(&mut self, barrier: &streamkeeper_protocol::Barrier) -> Result<()> {
        self.inner.before_barrier(barrier)
    }

    fn extra_state(&self) -> Vec<Vec<u8>> {
        self.inner.extra_state()
    }

    fn restore_extra(&mut self, items: &[Vec<u8>]) -> Result<()> {
        self.inner.restore_extra(items)
    }

    fn report(&mut self) -> Option<Vec<u8>> {
        self.inner.report()
    }

    fn checkpoint_completed(&mut self, id: streamkeeper_types::CheckpointId) -> Result<()> {
        self.inner.checkpoint_completed(id)
    }

    fn progress(&self) -> (u64, Option<u64>) {
        self.inner.progress()
    }
}
