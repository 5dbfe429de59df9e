//! Rows that come after their window has fired, within the allowed lateness: its result is put out again.
//!
//! Such rows are few, so that results are read one by one, before and after the batch.

use std::collections::BTreeMap;

use arrow::{
    array::{ArrayRef, RecordBatch},
    compute::concat,
};
use streamkeeper_engine::{OperatorContext, Output};
use streamkeeper_state::{KeyRows, Missing, Slot};
use streamkeeper_types::{Code, Millis, Result, ResultExt, RowKind};

use super::{
    aggregate::{SLICES, WindowAggregate},
    end_key,
    merge::{SliceRows, merge},
};
use crate::state::table;

/// One group of a window that has fired.
pub(super) struct Fired {
    window: Millis,
    /// The group's key columns, one row.
    key: Vec<ArrayRef>,
    /// Its results before the batch; `None` if it had no rows.
    before: Option<Vec<ArrayRef>>,
}

impl WindowAggregate {
    /// The groups that rows of the batch will change although their windows have fired.
    pub(super) fn results_before(&mut self, batch: &RecordBatch, context: &mut OperatorContext) -> Result<Vec<Fired>> {
        // The first window of a slice is over first.
        if self.plan.lateness == 0 || !self.ends.iter().any(|end| self.is_over(*end)) {
            return Ok(Vec::new());
        }
        let columns = self.plan.keys.of(batch);
        // The bytes of a window's end and a key name a group of a window.
        let mut groups: BTreeMap<Box<[u8]>, (Millis, usize)> = BTreeMap::new();
        let mut encoded = KeyRows::new();
        for number in 0..self.plan.slices() {
            let later = number * self.plan.window.slide();
            let windows: Vec<Millis> = self.ends.iter().map(|end| end.saturating_add(later)).collect();
            let mut named = vec![end_key(windows.clone())];
            named.extend(columns.iter().cloned());
            self.encoder.encode(&named, batch.num_rows(), &mut encoded)?;
            for (row, window) in windows.into_iter().enumerate() {
                if self.is_over(window) && !self.is_expired(window) {
                    groups.entry(encoded.key(row).into()).or_insert((window, row));
                }
            }
        }
        let fired = |(window, row): (Millis, usize)| {
            let key: Vec<ArrayRef> = columns.iter().map(|column| column.slice(row, 1)).collect();
            let before = self.result(window, &key, context)?;
            Ok(Fired { window, key, before })
        };
        groups.into_values().map(fired).collect()
    }

    /// Puts out what the batch changed.
    pub(super) fn put_out_again(
        &mut self,
        fired: Vec<Fired>,
        context: &mut OperatorContext,
        output: &mut dyn Output,
    ) -> Result<()> {
        for Fired { window, key, before } in fired {
            let Some(after) = self.result(window, &key, context)? else { continue };
            let Some(before) = before else {
                let columns = key.into_iter().chain(after).collect();
                self.emit_results(window, columns, vec![RowKind::Insert], output)?;
                continue;
            };
            if before == after {
                continue;
            }
            let twice = |old: &ArrayRef, new: &ArrayRef| concat(&[old.as_ref(), new.as_ref()]);
            let keys = key.iter().map(|column| twice(column, column));
            let results = before.iter().zip(&after).map(|(old, new)| twice(old, new));
            let columns = keys.chain(results).collect::<Result<Vec<_>, _>>();
            let columns = columns.or_code(Code::Internal, || "the results of a window".to_owned())?;
            self.emit_results(window, columns, vec![RowKind::UpdateBefore, RowKind::UpdateAfter], output)?;
        }
        Ok(())
    }

    /// Results of one group in one window, one row; `None` if it has no rows there.
    fn result(
        &mut self,
        window: Millis,
        key: &[ArrayRef],
        context: &mut OperatorContext,
    ) -> Result<Option<Vec<ArrayRef>>> {
        let slices: Vec<Millis> = self.slices.range(self.first_slice(window)..=window).copied().collect();
        let mut rows = SliceRows::default();
        let (mut encoded, mut slots): (KeyRows, Vec<Slot>) = (KeyRows::new(), Vec::new());
        for slice in slices {
            let mut columns = vec![end_key(vec![slice])];
            columns.extend_from_slice(key);
            self.encoder.encode(&columns, 1, &mut encoded)?;
            let table = table(context, SLICES)?;
            table.lookup(&encoded, Missing::Skip, &mut slots)?;
            if slots.iter().any(|slot| slot.is_none()) {
                continue;
            }
            let values = (0..table.columns().len()).map(|c| table.gather(c, &slots)).collect::<Result<Vec<_>>>()?;
            if self.plan.slices() == 1 {
                return self.finish_states(&values).map(Some);
            }
            rows.push(table.gather_keys(&slots)?, values);
        }
        match merge(&self.plan, rows, Vec::new())? {
            Some(merged) => self.finish_states(&merged.states).map(Some),
            None => Ok(None),
        }
    }
}
