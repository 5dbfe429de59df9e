//! One Arrow column seen as plain values, and their byte form.

use arrow::{
    array::{Array, ArrayRef, AsArray, BinaryViewArray},
    buffer::NullBuffer,
    datatypes::{DataType, Decimal128Type, IntervalDayTimeType, IntervalMonthDayNanoType},
};
use streamkeeper_types::{Code, Error, Result};

use super::{Codec, Use};

/// A column's values by physical kind; made once a batch, so that the loops over rows have no dispatch.
#[derive(Debug)]
pub(crate) struct View {
    values: Values,
    nulls: Option<NullBuffer>,
}

#[derive(Debug)]
enum Values {
    Null,
    /// Bytes to write after the marker, big-endian in the low `width` bytes.
    Fixed {
        width: usize,
        values: Vec<u64>,
    },
    Fixed128(Vec<u128>),
    Bytes(Box<BytesColumn>),
    Row(Vec<View>),
    List {
        item: Box<View>,
        offsets: Vec<usize>,
    },
}

#[derive(Debug)]
enum BytesColumn {
    Small(arrow::array::BinaryArray),
    Large(arrow::array::LargeBinaryArray),
    View(BinaryViewArray),
    Fixed(arrow::array::FixedSizeBinaryArray),
}

impl BytesColumn {
    fn get(&self, row: usize) -> &[u8] {
        match self {
            Self::Small(array) => array.value(row),
            Self::Large(array) => array.value(row),
            Self::View(array) => array.value(row),
            Self::Fixed(array) => array.value(row),
        }
    }
}

const SIGN: u64 = 1 << 63;
const SIGN_128: u128 = 1 << 127;

impl View {
    /// # Errors
    /// A type that `codec` is not of, or a timestamp that microseconds cannot hold.
    pub(crate) fn new(array: &ArrayRef, codec: &Codec, usage: Use) -> Result<Self> {
        let values = Values::new(array, codec, usage)?;
        Ok(Self { values, nulls: array.logical_nulls() })
    }

    pub(crate) fn is_null(&self, row: usize) -> bool {
        matches!(self.values, Values::Null) || self.nulls.as_ref().is_some_and(|nulls| nulls.is_null(row))
    }

    /// Fixed-width values without any NULL: width in bytes and the values.
    pub(crate) fn dense(&self) -> Option<(usize, &[u64])> {
        match &self.values {
            Values::Fixed { width, values } if self.nulls.as_ref().is_none_or(|n| n.null_count() == 0) => {
                Some((*width, values))
            }
            _ => None,
        }
    }

    /// Adds each row's length, marker included, to `lengths`.
    pub(crate) fn add_lengths(&self, lengths: &mut [u32]) {
        if let Some((width, _)) = self.dense() {
            for length in lengths.iter_mut() {
                *length += width as u32 + 1;
            }
            return;
        }
        for (row, length) in lengths.iter_mut().enumerate() {
            *length += self.encoded_len(row) as u32;
        }
    }

    /// Writes each row at its cursor and moves the cursor behind it. `bytes` has room, by [`Self::add_lengths`].
    pub(crate) fn write(&self, bytes: &mut [u8], cursors: &mut [u32]) {
        for (row, cursor) in cursors.iter_mut().enumerate() {
            *cursor = self.write_value(row, bytes, *cursor as usize) as u32;
        }
    }

    /// Appends one value's bytes.
    pub(crate) fn append(&self, row: usize, out: &mut Vec<u8>) {
        let start = out.len();
        out.resize(start + self.encoded_len(row), 0);
        self.write_value(row, out, start);
    }

    pub(crate) fn encoded_len(&self, row: usize) -> usize {
        if self.is_null(row) {
            return 1;
        }
        1 + match &self.values {
            Values::Null => 0,
            Values::Fixed { width, .. } => *width,
            Values::Fixed128(_) => 16,
            Values::Bytes(column) => {
                let value = column.get(row);
                value.len() + memchr_count(value) + 2
            }
            Values::Row(fields) => fields.iter().map(|field| field.encoded_len(row)).sum(),
            Values::List { item, offsets } => {
                (offsets[row]..offsets[row + 1]).map(|i| 1 + item.encoded_len(i)).sum::<usize>() + 1
            }
        }
    }

    /// Writes at `at` and returns the position behind.
    fn write_value(&self, row: usize, bytes: &mut [u8], at: usize) -> usize {
        if self.is_null(row) {
            bytes[at] = 0;
            return at + 1;
        }
        bytes[at] = 1;
        let at = at + 1;
        match &self.values {
            Values::Null => at,
            Values::Fixed { width: 8, values } => {
                bytes[at..at + 8].copy_from_slice(&values[row].to_be_bytes());
                at + 8
            }
            Values::Fixed { width, values } => {
                bytes[at..at + width].copy_from_slice(&values[row].to_be_bytes()[8 - width..]);
                at + width
            }
            Values::Fixed128(values) => {
                bytes[at..at + 16].copy_from_slice(&values[row].to_be_bytes());
                at + 16
            }
            Values::Bytes(column) => write_escaped(column.get(row), bytes, at),
            Values::Row(fields) => fields.iter().fold(at, |at, field| field.write_value(row, bytes, at)),
            Values::List { item, offsets } => {
                let end = (offsets[row]..offsets[row + 1]).fold(at, |at, i| {
                    bytes[at] = 1;
                    item.write_value(i, bytes, at + 1)
                });
                bytes[end] = 0;
                end + 1
            }
        }
    }
}

impl Values {
    fn new(array: &ArrayRef, codec: &Codec, usage: Use) -> Result<Self> {
        let mismatch =
            || Error::internal(format!("a column of type {} where {codec:?} is declared", array.data_type()));
        let fixed = |width, values| Ok(Self::Fixed { width, values });
        match codec {
            Codec::Null => Ok(Self::Null),
            Codec::Bool => {
                let array = array.as_boolean_opt().ok_or_else(mismatch)?;
                fixed(1, array.values().iter().map(u64::from).collect())
            }
            Codec::Int { width, signed } => {
                let mut values = Vec::with_capacity(array.len());
                crate::physical::read_i64s(array.as_ref(), &mut values)?;
                // The sign bit of the narrow form is the one to flip.
                let flip = if *signed { 1_u64 << (*width as u32 * 8 - 1) } else { 0 };
                fixed(*width as usize, values.into_iter().map(|v| v as u64 ^ flip).collect())
            }
            Codec::Micros { per_unit } => {
                let mut values = Vec::with_capacity(array.len());
                crate::physical::read_i64s(array.as_ref(), &mut values)?;
                let micros = |(row, v): (usize, i64)| match v.checked_mul(*per_unit) {
                    Some(micros) => Ok(micros as u64 ^ SIGN),
                    None if array.is_null(row) => Ok(0),
                    None => Err(Error::new(Code::Evaluation, format!("timestamp {v} is out of range for a key"))),
                };
                fixed(8, values.into_iter().enumerate().map(micros).collect::<Result<_>>()?)
            }
            Codec::DayTime => {
                let array = array.as_primitive_opt::<IntervalDayTimeType>().ok_or_else(mismatch)?;
                let order = |v: i32| u64::from(v as u32 ^ (1 << 31));
                fixed(8, array.values().iter().map(|v| order(v.days) << 32 | order(v.milliseconds)).collect())
            }
            Codec::MonthDayNano => {
                let array = array.as_primitive_opt::<IntervalMonthDayNanoType>().ok_or_else(mismatch)?;
                let order = |v: i32| u128::from(v as u32 ^ (1 << 31));
                let value = |v: &arrow::datatypes::IntervalMonthDayNano| {
                    order(v.months) << 96 | order(v.days) << 64 | u128::from(v.nanoseconds as u64 ^ SIGN)
                };
                Ok(Self::Fixed128(array.values().iter().map(value).collect()))
            }
            Codec::F32 => {
                let array = array.as_primitive_opt::<arrow::datatypes::Float32Type>().ok_or_else(mismatch)?;
                fixed(4, array.values().iter().map(|v| u64::from(order_f32(*v, usage))).collect())
            }
            Codec::F64 => {
                let array = array.as_primitive_opt::<arrow::datatypes::Float64Type>().ok_or_else(mismatch)?;
                fixed(8, array.values().iter().map(|v| order_f64(*v, usage)).collect())
            }
            Codec::I128 => {
                let array = array.as_primitive_opt::<Decimal128Type>().ok_or_else(mismatch)?;
                Ok(Self::Fixed128(array.values().iter().map(|v| *v as u128 ^ SIGN_128).collect()))
            }
            Codec::Bytes => Ok(Self::Bytes(Box::new(bytes_column(array).ok_or_else(mismatch)?))),
            Codec::Row(codecs) => {
                let array = array.as_struct_opt().ok_or_else(mismatch)?;
                if array.num_columns() != codecs.len() {
                    return Err(mismatch());
                }
                let fields = array.columns().iter().zip(codecs).map(|(column, codec)| View::new(column, codec, usage));
                Ok(Self::Row(fields.collect::<Result<_>>()?))
            }
            Codec::List(codec) => {
                let (items, offsets) = list_parts(array).ok_or_else(mismatch)?;
                Ok(Self::List { item: Box::new(View::new(&items, codec, usage)?), offsets })
            }
        }
    }
}

fn memchr_count(value: &[u8]) -> usize {
    value.iter().filter(|b| **b == 0).count()
}

/// `00` becomes `00 FF`; `00 01` ends the text, so that a prefix sorts first.
fn write_escaped(value: &[u8], bytes: &mut [u8], mut at: usize) -> usize {
    for part in value.split_inclusive(|b| *b == 0) {
        bytes[at..at + part.len()].copy_from_slice(part);
        at += part.len();
        if part.last() == Some(&0) {
            bytes[at] = 0xff;
            at += 1;
        }
    }
    bytes[at..at + 2].copy_from_slice(&[0, 1]);
    at + 2
}

/// Bits whose unsigned order is the order of numbers, NaN greatest.
fn order_f64(value: f64, usage: Use) -> u64 {
    let value = match usage {
        Use::Key if value == 0.0 => 0.0,
        Use::Key if value.is_nan() => f64::NAN,
        _ => value,
    };
    let bits = value.to_bits();
    if bits & SIGN == 0 { bits | SIGN } else { !bits }
}

fn order_f32(value: f32, usage: Use) -> u32 {
    let value = match usage {
        Use::Key if value == 0.0 => 0.0,
        Use::Key if value.is_nan() => f32::NAN,
        _ => value,
    };
    let bits = value.to_bits();
    if bits & (1 << 31) == 0 { bits | (1 << 31) } else { !bits }
}

fn bytes_column(array: &ArrayRef) -> Option<BytesColumn> {
    Some(match array.data_type() {
        DataType::Utf8 => BytesColumn::Small(array.as_string::<i32>().clone().into()),
        DataType::LargeUtf8 => BytesColumn::Large(array.as_string::<i64>().clone().into()),
        DataType::Utf8View => BytesColumn::View(array.as_string_view().clone().to_binary_view()),
        DataType::Binary => BytesColumn::Small(array.as_binary::<i32>().clone()),
        DataType::LargeBinary => BytesColumn::Large(array.as_binary::<i64>().clone()),
        DataType::BinaryView => BytesColumn::View(array.as_binary_view().clone()),
        DataType::FixedSizeBinary(_) => BytesColumn::Fixed(array.as_fixed_size_binary().clone()),
        _ => return None,
    })
}

/// Items and offsets of a list or a map.
fn list_parts(array: &ArrayRef) -> Option<(ArrayRef, Vec<usize>)> {
    let small = |offsets: &[i32]| offsets.iter().map(|o| *o as usize).collect();
    if let Some(list) = array.as_list_opt::<i32>() {
        return Some((list.values().clone(), small(list.value_offsets())));
    }
    if let Some(list) = array.as_list_opt::<i64>() {
        return Some((list.values().clone(), list.value_offsets().iter().map(|o| *o as usize).collect()));
    }
    let map = array.as_map_opt()?;
    Some((std::sync::Arc::new(map.entries().clone()), small(map.value_offsets())))
}
