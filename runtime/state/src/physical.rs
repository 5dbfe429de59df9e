//! The four kinds in which state holds values, and the way from and to Arrow's types.

use std::sync::Arc;

use arrow::{
    array::{
        Array, ArrayData, ArrayRef, AsArray, BinaryViewBuilder, BooleanArray, FixedSizeBinaryArray, Float32Array,
        Float64Array, GenericByteArray, StringViewBuilder, make_array,
    },
    buffer::{BooleanBuffer, Buffer, NullBuffer, OffsetBuffer},
    datatypes::{
        ArrowNativeType, BinaryType, ByteArrayType, DataType, Decimal128Type, Float32Type, Float64Type,
        IntervalDayTime, IntervalDayTimeType, IntervalMonthDayNano, IntervalMonthDayNanoType, IntervalUnit,
        LargeBinaryType, LargeUtf8Type, Utf8Type,
    },
};
use streamkeeper_types::{Code, Error, Result, ResultExt};

use crate::codec::{Codec, Use};

/// How a value column of a table is held.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Physical {
    /// Booleans, all integers (unsigned ones as their bits), dates, times, timestamps, durations, short intervals.
    I64,
    /// FLOAT and DOUBLE.
    F64,
    /// Decimals; month-day-nano intervals as months, days and nanoseconds from the high end.
    I128,
    /// Strings and binary as they are; nested values in their byte form.
    Bytes,
}

impl Physical {
    /// # Errors
    /// `SQL_UNSUPPORTED` for a type that state cannot hold.
    pub fn of(data_type: &DataType) -> Result<Self> {
        Ok(match Codec::of(data_type, Use::Value)? {
            Codec::Bool | Codec::Int { .. } | Codec::Micros { .. } | Codec::DayTime => Self::I64,
            Codec::F32 | Codec::F64 => Self::F64,
            Codec::I128 | Codec::MonthDayNano => Self::I128,
            Codec::Null | Codec::Bytes | Codec::Row(_) | Codec::List(_) => Self::Bytes,
        })
    }
}

/// Values of one column in rows, NULLs as anything.
pub(crate) enum Values {
    I64(Vec<i64>),
    F64(Vec<f64>),
    I128(Vec<i128>),
    Bytes { ends: Vec<usize>, data: Vec<u8> },
}

/// Whether values of this type are held in the nested byte form.
pub(crate) fn is_nested(data_type: &DataType) -> bool {
    data_type.is_nested() || *data_type == DataType::Null
}

fn mismatch(data_type: &DataType) -> Error {
    Error::internal(format!("a column of type {data_type} is none of the declared kind"))
}

/// Appends every row's value, NULL rows as anything.
pub(crate) fn read_i64s(array: &dyn Array, out: &mut Vec<i64>) -> Result<()> {
    fn widen<T: ArrowNativeType>(array: &dyn Array, out: &mut Vec<i64>, to: impl Fn(&T) -> i64) {
        let data = array.to_data();
        out.extend(data.buffer::<T>(0)[..array.len()].iter().map(to));
    }
    match array.data_type() {
        DataType::Boolean => out.extend(array.as_boolean().values().iter().map(i64::from)),
        DataType::Int8 => widen::<i8>(array, out, |v| i64::from(*v)),
        DataType::Int16 => widen::<i16>(array, out, |v| i64::from(*v)),
        DataType::Int32 | DataType::Date32 | DataType::Time32(_) | DataType::Interval(IntervalUnit::YearMonth) => {
            widen::<i32>(array, out, |v| i64::from(*v));
        }
        DataType::Int64
        | DataType::Date64
        | DataType::Time64(_)
        | DataType::Timestamp(_, _)
        | DataType::Duration(_) => widen::<i64>(array, out, |v| *v),
        DataType::UInt8 => widen::<u8>(array, out, |v| i64::from(*v)),
        DataType::UInt16 => widen::<u16>(array, out, |v| i64::from(*v)),
        DataType::UInt32 => widen::<u32>(array, out, |v| i64::from(*v)),
        DataType::UInt64 => widen::<u64>(array, out, |v| *v as i64),
        DataType::Interval(IntervalUnit::DayTime) => {
            let values = array.as_primitive::<IntervalDayTimeType>().values();
            out.extend(values.iter().map(|v| i64::from(v.days) << 32 | i64::from(v.milliseconds as u32)));
        }
        other => return Err(mismatch(other)),
    }
    Ok(())
}

/// Appends every row's value, NULL rows as anything.
pub(crate) fn read_f64s(array: &dyn Array, out: &mut Vec<f64>) -> Result<()> {
    match array.data_type() {
        DataType::Float32 => out.extend(array.as_primitive::<Float32Type>().values().iter().map(|v| f64::from(*v))),
        DataType::Float64 => out.extend_from_slice(array.as_primitive::<Float64Type>().values()),
        other => return Err(mismatch(other)),
    }
    Ok(())
}

/// Appends every row's value, NULL rows as anything.
pub(crate) fn read_i128s(array: &dyn Array, out: &mut Vec<i128>) -> Result<()> {
    match array.data_type() {
        DataType::Decimal128(_, _) => out.extend_from_slice(array.as_primitive::<Decimal128Type>().values()),
        DataType::Interval(IntervalUnit::MonthDayNano) => {
            let pack = |v: &IntervalMonthDayNano| {
                (u128::from(v.months as u32) << 96 | u128::from(v.days as u32) << 64 | u128::from(v.nanoseconds as u64))
                    as i128
            };
            out.extend(array.as_primitive::<IntervalMonthDayNanoType>().values().iter().map(pack));
        }
        other => return Err(mismatch(other)),
    }
    Ok(())
}

/// # Errors
/// `SNAPSHOT_CORRUPT` for values that are none of `data_type`: such can only come from a file.
pub(crate) fn to_array(values: Values, nulls: Option<NullBuffer>, data_type: &DataType) -> Result<ArrayRef> {
    match values {
        Values::I64(values) => i64_array(values, nulls, data_type),
        Values::F64(values) => match data_type {
            #[expect(clippy::cast_possible_truncation, reason = "the value was a f32")]
            DataType::Float32 => Ok(Arc::new(Float32Array::new(values.iter().map(|v| *v as f32).collect(), nulls))),
            DataType::Float64 => Ok(Arc::new(Float64Array::new(values.into(), nulls))),
            other => Err(mismatch(other)),
        },
        Values::I128(values) => i128_array(values, nulls, data_type),
        Values::Bytes { ends, data } => bytes_array(&ends, data, nulls, data_type),
    }
}

fn primitive(buffer: Buffer, len: usize, nulls: Option<NullBuffer>, data_type: &DataType) -> Result<ArrayRef> {
    let data = ArrayData::builder(data_type.clone()).len(len).add_buffer(buffer).nulls(nulls).build();
    Ok(make_array(data.or_code(Code::SnapshotCorrupt, || format!("state values are no {data_type}"))?))
}

fn i64_array(values: Vec<i64>, nulls: Option<NullBuffer>, data_type: &DataType) -> Result<ArrayRef> {
    fn narrow<T: ArrowNativeType>(values: &[i64], to: impl Fn(i64) -> T) -> Buffer {
        Buffer::from_vec(values.iter().map(|v| to(*v)).collect::<Vec<T>>())
    }
    let len = values.len();
    let buffer = match data_type {
        DataType::Boolean => {
            let bits = BooleanBuffer::collect_bool(len, |i| values[i] != 0);
            return Ok(Arc::new(BooleanArray::new(bits, nulls)));
        }
        DataType::Int8 => narrow(&values, |v| v as i8),
        DataType::Int16 => narrow(&values, |v| v as i16),
        DataType::Int32 | DataType::Date32 | DataType::Time32(_) | DataType::Interval(IntervalUnit::YearMonth) => {
            narrow(&values, |v| v as i32)
        }
        DataType::Int64
        | DataType::UInt64
        | DataType::Date64
        | DataType::Time64(_)
        | DataType::Timestamp(_, _)
        | DataType::Duration(_) => Buffer::from_vec(values),
        DataType::UInt8 => narrow(&values, |v| v as u8),
        DataType::UInt16 => narrow(&values, |v| v as u16),
        DataType::UInt32 => narrow(&values, |v| v as u32),
        DataType::Interval(IntervalUnit::DayTime) => {
            narrow(&values, |v| IntervalDayTime::new((v >> 32) as i32, v as i32))
        }
        other => return Err(mismatch(other)),
    };
    primitive(buffer, len, nulls, data_type)
}

fn i128_array(values: Vec<i128>, nulls: Option<NullBuffer>, data_type: &DataType) -> Result<ArrayRef> {
    let len = values.len();
    let buffer = match data_type {
        DataType::Decimal128(_, _) => Buffer::from_vec(values),
        DataType::Interval(IntervalUnit::MonthDayNano) => {
            let unpack = |v: &i128| IntervalMonthDayNano::new((v >> 96) as i32, (v >> 64) as i32, *v as i64);
            Buffer::from_vec(values.iter().map(unpack).collect::<Vec<_>>())
        }
        other => return Err(mismatch(other)),
    };
    primitive(buffer, len, nulls, data_type)
}

fn bytes_array(ends: &[usize], data: Vec<u8>, nulls: Option<NullBuffer>, data_type: &DataType) -> Result<ArrayRef> {
    fn flat<T: ByteArrayType>(ends: &[usize], data: Vec<u8>, nulls: Option<NullBuffer>) -> Result<ArrayRef> {
        let offset = |end: &usize| {
            T::Offset::from_usize(*end)
                .ok_or_else(|| Error::new(Code::MemoryExceeded, "strings of one batch exceed 2 GiB"))
        };
        let offsets = std::iter::once(Ok(T::Offset::usize_as(0))).chain(ends.iter().map(offset));
        let offsets = OffsetBuffer::new(offsets.collect::<Result<Vec<_>>>()?.into());
        let array = GenericByteArray::<T>::try_new(offsets, data.into(), nulls);
        Ok(Arc::new(array.or_code(Code::SnapshotCorrupt, || format!("state bytes are no {}", T::DATA_TYPE))?))
    }
    let parts = || {
        let starts = std::iter::once(0).chain(ends.iter().copied());
        starts.zip(ends).enumerate().map(|(row, (from, to))| {
            (!nulls.as_ref().is_some_and(|nulls| nulls.is_null(row))).then(|| &data[from..*to])
        })
    };
    match data_type {
        DataType::Utf8 => flat::<Utf8Type>(ends, data, nulls),
        DataType::LargeUtf8 => flat::<LargeUtf8Type>(ends, data, nulls),
        DataType::Binary => flat::<BinaryType>(ends, data, nulls),
        DataType::LargeBinary => flat::<LargeBinaryType>(ends, data, nulls),
        DataType::BinaryView => {
            let mut builder = BinaryViewBuilder::with_capacity(ends.len());
            parts().for_each(|part| builder.append_option(part));
            Ok(Arc::new(builder.finish()))
        }
        DataType::Utf8View => {
            let mut builder = StringViewBuilder::with_capacity(ends.len());
            for part in parts() {
                let text = part.map(std::str::from_utf8).transpose();
                builder.append_option(text.or_code(Code::SnapshotCorrupt, || "state bytes are no text".into())?);
            }
            Ok(Arc::new(builder.finish()))
        }
        DataType::FixedSizeBinary(size) => {
            let array = FixedSizeBinaryArray::try_from_sparse_iter_with_size(parts(), *size);
            Ok(Arc::new(array.or_code(Code::SnapshotCorrupt, || format!("state bytes are not {size} long"))?))
        }
        other => Err(mismatch(other)),
    }
}
