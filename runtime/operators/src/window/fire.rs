//! Results of a window: its slices read from state, merged if there are several, and put out.

use arrow::array::{Array, ArrayRef};
use streamkeeper_engine::{OperatorContext, Output};
use streamkeeper_state::{KeyPrefix, ScanOrder, Slot, Table};
use streamkeeper_types::{Millis, Result};

use super::{
    aggregate::{SLICES, WindowAggregate},
    end_key,
    merge::{SliceRows, merge},
    window_columns,
};
use crate::{
    changelog,
    state::{keyed, table},
};

/// Rows that are read and put out at a time.
const CHUNK: usize = 8192;

/// Whether a slice belongs to a later window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum After {
    Keep,
    Remove,
}

impl WindowAggregate {
    /// Puts out the window that ends at `end`, and ends the slice that has no later window.
    pub(super) fn fire(&mut self, end: Millis, context: &mut OperatorContext, output: &mut dyn Output) -> Result<()> {
        if self.plan.slices() == 1 {
            self.fire_slice(end, context, output)?;
            self.slices.remove(&end);
            return self.end_distinct(end, context);
        }
        let first = end.saturating_sub(self.plan.window.size() - self.plan.window.slide());
        let slices: Vec<Millis> = self.slices.range(first..=end).copied().collect();
        let mut rows = SliceRows::default();
        let mut distinct = vec![SliceRows::default(); self.plan.tables.len()];
        for slice in slices {
            let after = if slice == first { After::Remove } else { After::Keep };
            let prefix = self.prefix(slice)?;
            for (number, distinct) in distinct.iter_mut().enumerate() {
                let rows = if number == SLICES { &mut rows } else { distinct };
                read_slice(table(context, number)?, &prefix, after, |keys, values| {
                    rows.push(keys, values);
                    Ok(())
                })?;
            }
        }
        self.slices.remove(&first);
        let Some(merged) = merge(&self.plan, rows, distinct)? else { return Ok(()) };
        for from in (0..merged.len).step_by(CHUNK) {
            let len = CHUNK.min(merged.len - from);
            let part = |column: &ArrayRef| column.slice(from, len);
            let keys: Vec<ArrayRef> = merged.keys.iter().map(part).collect();
            let states: Vec<ArrayRef> = merged.states.iter().map(part).collect();
            self.emit(end, len, &keys, &states, output)?;
        }
        Ok(())
    }

    /// A window of one slice: the slice's rows are its results.
    fn fire_slice(&self, end: Millis, context: &mut OperatorContext, output: &mut dyn Output) -> Result<()> {
        let prefix = self.prefix(end)?;
        let slices = keyed(context)?.table_mut(SLICES);
        read_slice(slices, &prefix, After::Remove, |keys, states| {
            self.emit(end, keys[0].len(), &keys[1..], &states, output)
        })
    }

    fn end_distinct(&self, end: Millis, context: &mut OperatorContext) -> Result<()> {
        for number in 1..self.plan.tables.len() {
            let prefix = self.prefix(end)?;
            remove_slice(table(context, number)?, prefix)?;
        }
        Ok(())
    }

    /// All rows of a slice, in any of the tables: each begins with the slice's end.
    fn prefix(&self, slice: Millis) -> Result<KeyPrefix> {
        self.encoder.prefix(&[end_key(vec![slice])], 0)
    }

    fn emit(
        &self,
        end: Millis,
        rows: usize,
        keys: &[ArrayRef],
        states: &[ArrayRef],
        output: &mut dyn Output,
    ) -> Result<()> {
        let mut columns: Vec<ArrayRef> = keys.to_vec();
        for planned in &self.plan.aggregates {
            columns.push(planned.accumulator.finish(&states[planned.column..])?);
        }
        let time = self.wall.passed(end.saturating_sub(1));
        let window = window_columns(&self.plan.output, vec![end; rows], vec![time; rows], self.plan.window.size())?;
        columns.extend(window);
        output.emit(changelog::batch(&self.plan.output, columns)?)
    }
}

/// Gives a slice's rows to `visit`, key columns and value columns.
fn read_slice(
    table: &mut Table,
    prefix: &KeyPrefix,
    after: After,
    mut visit: impl FnMut(Vec<ArrayRef>, Vec<ArrayRef>) -> Result<()>,
) -> Result<()> {
    let mut scan = table.scan(prefix.clone(), ScanOrder::Any);
    let mut slots: Vec<Slot> = Vec::new();
    while table.next_chunk(&mut scan, CHUNK, &mut slots)? {
        let keys = table.gather_keys(&slots)?;
        let values = (0..table.columns().len()).map(|c| table.gather(c, &slots)).collect::<Result<Vec<_>>>()?;
        if after == After::Remove {
            slots.iter().for_each(|slot| table.remove(*slot));
        }
        visit(keys, values)?;
    }
    Ok(())
}

fn remove_slice(table: &mut Table, prefix: KeyPrefix) -> Result<()> {
    let mut scan = table.scan(prefix, ScanOrder::Any);
    let mut slots: Vec<Slot> = Vec::new();
    while table.next_chunk(&mut scan, CHUNK, &mut slots)? {
        slots.iter().for_each(|slot| table.remove(*slot));
    }
    Ok(())
}
