//! A consistent view of a database that outlives the call that made it.

use std::{mem::ManuallyDrop, ops::ControlFlow, sync::Arc};

use rocksdb::{ColumnFamily, DB, ReadOptions, SnapshotWithThreadMode};
use streamkeeper_state::{ColdView, RowVisitor};
use streamkeeper_types::Result;

use crate::{
    options::bounded,
    store::{Inner, failed},
};

/// A snapshot together with the database that it is of.
pub(crate) struct View {
    snapshot: ManuallyDrop<SnapshotWithThreadMode<'static, DB>>,
    /// Dropped after the snapshot.
    inner: Arc<Inner>,
}

impl View {
    pub(crate) fn new(inner: Arc<Inner>) -> Self {
        let snapshot = inner.db.snapshot();
        // SAFETY: the snapshot borrows the database in `inner`, which lies behind an `Arc` and so does not move, and
        // which this struct keeps until the snapshot is dropped.
        let snapshot = unsafe {
            std::mem::transmute::<SnapshotWithThreadMode<'_, DB>, SnapshotWithThreadMode<'static, DB>>(snapshot)
        };
        Self { snapshot: ManuallyDrop::new(snapshot), inner }
    }
}

impl Drop for View {
    fn drop(&mut self) {
        // SAFETY: dropped once, here, and before `inner`.
        unsafe { ManuallyDrop::drop(&mut self.snapshot) }
    }
}

impl ColdView for View {
    fn scan(&self, table: usize, from: &[u8], to: &[u8], row: &mut RowVisitor<'_>) -> Result<()> {
        let mut options = bounded(from, to);
        options.fill_cache(false);
        options.set_snapshot(&self.snapshot);
        scan(&self.inner.db, self.inner.family(table)?, options, from, row)
    }
}

/// Visits the rows within the options' bounds.
pub(crate) fn scan(
    db: &DB,
    family: &ColumnFamily,
    options: ReadOptions,
    from: &[u8],
    row: &mut RowVisitor<'_>,
) -> Result<()> {
    let mut rows = db.raw_iterator_cf_opt(family, options);
    rows.seek(from);
    while let Some((key, value)) = rows.item() {
        if row(key, value) == ControlFlow::Break(()) {
            return Ok(());
        }
        rows.next();
    }
    rows.status().map_err(|error| failed("reading state", &error))
}
