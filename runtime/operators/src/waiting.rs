//! Rows that wait in state until the watermark reaches their rowtime.
//!
//! A table ordered by rowtime: (rowtime, key, …) → row. The rowtimes that have rows are known in memory, so that a
//! watermark costs nothing when no row is due.

use std::{collections::BTreeSet, sync::Arc};

use arrow::{
    array::{ArrayRef, AsArray, Int64Array, RecordBatch},
    datatypes::Int64Type,
};
use streamkeeper_state::{KeyEncoder, KeyRows, Missing, ScanOrder, Slot, Table};
use streamkeeper_types::{Millis, Result, Watermark};

use crate::changelog::batch_error;

/// Rows that are given at a time, more or less.
const CHUNK: usize = 8192;

/// Rowtimes as the table's first key column.
pub(crate) fn rowtime_key(times: Vec<Millis>) -> ArrayRef {
    Arc::new(Int64Array::from(times))
}

/// Access to a table of waiting rows.
pub(crate) struct Waiting {
    encoder: KeyEncoder,
    keys: KeyRows,
    slots: Vec<Slot>,
    times: BTreeSet<Millis>,
}

/// Rows whose time has come, in the order of rowtime and then of the other key columns.
pub(crate) struct Due {
    /// Number of rows, at least 1.
    pub len: usize,
    pub keys: Vec<ArrayRef>,
    pub rows: Vec<ArrayRef>,
}

impl Waiting {
    pub(crate) fn new(encoder: KeyEncoder) -> Self {
        Self { encoder, keys: KeyRows::new(), slots: Vec::new(), times: BTreeSet::new() }
    }

    /// Learns which rowtimes wait after a restore.
    pub(crate) fn restore(&mut self, table: &mut Table) -> Result<()> {
        let prefixes = table.prefixes()?;
        let columns = table.spec().key().decode_prefixes(prefixes.iter())?;
        let times = columns.first().and_then(|c| c.as_primitive_opt::<Int64Type>());
        self.times.extend(times.ok_or_else(|| batch_error("waiting rows"))?.values());
        Ok(())
    }

    /// Puts all rows of `batch` under `keys`, whose first column are `times`.
    pub(crate) fn put(
        &mut self,
        table: &mut Table,
        keys: &[ArrayRef],
        times: &[Millis],
        batch: &RecordBatch,
    ) -> Result<()> {
        self.encoder.encode(keys, batch.num_rows(), &mut self.keys)?;
        table.lookup(&self.keys, Missing::Insert, &mut self.slots)?;
        let rows: Vec<u32> = (0_u32..).take(self.slots.len()).collect();
        for (index, column) in batch.columns().iter().enumerate() {
            table.scatter(index, column, &rows, &self.slots)?;
        }
        self.slots.iter().for_each(|slot| table.mark_dirty(*slot));
        self.times.extend(times);
        Ok(())
    }

    /// Removes the rows under `keys`, whose first column are `times`, where there are any.
    pub(crate) fn remove(&mut self, table: &mut Table, keys: &[ArrayRef], times: &[Millis]) -> Result<()> {
        self.encoder.encode(keys, times.len(), &mut self.keys)?;
        table.lookup(&self.keys, Missing::Skip, &mut self.slots)?;
        self.slots.iter().filter(|slot| !slot.is_none()).for_each(|slot| table.remove(*slot));
        Ok(())
    }

    /// Takes out the next rows whose rowtime is at or below `watermark`; `None` when no more are due.
    pub(crate) fn next_due(&mut self, table: &mut Table, watermark: Watermark) -> Result<Option<Due>> {
        let mut due = Vec::new();
        while due.len() < CHUNK {
            let Some(time) = self.times.first().copied().filter(|time| *time <= watermark.0) else { break };
            let prefix = self.encoder.prefix(&[rowtime_key(vec![time])], 0)?;
            let mut scan = table.scan(prefix, ScanOrder::Key);
            // One chunk each, since later ones make slots invalid: rows of one millisecond are few.
            table.next_chunk(&mut scan, usize::MAX, &mut self.slots)?;
            due.extend_from_slice(&self.slots);
            self.times.remove(&time);
        }
        if due.is_empty() {
            return Ok(None);
        }
        let keys = table.gather_keys(&due)?;
        let rows = (0..table.columns().len()).map(|c| table.gather(c, &due)).collect::<Result<Vec<_>>>()?;
        due.iter().for_each(|slot| table.remove(*slot));
        Ok(Some(Due { len: due.len(), keys, rows }))
    }
}
