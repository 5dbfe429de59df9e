//! Keep first by rowtime: a key's earliest row waits until the watermark says that no earlier one can come.

use std::{collections::BTreeMap, sync::Arc};

use arrow::{
    array::{ArrayRef, RecordBatch, UInt32Array},
    compute::{take, take_record_batch},
};
use streamkeeper_engine::{Operator, OperatorContext, Output, RestoredLists};
use streamkeeper_protocol::Barrier;
use streamkeeper_state::{KeyEncoder, KeyRows, Missing, Slot, Table};
use streamkeeper_types::{Code, Millis, Result, ResultExt, Watermark, snapshot::ListState};

use super::{KEPT, Plan, WAITING};
use crate::{
    changelog::{self, batch_error},
    latest::Latest,
    state::table,
    time::{ROWTIME, read_millis},
    waiting::{Waiting, rowtime_key},
    watermark::SeenWatermark,
};

pub(super) struct KeepFirstByRowtime {
    plan: Arc<Plan>,
    rowtime: usize,
    encoder: KeyEncoder,
    keys: KeyRows,
    slots: Vec<Slot>,
    times: Vec<Millis>,
    /// Earliest row of each key in the batch, if it is the earliest of all.
    earliest: Latest,
    watermark: SeenWatermark,
    waiting: Waiting,
}

/// A waiting row that an earlier one replaces: a row of the batch with its key, and its rowtime.
type Replaced = (u32, Millis);

impl KeepFirstByRowtime {
    pub(super) fn new(plan: Arc<Plan>, rowtime: usize, encoder: KeyEncoder, waiting: KeyEncoder) -> Self {
        Self {
            plan,
            rowtime,
            encoder,
            keys: KeyRows::new(),
            slots: Vec::new(),
            times: Vec::new(),
            earliest: Latest::default(),
            watermark: SeenWatermark::default(),
            waiting: Waiting::new(waiting),
        }
    }
}

impl Operator for KeepFirstByRowtime {
    fn open(&mut self, restored: &RestoredLists, context: &mut OperatorContext) -> Result<()> {
        self.watermark.restore(restored)?;
        self.waiting.restore(table(context, WAITING)?)
    }

    fn process(
        &mut self,
        _input: usize,
        batch: RecordBatch,
        context: &mut OperatorContext,
        _output: &mut dyn Output,
    ) -> Result<()> {
        read_millis(batch.column(self.rowtime), &mut self.times)?;
        let key_columns = self.plan.keys.of(&batch);
        self.encoder.encode(&key_columns, batch.num_rows(), &mut self.keys)?;
        let kept = table(context, KEPT)?;
        kept.lookup(&self.keys, Missing::Insert, &mut self.slots)?;
        let (late, replaced) = self.find_earliest(kept)?;
        context.metrics.add_late(late);

        let waiting = table(context, WAITING)?;
        let (rows, times): (Vec<u32>, Vec<Millis>) = replaced.into_iter().unzip();
        if !rows.is_empty() {
            let keys = waiting_keys(&key_columns, rows, times.clone())?;
            self.waiting.remove(waiting, &keys, &times)?;
        }
        let rows: Vec<u32> = self.earliest.rows().map(|(_, row)| row).collect();
        if rows.is_empty() {
            return Ok(());
        }
        let times: Vec<Millis> = rows.iter().map(|row| self.times[*row as usize]).collect();
        let earliest = take_record_batch(&batch, &UInt32Array::from(rows.clone()));
        let earliest = earliest.or_code(Code::Internal, || "first rows".to_owned())?;
        let keys = waiting_keys(&key_columns, rows, times.clone())?;
        self.waiting.put(waiting, &keys, &times, &earliest)
    }

    fn on_watermark(
        &mut self,
        watermark: Watermark,
        context: &mut OperatorContext,
        output: &mut dyn Output,
    ) -> Result<()> {
        self.watermark.advance(watermark);
        while let Some(due) = self.waiting.next_due(table(context, WAITING)?, watermark)? {
            let kept = table(context, KEPT)?;
            self.encoder.encode(&due.keys[1..], due.len, &mut self.keys)?;
            kept.lookup(&self.keys, Missing::Insert, &mut self.slots)?;
            let pending = kept.columns_mut()[0].as_i64_mut().ok_or_else(|| batch_error(ROWTIME))?;
            self.slots.iter().for_each(|slot| pending.valid[slot.index()] = false);
            self.slots.iter().for_each(|slot| kept.mark_dirty(*slot));
            let columns = self.plan.numbered(due.rows, self.slots.len());
            output.emit(changelog::batch(&self.plan.output, columns)?)?;
        }
        Ok(())
    }

    fn snapshot_lists(&mut self, _barrier: &Barrier) -> Result<BTreeMap<String, ListState>> {
        Ok(self.watermark.snapshot())
    }
}

impl KeepFirstByRowtime {
    /// Finds the rows that are the earliest of their key and notes their rowtimes. Returns the number of late rows, and
    /// the waiting rows that are no longer the earliest.
    fn find_earliest(&mut self, kept: &mut Table) -> Result<(u64, Vec<Replaced>)> {
        self.earliest.begin();
        let mut late = 0;
        let mut replaced = Vec::new();
        for (row, (slot, time)) in (0_u32..).zip(self.slots.iter().zip(&self.times)) {
            if *time <= self.watermark.get() {
                late += 1;
                continue;
            }
            let exists = kept.exists(*slot);
            let pending = kept.columns_mut()[0].as_i64_mut().ok_or_else(|| batch_error(ROWTIME))?;
            let (value, valid) = (&mut pending.values[slot.index()], &mut pending.valid[slot.index()]);
            let was_put_out = exists && !*valid;
            if was_put_out || (*valid && *time >= *value) {
                continue;
            }
            if *valid && self.earliest.row(*slot).is_none() {
                replaced.push((row, *value));
            }
            (*value, *valid) = (*time, true);
            kept.mark_dirty(*slot);
            self.earliest.replace(*slot, row);
        }
        Ok((late, replaced))
    }
}

/// Keys of waiting rows: `times`, and the keys of `rows`.
fn waiting_keys(key_columns: &[ArrayRef], rows: Vec<u32>, times: Vec<Millis>) -> Result<Vec<ArrayRef>> {
    let rows = UInt32Array::from(rows);
    let taken = key_columns.iter().map(|column| take(column, &rows, None)).collect::<Result<Vec<_>, _>>();
    let taken = taken.or_code(Code::Internal, || "keys of waiting rows".to_owned())?;
    Ok(std::iter::once(rowtime_key(times)).chain(taken).collect())
}
