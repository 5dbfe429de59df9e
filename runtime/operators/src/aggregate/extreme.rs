//! MIN and MAX over rows that may be taken back: all values of a group with their counts, in key order.
//!
//! Values are compared by their key bytes, which have SQL's order, so that one loop serves every type. When the best
//! value leaves a group, the next one comes from a scan: of one row for MIN, of the group's values for MAX.

use std::sync::Arc;

use arrow::{
    array::{Array, ArrayRef, RecordBatch, new_empty_array, new_null_array},
    compute::{concat, interleave},
    datatypes::{DataType, Schema},
};
use hashbrown::HashMap;
use streamkeeper_state::{KeyEncoder, KeyRows, KeySchema, KeyedState, ScanOrder, Slot, Table, TableSpec, ValueField};
use streamkeeper_types::{Code, Error, Result, ResultExt};

use super::{
    accumulator::{Accumulator, Best},
    fold::{Rows, Step},
    spec::AggregateSpec,
    value_rows::{ValueRows, value_field},
};
use crate::{changelog::batch_error, keys::KeyColumns};

/// One aggregate's table (group, value) → count.
pub(crate) struct OrderedValues {
    table: usize,
    values: ValueRows,
    /// Keys that the groups' best values would have in the table, as they were before the batch.
    best_keys: KeyRows,
    best_encoder: KeyEncoder,
    /// Best value of each group that the batch touched; `None` for a group without value.
    best: HashMap<Slot, Option<Place>>,
}

/// Where a value lies: index of the source for `interleave`, and row.
type Place = (usize, usize);

const STATE: usize = 0;
const BATCH: usize = 1;
const SCANNED: usize = 2;
const NULL: Place = (3, 0);

/// Values that scans found.
#[derive(Default)]
struct Scanned {
    keys: Vec<Vec<u8>>,
    values: Vec<ArrayRef>,
}

impl OrderedValues {
    /// The table.
    pub(crate) fn table(name: String, keys: &KeyColumns, spec: &AggregateSpec, input: &Schema) -> Result<TableSpec> {
        let mut fields = keys.fields().to_vec();
        let group = fields.len();
        fields.push(value_field(spec, input)?);
        let key = KeySchema::with_layout(fields, 0..group, group)?;
        Ok(TableSpec::new(name, key, vec![ValueField::zero("count", DataType::Int64)])?.with_alias(&spec.name))
    }

    /// Counts in table number `table`.
    pub(crate) fn new(table: usize, encoder: KeyEncoder) -> Self {
        Self {
            table,
            values: ValueRows::new(encoder.clone()),
            best_keys: KeyRows::new(),
            best_encoder: encoder,
            best: HashMap::new(),
        }
    }

    /// Updates the values, and the best of each group, which lies in this table and value column. Returns the best
    /// before and after each row, rows 2i and 2i + 1.
    #[expect(clippy::too_many_arguments, reason = "one batch with all that belongs to it")]
    pub(crate) fn update(
        &mut self,
        accumulator: &Accumulator,
        (groups, column): (usize, usize),
        state: &mut KeyedState,
        group: &[ArrayRef],
        batch: &RecordBatch,
        rows: Rows<'_>,
        signs: &[i8],
    ) -> Result<ArrayRef> {
        let name = &accumulator.spec.name;
        let best = accumulator.best().ok_or_else(|| batch_error(name))?;
        let argument = accumulator.spec.argument.map(|index| batch.column(index)).ok_or_else(|| batch_error(name))?;
        let before = state.table_mut(groups).gather(column, rows.slots)?;
        let mut columns = group.to_vec();
        columns.push(Arc::clone(&before));
        self.best_encoder.encode(&columns, batch.num_rows(), &mut self.best_keys)?;

        let table = state.table_mut(self.table);
        self.values.look_up(table, group, argument, signs)?;
        let mut scanned = Scanned::default();
        let picks = self.follow(best, table, group, &before, rows, signs, &mut scanned)?;

        let found: Vec<&dyn Array> = scanned.values.iter().map(AsRef::as_ref).collect();
        let found = match found.is_empty() {
            true => new_empty_array(argument.data_type()),
            false => concat(&found).or_code(Code::Internal, || name.clone())?,
        };
        let null = new_null_array(argument.data_type(), 1);
        let history =
            interleave(&[&before, argument, &found, &null], &picks).or_code(Code::Internal, || name.clone())?;
        self.store(state.table_mut(groups), column, rows, &history)?;
        Ok(history)
    }

    /// Follows each group's best value through the batch.
    #[expect(clippy::too_many_arguments, reason = "one batch with all that belongs to it")]
    fn follow(
        &mut self,
        best: Best,
        table: &mut Table,
        group: &[ArrayRef],
        before: &ArrayRef,
        rows: Rows<'_>,
        signs: &[i8],
        scanned: &mut Scanned,
    ) -> Result<Vec<Place>> {
        self.best.clear();
        let mut picks = Vec::with_capacity(2 * rows.slots.len());
        let mut values = self.values.rows().enumerate().peekable();
        for (row, slot) in rows.slots.iter().enumerate() {
            let current = match (rows.steps[row], self.best.get(slot)) {
                (Step::Begin, _) => None,
                (_, Some(current)) => *current,
                (_, None) => before.is_valid(row).then_some((STATE, row)),
            };
            let mut after = current;
            if let Some((index, (_, value))) = values.next_if(|(_, (of_row, _))| *of_row as usize == row) {
                let key = self.values.key(index);
                let counts = table.columns_mut()[0].as_i64_mut().ok_or_else(|| batch_error("count"))?;
                let count = &mut counts.values[value.index()];
                if signs[row] > 0 {
                    *count += 1;
                    table.mark_dirty(value);
                    let is_better = |current| best.prefers(key.cmp(self.key_of(current, scanned)));
                    if current.is_none_or(is_better) {
                        after = Some((BATCH, row));
                    }
                } else if *count > 1 {
                    *count -= 1;
                    table.mark_dirty(value);
                } else {
                    table.remove(value);
                    if current.is_some_and(|current| self.key_of(current, scanned) == key) {
                        after = self.scan(best, table, group, row, scanned)?;
                    }
                }
            }
            self.best.insert(*slot, after);
            picks.extend([current.unwrap_or(NULL), after.unwrap_or(NULL)]);
        }
        Ok(picks)
    }

    fn key_of<'a>(&'a self, place: Place, scanned: &'a Scanned) -> &'a [u8] {
        match place {
            (STATE, row) => self.best_keys.key(row),
            (BATCH, row) => self.values.key_of_row(row),
            (_, index) => &scanned.keys[index],
        }
    }

    /// The best value that is left in the group of `row`.
    fn scan(
        &self,
        best: Best,
        table: &mut Table,
        group: &[ArrayRef],
        row: usize,
        scanned: &mut Scanned,
    ) -> Result<Option<Place>> {
        let prefix = self.values.encoder().prefix(group, row)?;
        // One chunk only: later ones would make the batch's slots invalid.
        let (order, limit) = match best {
            Best::Least => (ScanOrder::Key, 1),
            Best::Greatest => (ScanOrder::Any, usize::MAX),
        };
        let mut scan = table.scan(prefix, order);
        let mut slots = Vec::new();
        table.next_chunk(&mut scan, limit, &mut slots)?;
        let found = match best {
            Best::Least => slots.first().copied(),
            Best::Greatest => slots.iter().copied().max_by(|a, b| table.key_bytes(*a).cmp(table.key_bytes(*b))),
        };
        let Some(found) = found else { return Ok(None) };
        let value = table.gather_keys(&[found])?.pop().ok_or_else(|| Error::internal("a key without columns"))?;
        scanned.keys.push(table.key_bytes(found).to_vec());
        scanned.values.push(value);
        Ok(Some((SCANNED, scanned.keys.len() - 1)))
    }

    /// Writes the best values after the batch.
    fn store(&self, groups: &mut Table, column: usize, rows: Rows<'_>, history: &ArrayRef) -> Result<()> {
        // The last row of a group comes last and wins.
        let last: Vec<u32> = (0_u32..).take(rows.slots.len()).map(|row| 2 * row + 1).collect();
        groups.scatter(column, history, &last, rows.slots)
    }
}
