//! Rows of a table as record batches of deltas and base columns: key bytes, whether the row lives, values by kind.

use std::sync::Arc;

use arrow::{
    array::{Array, ArrayRef, AsArray, BinaryArray, BooleanArray, Int64Array, RecordBatch},
    datatypes::{DataType, Field, Int64Type, Schema},
};
use streamkeeper_types::{Code, Error, Result, ResultExt};

use crate::{Slot, TableSpec, column::ValueColumn, physical::Physical};

/// Arrow type of the values of one kind. Version 1; part of the file format.
fn stored_type(physical: Physical) -> DataType {
    match physical {
        Physical::I64 => DataType::Int64,
        Physical::F64 => DataType::Float64,
        Physical::I128 => DataType::Decimal128(38, 0),
        Physical::Bytes => DataType::Binary,
    }
}

fn physical_of(column: &ValueColumn) -> Physical {
    match column {
        ValueColumn::I64(_) => Physical::I64,
        ValueColumn::F64(_) => Physical::F64,
        ValueColumn::I128(_) => Physical::I128,
        ValueColumn::Bytes(_) => Physical::Bytes,
    }
}

/// Rows of `slots`, whose keys, lives and times of last use are given in the same order.
pub(crate) fn physical_batch<'a>(
    keys: impl Iterator<Item = &'a [u8]>,
    live: Vec<bool>,
    used_at: Option<Vec<i64>>,
    columns: &[ValueColumn],
    slots: &[Slot],
) -> Result<RecordBatch> {
    let mut fields = vec![Field::new("key", DataType::Binary, false), Field::new("live", DataType::Boolean, false)];
    let mut arrays: Vec<ArrayRef> =
        vec![Arc::new(BinaryArray::from_iter_values(keys)), Arc::new(BooleanArray::from(live))];
    if let Some(used_at) = used_at {
        fields.push(Field::new("used_at", DataType::Int64, false));
        arrays.push(Arc::new(Int64Array::from(used_at)));
    }
    for (i, column) in columns.iter().enumerate() {
        let data_type = stored_type(physical_of(column));
        arrays.push(column.gather(slots, &data_type)?);
        fields.push(Field::new(format!("v{i}"), data_type, true));
    }
    RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays)
        .or_code(Code::Internal, || "rows of a state table".into())
}

/// Such a batch, read back and checked against the table.
pub(crate) struct PhysicalRows<'a> {
    keys: &'a BinaryArray,
    live: &'a BooleanArray,
    used_at: Option<&'a Int64Array>,
    values: &'a [ArrayRef],
}

impl<'a> PhysicalRows<'a> {
    /// # Errors
    /// `SNAPSHOT_CORRUPT` for a batch that does not have the table's columns.
    pub(crate) fn new(batch: &'a RecordBatch, spec: &TableSpec) -> Result<Self> {
        let corrupt =
            || Error::new(Code::SnapshotCorrupt, format!("stored rows do not fit state table {}", spec.name()));
        let columns = batch.columns();
        let (keys, live, rest) = match columns {
            [keys, live, rest @ ..] => (keys.as_binary_opt().ok_or_else(corrupt)?, live.as_boolean_opt(), rest),
            _ => return Err(corrupt()),
        };
        let timed = batch.schema_ref().fields().get(2).is_some_and(|field| field.name() == "used_at");
        let (used_at, values) = match rest {
            [used_at, values @ ..] if timed => {
                (Some(used_at.as_primitive_opt::<Int64Type>().ok_or_else(corrupt)?), values)
            }
            values => (None, values),
        };
        let fits = values.len() == spec.physical.len()
            && values.iter().zip(&spec.physical).all(|(array, kind)| *array.data_type() == stored_type(*kind))
            && keys.null_count() == 0;
        if !fits {
            return Err(corrupt());
        }
        Ok(Self { keys, live: live.ok_or_else(corrupt)?, used_at, values })
    }

    pub(crate) fn key(&self, row: usize) -> &'a [u8] {
        self.keys.value(row)
    }

    pub(crate) fn is_live(&self, row: usize) -> bool {
        self.live.value(row)
    }

    /// Milliseconds; `None` if the table had no TTL when the snapshot was taken.
    pub(crate) fn used_at(&self, row: usize) -> Option<i64> {
        self.used_at.map(|used_at| used_at.value(row))
    }

    pub(crate) fn values(&self) -> &'a [ArrayRef] {
        self.values
    }
}
