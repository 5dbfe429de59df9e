//! Results of a window: its slices read from state, merged if there are several, and put out.

use arrow::array::{Array, ArrayRef};
use streamkeeper_engine::{OperatorContext, Output};
use streamkeeper_state::{KeyPrefix, ScanOrder, Slot, Table};
use streamkeeper_types::{Millis, Result, RowKind};

use super::{
    aggregate::{Planned, SLICES, WindowAggregate},
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
        let last_use = if self.plan.lateness > 0 { After::Keep } else { After::Remove };
        if self.plan.slices() == 1 {
            self.fire_slice(end, last_use, context, output)?;
            if last_use == After::Keep {
                return Ok(());
            }
            self.slices.remove(&end);
            return self.end_distinct(end, context);
        }
        let first = self.first_slice(end);
        let slices: Vec<Millis> = self.slices.range(first..=end).copied().collect();
        let mut rows = SliceRows::default();
        let mut distinct = vec![SliceRows::default(); self.plan.tables.len()];
        for slice in slices {
            let after = if slice == first { last_use } else { After::Keep };
            let prefix = self.prefix(slice)?;
            for (number, distinct) in distinct.iter_mut().enumerate() {
                let rows = if number == SLICES { &mut rows } else { distinct };
                read_slice(table(context, number)?, &prefix, after, |keys, values| {
                    rows.push(keys, values);
                    Ok(())
                })?;
            }
        }
        if last_use == After::Remove {
            self.slices.remove(&first);
        }
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
    fn fire_slice(
        &self,
        end: Millis,
        after: After,
        context: &mut OperatorContext,
        output: &mut dyn Output,
    ) -> Result<()> {
        let prefix = self.prefix(end)?;
        let slices = keyed(context)?.table_mut(SLICES);
        read_slice(slices, &prefix, after, |keys, states| self.emit(end, keys[0].len(), &keys[1..], &states, output))
    }

    /// Ends the slice whose last window ends at `end`: the window takes no more rows.
    pub(super) fn end_last_slice(&mut self, end: Millis, context: &mut OperatorContext) -> Result<()> {
        let slice = self.first_slice(end);
        for number in 0..self.plan.tables.len() {
            let prefix = self.prefix(slice)?;
            remove_slice(table(context, number)?, prefix)?;
        }
        self.slices.remove(&slice);
        Ok(())
    }

    /// The first slice of the window that ends at `end`; it belongs to no later one.
    pub(super) fn first_slice(&self, end: Millis) -> Millis {
        end.saturating_sub((self.plan.slices() - 1) * self.plan.window.slide())
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
        columns.extend(self.finish_states(states)?);
        self.emit_results(end, columns, vec![RowKind::Insert; rows], output)
    }

    /// Results of the aggregates from their state columns.
    pub(super) fn finish_states(&self, states: &[ArrayRef]) -> Result<Vec<ArrayRef>> {
        let finish = |planned: &Planned| planned.accumulator.finish(&states[planned.column..]);
        self.plan.aggregates.iter().map(finish).collect()
    }

    /// Puts out rows of one window, from key columns and results.
    pub(super) fn emit_results(
        &self,
        end: Millis,
        mut columns: Vec<ArrayRef>,
        kinds: Vec<RowKind>,
        output: &mut dyn Output,
    ) -> Result<()> {
        let rows = kinds.len();
        let time = self.wall.passed(end.saturating_sub(1));
        let window = window_columns(&self.plan.data, vec![end; rows], vec![time; rows], self.plan.window.size())?;
        columns.extend(window);
        output.emit(match self.plan.lateness {
            0 => changelog::batch(&self.plan.output, columns)?,
            _ => {
                let kinds = kinds.into_iter().map(RowKind::code).collect();
                changelog::updating_batch(&self.plan.output, columns, kinds)?
            }
        })
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
