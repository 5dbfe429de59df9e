//! Argument columns as plain numbers or bytes, and plain numbers as columns.

use std::sync::Arc;

use arrow::{
    array::{Array, ArrayRef, AsArray, BinaryArray, Decimal128Array, Float64Array, Int64Array},
    buffer::{NullBuffer, OffsetBuffer, ScalarBuffer},
    compute::cast,
    datatypes::{DataType, Decimal128Type, Float64Type, Int64Type},
};
use streamkeeper_types::{Code, Error, Result, ResultExt};

use super::fold::{BytesHistory, History};

/// An argument column, downcast once a batch. Values of NULL rows are anything.
#[derive(Debug)]
pub(crate) enum Argument {
    /// Integers, booleans, dates, times, timestamps.
    I64(ScalarBuffer<i64>),
    F64(ScalarBuffer<f64>),
    /// Unscaled decimals.
    I128(ScalarBuffer<i128>),
    /// Strings and binary.
    Bytes(BinaryArray),
}

impl Argument {
    /// # Errors
    /// [`Code::Internal`] for a type that no aggregate takes.
    pub(crate) fn new(column: &ArrayRef) -> Result<Self> {
        Ok(match column.data_type() {
            DataType::Float32 | DataType::Float64 => {
                Self::F64(convert(column, &[DataType::Float64])?.as_primitive::<Float64Type>().values().clone())
            }
            DataType::Decimal128(_, _) => Self::I128(column.as_primitive::<Decimal128Type>().values().clone()),
            DataType::Utf8 | DataType::Binary => {
                Self::Bytes(convert(column, &[DataType::Binary])?.as_binary::<i32>().clone())
            }
            _ => Self::I64(convert(column, &[DataType::Int64])?.as_primitive::<Int64Type>().values().clone()),
        })
    }
}

/// Casts through `steps`; values are known to fit.
fn convert(column: &ArrayRef, steps: &[DataType]) -> Result<ArrayRef> {
    let mut column = ArrayRef::clone(column);
    for step in steps {
        if column.data_type() != step {
            column = cast(&column, step).or_code(Code::Internal, || "values of an aggregate".to_owned())?;
        }
    }
    Ok(column)
}

/// A column of `data_type` from its plain values.
pub(crate) trait IntoColumn {
    /// # Errors
    /// [`Code::Internal`] when the values are none of `data_type`.
    fn into_column(self, data_type: &DataType) -> Result<ArrayRef>;
}

impl IntoColumn for History<i64> {
    fn into_column(self, data_type: &DataType) -> Result<ArrayRef> {
        let column = Arc::new(Int64Array::new(self.values.into(), nulls(self.valid))) as ArrayRef;
        match data_type {
            DataType::Date32 | DataType::Time32(_) => convert(&column, &[DataType::Int32, data_type.clone()]),
            other => convert(&column, std::slice::from_ref(other)),
        }
    }
}

impl IntoColumn for History<f64> {
    fn into_column(self, data_type: &DataType) -> Result<ArrayRef> {
        let column = Float64Array::new(self.values.into(), nulls(self.valid));
        convert(&(Arc::new(column) as ArrayRef), std::slice::from_ref(data_type))
    }
}

impl IntoColumn for History<i128> {
    fn into_column(self, data_type: &DataType) -> Result<ArrayRef> {
        let column = Decimal128Array::new(self.values.into(), nulls(self.valid)).with_data_type(data_type.clone());
        Ok(Arc::new(column))
    }
}

impl IntoColumn for BytesHistory {
    fn into_column(self, data_type: &DataType) -> Result<ArrayRef> {
        let fits = self.data.len() <= i32::MAX as usize;
        if !fits {
            return Err(Error::new(Code::MemoryExceeded, "the strings of one batch exceed 2 GiB"));
        }
        let lengths = std::iter::once(0).chain(self.ends.iter().copied());
        let lengths = lengths.zip(&self.ends).map(|(start, end)| end - start);
        let offsets = OffsetBuffer::<i32>::from_lengths(lengths);
        let column = BinaryArray::new(offsets, self.data.into(), nulls(self.valid));
        convert(&(Arc::new(column) as ArrayRef), std::slice::from_ref(data_type))
    }
}

fn nulls(valid: Vec<bool>) -> Option<NullBuffer> {
    if valid.iter().all(|v| *v) { None } else { Some(valid.into()) }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use arrow::datatypes::TimeUnit;

    use super::*;

    /// What state does with a value: column → plain value → column.
    fn there_and_back(column: &ArrayRef) -> ArrayRef {
        let valid: Vec<bool> = (0..column.len()).map(|row| column.is_valid(row)).collect();
        match Argument::new(column).unwrap() {
            Argument::I64(values) => History { values: values.to_vec(), valid }.into_column(column.data_type()),
            Argument::F64(values) => History { values: values.to_vec(), valid }.into_column(column.data_type()),
            Argument::I128(values) => History { values: values.to_vec(), valid }.into_column(column.data_type()),
            Argument::Bytes(values) => {
                let mut history = BytesHistory { valid, ..BytesHistory::default() };
                for value in &values {
                    history.data.extend_from_slice(value.unwrap_or_default());
                    history.ends.push(history.data.len());
                }
                history.into_column(column.data_type())
            }
        }
        .unwrap()
    }

    #[test]
    fn columns_of_every_ordered_type_come_back() {
        let numbers = Arc::new(Int64Array::from(vec![Some(1), None, Some(-3), Some(100)])) as ArrayRef;
        let seconds = Arc::new(Int64Array::from(vec![Some(1), None, Some(3), Some(86_399)])) as ArrayRef;
        let of = |column: &ArrayRef, steps: &[DataType]| convert(column, steps).unwrap();
        let mut columns = vec![
            of(&seconds, &[DataType::Int32, DataType::Time32(TimeUnit::Second)]),
            of(&seconds, &[DataType::Int32, DataType::Time32(TimeUnit::Millisecond)]),
            of(&seconds, &[DataType::Time64(TimeUnit::Microsecond)]),
            of(&numbers, &[DataType::Int32, DataType::Date32]),
            of(&numbers, &[DataType::Utf8, DataType::Binary]),
        ];
        let direct = [
            DataType::Int8,
            DataType::Int16,
            DataType::Int32,
            DataType::Int64,
            DataType::Float32,
            DataType::Float64,
            DataType::Boolean,
            DataType::Utf8,
            DataType::Decimal128(10, 2),
            DataType::Timestamp(TimeUnit::Millisecond, None),
            DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())),
        ];
        columns.extend(direct.into_iter().map(|data_type| of(&numbers, &[data_type])));
        for column in columns {
            assert_eq!(&there_and_back(&column), &column, "{}", column.data_type());
        }
    }
}
