//! The rows of a batch in a table (…group, value) → count.

use arrow::{
    array::{ArrayRef, UInt32Array},
    compute::take,
    datatypes::{FieldRef, Schema},
};
use streamkeeper_state::{KeyEncoder, KeyRows, Missing, Slot, Table};
use streamkeeper_types::{Code, Error, Result, ResultExt};

use super::spec::AggregateSpec;
use crate::changelog::batch_error;

/// Field of the value, the last of the table's key.
pub(crate) fn value_field(spec: &AggregateSpec, input: &Schema) -> Result<FieldRef> {
    let argument = spec.argument.and_then(|index| input.fields().get(index));
    argument.cloned().ok_or_else(|| Error::internal(format!("{}: no argument to tell apart", spec.name)))
}

/// Places of a batch's values, in buffers that are used again.
pub(crate) struct ValueRows {
    encoder: KeyEncoder,
    keys: KeyRows,
    rows: Vec<u32>,
    slots: Vec<Slot>,
}

// Positions count the rows that were looked up, in the order of the batch.
impl ValueRows {
    pub(crate) fn new(encoder: KeyEncoder) -> Self {
        Self { encoder, keys: KeyRows::new(), rows: Vec::new(), slots: Vec::new() }
    }

    pub(crate) fn encoder(&self) -> &KeyEncoder {
        &self.encoder
    }

    /// Finds the places of the rows whose sign is not 0.
    pub(crate) fn look_up(
        &mut self,
        table: &mut Table,
        group: &[ArrayRef],
        argument: &ArrayRef,
        signs: &[i8],
    ) -> Result<()> {
        self.rows.clear();
        self.rows.extend((0_u32..).zip(signs).filter(|(_, sign)| **sign != 0).map(|(row, _)| row));
        let mut columns: Vec<ArrayRef> = group.to_vec();
        columns.push(ArrayRef::clone(argument));
        if self.rows.len() < signs.len() {
            let picks = UInt32Array::from(self.rows.clone());
            let taken = columns.iter().map(|column| take(column, &picks, None)).collect::<Result<Vec<_>, _>>();
            columns = taken.or_code(Code::Internal, || "values of an aggregate".to_owned())?;
        }
        self.encoder.encode(&columns, self.rows.len(), &mut self.keys)?;
        table.lookup(&self.keys, Missing::Insert, &mut self.slots)
    }

    /// Rows that were looked up, with their places.
    pub(crate) fn rows(&self) -> impl Iterator<Item = (u32, Slot)> {
        self.rows.iter().copied().zip(self.slots.iter().copied())
    }

    /// The value's key at a position.
    pub(crate) fn key(&self, position: usize) -> &[u8] {
        self.keys.key(position)
    }

    /// The value's key of a row of the batch that was looked up.
    pub(crate) fn key_of_row(&self, row: usize) -> &[u8] {
        self.keys.key(self.rows.partition_point(|r| (*r as usize) < row))
    }

    /// Values whose count is 0 leave the table; the others are written.
    pub(crate) fn settle(&self, table: &mut Table) -> Result<()> {
        for slot in &self.slots {
            let counts = table.columns()[0].as_i64().ok_or_else(|| batch_error("count"))?;
            match counts.values[slot.index()] {
                0 => table.remove(*slot),
                _ => table.mark_dirty(*slot),
            }
        }
        Ok(())
    }
}
