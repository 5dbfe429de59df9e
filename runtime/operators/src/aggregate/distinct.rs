//! DISTINCT: how often each value occurs in each group.

use arrow::{
    array::ArrayRef,
    datatypes::{DataType, FieldRef, Schema},
};
use streamkeeper_state::{KeyEncoder, KeySchema, Table, TableSpec, ValueField};
use streamkeeper_types::Result;

use super::{
    spec::AggregateSpec,
    value_rows::{ValueRows, value_field},
};
use crate::{changelog::batch_error, keys::KeyColumns};

/// One aggregate's table (…group, value) → count.
pub(crate) struct Distinct {
    table: usize,
    values: ValueRows,
}

impl Distinct {
    /// The table. `before` are key columns that order it before the group's, for windows.
    pub(crate) fn table(
        name: String,
        before: &[FieldRef],
        keys: &KeyColumns,
        spec: &AggregateSpec,
        input: &Schema,
    ) -> Result<TableSpec> {
        let mut fields = before.to_vec();
        fields.extend_from_slice(keys.fields());
        fields.push(value_field(spec, input)?);
        let hashed = before.len()..before.len() + keys.fields().len();
        let key = KeySchema::with_layout(fields, hashed, before.len())?;
        Ok(TableSpec::new(name, key, vec![ValueField::zero("count", DataType::Int64)])?.with_alias(&spec.name))
    }

    /// Counts in table number `table`.
    pub(crate) fn new(table: usize, encoder: KeyEncoder) -> Self {
        Self { table, values: ValueRows::new(encoder) }
    }

    pub(crate) fn table_number(&self) -> usize {
        self.table
    }

    /// Counts the rows whose sign is not 0, and leaves a sign only on a value's first coming (1) and last going (−1).
    /// `group` are the key columns before the value.
    pub(crate) fn first_and_last(
        &mut self,
        table: &mut Table,
        group: &[ArrayRef],
        argument: &ArrayRef,
        signs: &mut [i8],
    ) -> Result<()> {
        self.values.look_up(table, group, argument, signs)?;
        let counts = table.columns_mut()[0].as_i64_mut().ok_or_else(|| batch_error("count"))?;
        for (row, slot) in self.values.rows() {
            let (sign, count) = (&mut signs[row as usize], &mut counts.values[slot.index()]);
            // What was never there cannot be taken back.
            let turns = if *sign > 0 { *count == 0 } else { *count == 1 };
            *count = (*count + i64::from(*sign)).max(0);
            if !turns {
                *sign = 0;
            }
        }
        self.values.settle(table)
    }
}
