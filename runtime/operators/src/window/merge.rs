//! Merges the slices of a hopping window into one row for each key.

use arrow::{
    array::{Array, ArrayRef, UInt32Array, new_empty_array},
    compute::{concat, take},
    datatypes::DataType,
    row::{RowConverter, SortField},
};
use hashbrown::HashMap;
use streamkeeper_state::Slot;
use streamkeeper_types::{Code, Error, Result, ResultExt};

use super::aggregate::{Plan, Planned};

/// Rows of one table over several slices, in chunks of columns.
#[derive(Debug, Default, Clone)]
pub(super) struct SliceRows {
    keys: Vec<Vec<ArrayRef>>,
    values: Vec<Vec<ArrayRef>>,
}

impl SliceRows {
    pub(super) fn push(&mut self, keys: Vec<ArrayRef>, values: Vec<ArrayRef>) {
        self.keys.push(keys);
        self.values.push(values);
    }
}

/// One row for each key.
pub(super) struct Merged {
    /// Number of keys.
    pub len: usize,
    /// Without the slice's end.
    pub keys: Vec<ArrayRef>,
    pub states: Vec<ArrayRef>,
}

/// Merges rows by key; `None` without any row. `distinct` has the rows of each table of distinct values, by number.
pub(super) fn merge(plan: &Plan, rows: SliceRows, distinct: Vec<SliceRows>) -> Result<Option<Merged>> {
    let Some(slices_and_keys) = columns(&rows.keys)? else { return Ok(None) };
    let keys = &slices_and_keys[1..];
    let values = columns(&rows.values)?.unwrap_or_default();
    let mut groups = Groups::new(keys)?;
    let (of_row, first_rows) = groups.assign(keys, slices_and_keys[0].len())?;
    let count = first_rows.len();
    let first_rows = UInt32Array::from(first_rows);
    let merged_keys = keys.iter().map(|column| take(column, &first_rows, None)).collect::<Result<Vec<_>, _>>();
    let merged_keys = merged_keys.or_code(Code::Internal, merging)?;
    let mut states = Vec::with_capacity(values.len());
    for Planned { accumulator, column, distinct: table } in &plan.aggregates {
        match table {
            None => {
                let own = &values[*column..column + accumulator.fields().len()];
                states.extend(accumulator.merge(own, &of_row, count)?);
            }
            Some(table) => {
                // The same value may be in several slices: counts of slices do not add up, so it is folded anew.
                let value =
                    plan.tables[*table].key().fields().last().ok_or_else(|| Error::internal("no distinct value"))?;
                let (slots, argument) = distinct_values(&distinct[*table], &groups, value.data_type())?;
                states.extend(accumulator.fold(&slots, count, &argument)?);
            }
        }
    }
    Ok(Some(Merged { len: count, keys: merged_keys, states }))
}

fn merging() -> String {
    "slices of a window".to_owned()
}

/// The chunks as one.
fn columns(chunks: &[Vec<ArrayRef>]) -> Result<Option<Vec<ArrayRef>>> {
    let Some(first) = chunks.first() else { return Ok(None) };
    let column = |index: usize| {
        let parts: Vec<&dyn Array> = chunks.iter().map(|chunk| chunk[index].as_ref()).collect();
        concat(&parts).or_code(Code::Internal, merging)
    };
    (0..first.len()).map(column).collect::<Result<Vec<_>>>().map(Some)
}

/// Each value of each group once: the group's slot and the values.
fn distinct_values(rows: &SliceRows, groups: &Groups, value_type: &DataType) -> Result<(Vec<Slot>, ArrayRef)> {
    let Some(keys) = columns(&rows.keys)? else { return Ok((Vec::new(), new_empty_array(value_type))) };
    let (group, value) = (&keys[1..keys.len() - 1], &keys[keys.len() - 1]);
    let (_, first_rows) = Groups::new(&keys[1..])?.assign(&keys[1..], value.len())?;
    let first_rows = UInt32Array::from(first_rows);
    let of_group = groups.find(group, value.len())?;
    let slots = first_rows.values().iter().map(|row| of_group[*row as usize]).collect();
    let values = take(value, &first_rows, None).or_code(Code::Internal, merging)?;
    Ok((slots, values))
}

/// Numbers keys in the order of their first coming.
struct Groups {
    converter: RowConverter,
    numbers: HashMap<Box<[u8]>, u32>,
}

impl Groups {
    fn new(columns: &[ArrayRef]) -> Result<Self> {
        let fields = columns.iter().map(|column| SortField::new(column.data_type().clone())).collect();
        let converter = RowConverter::new(fields).or_code(Code::Internal, merging)?;
        Ok(Self { converter, numbers: HashMap::new() })
    }

    /// Numbers the keys of `rows` rows as slots. Returns also the first row of each number.
    fn assign(&mut self, columns: &[ArrayRef], rows: usize) -> Result<(Vec<Slot>, Vec<u32>)> {
        if columns.is_empty() {
            return Ok((vec![Slot(0); rows], vec![0]));
        }
        let rows = self.converter.convert_columns(columns).or_code(Code::Internal, merging)?;
        let mut slots = Vec::with_capacity(rows.num_rows());
        let mut first_rows = Vec::new();
        for (index, row) in (0_u32..).zip(&rows) {
            let number = match self.numbers.get(row.as_ref()) {
                Some(number) => *number,
                None => {
                    #[expect(clippy::cast_possible_truncation, reason = "no more keys than rows")]
                    let number = first_rows.len() as u32;
                    self.numbers.insert(row.as_ref().into(), number);
                    first_rows.push(index);
                    number
                }
            };
            slots.push(Slot(number));
        }
        Ok((slots, first_rows))
    }

    /// Numbers of keys that were assigned before.
    fn find(&self, columns: &[ArrayRef], rows: usize) -> Result<Vec<Slot>> {
        if columns.is_empty() {
            return Ok(vec![Slot(0); rows]);
        }
        let rows = self.converter.convert_columns(columns).or_code(Code::Internal, merging)?;
        let find = |row: arrow::row::Row<'_>| self.numbers.get(row.as_ref()).map(|number| Slot(*number));
        let slots = rows.iter().map(find).collect::<Option<Vec<_>>>();
        slots.ok_or_else(|| Error::internal("distinct values of a group that does not exist"))
    }
}
