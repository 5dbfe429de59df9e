//! Bytes back to Arrow columns. Hostile bytes give `None`, never a panic.

use std::sync::Arc;

use arrow::{
    array::{ArrayRef, LargeListArray, ListArray, MapArray, NullArray, StructArray},
    buffer::{NullBuffer, OffsetBuffer},
    datatypes::DataType,
};
use streamkeeper_types::{Code, Error, Result, ResultExt};

use super::{Codec, Use};
use crate::physical::{Values, to_array};

/// A column under construction from encoded values.
#[derive(Debug)]
pub(crate) struct Decoded {
    codec: Codec,
    values: Kind,
    valid: Vec<bool>,
}

#[derive(Debug)]
enum Kind {
    Null,
    I64(Vec<i64>),
    F64(Vec<f64>),
    I128(Vec<i128>),
    Bytes { ends: Vec<usize>, data: Vec<u8> },
    Row(Vec<Decoded>),
    List { item: Box<Decoded>, ends: Vec<usize> },
}

impl Decoded {
    pub(crate) fn new(codec: &Codec) -> Self {
        let values = match codec {
            Codec::Null => Kind::Null,
            Codec::Bool | Codec::Int { .. } | Codec::Micros { .. } | Codec::DayTime => Kind::I64(Vec::new()),
            Codec::F32 | Codec::F64 => Kind::F64(Vec::new()),
            Codec::MonthDayNano | Codec::I128 => Kind::I128(Vec::new()),
            Codec::Bytes => Kind::Bytes { ends: Vec::new(), data: Vec::new() },
            Codec::Row(fields) => Kind::Row(fields.iter().map(Self::new).collect()),
            Codec::List(item) => Kind::List { item: Box::new(Self::new(item)), ends: Vec::new() },
        };
        Self { codec: codec.clone(), values, valid: Vec::new() }
    }

    /// Appends NULL, without any bytes.
    pub(crate) fn push_null(&mut self) {
        self.valid.push(false);
        match &mut self.values {
            Kind::Null => {}
            Kind::I64(values) => values.push(0),
            Kind::F64(values) => values.push(0.0),
            Kind::I128(values) => values.push(0),
            Kind::Bytes { ends, data } => ends.push(data.len()),
            Kind::Row(fields) => fields.iter_mut().for_each(Self::push_null),
            Kind::List { item, ends } => ends.push(item.valid.len()),
        }
    }

    /// Reads one value from the front of `bytes` and moves `bytes` behind it. `None` if no value lies there.
    pub(crate) fn push(&mut self, bytes: &mut &[u8]) -> Option<()> {
        if !marker(bytes)? {
            self.push_null();
            return Some(());
        }
        self.valid.push(true);
        match &mut self.values {
            Kind::Null => return None,
            Kind::I64(values) => values.push(read_i64(&self.codec, bytes)?),
            Kind::F64(values) => values.push(read_f64(&self.codec, bytes)?),
            Kind::I128(values) => values.push(read_i128(&self.codec, bytes)?),
            Kind::Bytes { ends, data } => {
                unescape(bytes, |part| data.extend_from_slice(part))?;
                ends.push(data.len());
            }
            Kind::Row(fields) => fields.iter_mut().try_for_each(|field| field.push(bytes))?,
            Kind::List { item, ends } => {
                while marker(bytes)? {
                    item.push(bytes)?;
                }
                ends.push(item.valid.len());
            }
        }
        Some(())
    }

    /// # Errors
    /// Values that are none of `data_type`, as text that is not UTF-8.
    pub(crate) fn finish(self, data_type: &DataType) -> Result<ArrayRef> {
        let len = self.valid.len();
        let nulls = self.valid.contains(&false).then(|| NullBuffer::from(self.valid));
        let corrupt = || format!("state values do not fit {data_type}");
        match self.values {
            Kind::Null => Ok(Arc::new(NullArray::new(len))),
            Kind::I64(values) => to_array(Values::I64(values), nulls, data_type),
            Kind::F64(values) => to_array(Values::F64(values), nulls, data_type),
            Kind::I128(values) => to_array(Values::I128(values), nulls, data_type),
            Kind::Bytes { ends, data } => to_array(Values::Bytes { ends, data }, nulls, data_type),
            Kind::Row(columns) => {
                let DataType::Struct(fields) = data_type else {
                    return Err(Error::new(Code::SnapshotCorrupt, corrupt()));
                };
                let arrays = columns.into_iter().zip(fields).map(|(c, f)| c.finish(f.data_type()));
                let arrays = arrays.collect::<Result<Vec<_>>>()?;
                let array = StructArray::try_new_with_length(fields.clone(), arrays, nulls, len);
                Ok(Arc::new(array.or_code(Code::SnapshotCorrupt, corrupt)?))
            }
            Kind::List { item, ends } => {
                let lengths = std::iter::once(0).chain(ends.iter().copied()).zip(&ends).map(|(from, to)| to - from);
                finish_list(*item, lengths, nulls, data_type)
            }
        }
    }
}

fn finish_list(
    item: Decoded,
    lengths: impl Iterator<Item = usize>,
    nulls: Option<NullBuffer>,
    data_type: &DataType,
) -> Result<ArrayRef> {
    let corrupt = || format!("state values do not fit {data_type}");
    match data_type {
        DataType::List(field) => {
            let items = item.finish(field.data_type())?;
            let list = ListArray::try_new(field.clone(), OffsetBuffer::from_lengths(lengths), items, nulls);
            Ok(Arc::new(list.or_code(Code::SnapshotCorrupt, corrupt)?))
        }
        DataType::LargeList(field) => {
            let items = item.finish(field.data_type())?;
            let list = LargeListArray::try_new(field.clone(), OffsetBuffer::from_lengths(lengths), items, nulls);
            Ok(Arc::new(list.or_code(Code::SnapshotCorrupt, corrupt)?))
        }
        DataType::Map(field, ordered) => {
            let entries = item.finish(field.data_type())?;
            let entries = arrow::array::AsArray::as_struct_opt(&entries)
                .ok_or_else(|| Error::new(Code::SnapshotCorrupt, corrupt()))?
                .clone();
            let map = MapArray::try_new(field.clone(), OffsetBuffer::from_lengths(lengths), entries, nulls, *ordered);
            Ok(Arc::new(map.or_code(Code::SnapshotCorrupt, corrupt)?))
        }
        _ => Err(Error::new(Code::SnapshotCorrupt, corrupt())),
    }
}

/// Moves `bytes` behind one value without reading it. `None` if no value lies there.
pub(crate) fn skip(codec: &Codec, bytes: &mut &[u8]) -> Option<()> {
    if !marker(bytes)? {
        return Some(());
    }
    match codec {
        Codec::Null => None,
        Codec::Bytes => unescape(bytes, |_| ()),
        Codec::Row(fields) => fields.iter().try_for_each(|field| skip(field, bytes)),
        Codec::List(item) => {
            while marker(bytes)? {
                skip(item, bytes)?;
            }
            Some(())
        }
        fixed => take(bytes, fixed.fixed_len()?).map(|_| ()),
    }
}

fn take<'a>(bytes: &mut &'a [u8], len: usize) -> Option<&'a [u8]> {
    let (head, tail) = bytes.split_at_checked(len)?;
    *bytes = tail;
    Some(head)
}

/// `true` before a value, `false` for NULL or an end.
fn marker(bytes: &mut &[u8]) -> Option<bool> {
    match take(bytes, 1)? {
        [0] => Some(false),
        [1] => Some(true),
        _ => None,
    }
}

fn unescape(bytes: &mut &[u8], mut part: impl FnMut(&[u8])) -> Option<()> {
    loop {
        let zero = bytes.iter().position(|b| *b == 0)?;
        let text = take(bytes, zero)?;
        match take(bytes, 2)? {
            [_, 0xff] => {
                part(text);
                part(&[0]);
            }
            [_, 1] => {
                part(text);
                return Some(());
            }
            _ => return None,
        }
    }
}

fn read_u64(bytes: &mut &[u8], width: usize) -> Option<u64> {
    Some(take(bytes, width)?.iter().fold(0, |value, byte| value << 8 | u64::from(*byte)))
}

fn order(bits: u64) -> i32 {
    (bits as u32 ^ (1 << 31)) as i32
}

fn read_i64(codec: &Codec, bytes: &mut &[u8]) -> Option<i64> {
    match codec {
        Codec::Bool => Some(read_u64(bytes, 1)? as i64),
        Codec::Int { width, signed: false } => Some(read_u64(bytes, *width as usize)? as i64),
        Codec::Int { width, signed: true } => {
            let unused = 64 - *width as u32 * 8;
            let value = read_u64(bytes, *width as usize)? ^ (1 << (63 - unused));
            Some(((value << unused) as i64) >> unused)
        }
        Codec::Micros { per_unit } => Some((read_u64(bytes, 8)? ^ (1 << 63)) as i64 / per_unit),
        Codec::DayTime => {
            let bits = read_u64(bytes, 8)?;
            Some(i64::from(order(bits >> 32)) << 32 | i64::from(order(bits) as u32))
        }
        _ => None,
    }
}

fn read_f64(codec: &Codec, bytes: &mut &[u8]) -> Option<f64> {
    match codec {
        Codec::F32 => {
            let bits = read_u64(bytes, 4)? as u32;
            Some(f64::from(f32::from_bits(if bits & (1 << 31) == 0 { !bits } else { bits & !(1 << 31) })))
        }
        Codec::F64 => {
            let bits = read_u64(bytes, 8)?;
            Some(f64::from_bits(if bits & (1 << 63) == 0 { !bits } else { bits & !(1 << 63) }))
        }
        _ => None,
    }
}

fn read_i128(codec: &Codec, bytes: &mut &[u8]) -> Option<i128> {
    let high = read_u64(bytes, 8)?;
    let low = read_u64(bytes, 8)?;
    match codec {
        Codec::I128 => Some((u128::from(high ^ (1 << 63)) << 64 | u128::from(low)) as i128),
        Codec::MonthDayNano => {
            let value = u128::from(order(high >> 32) as u32) << 96
                | u128::from(order(high) as u32) << 64
                | u128::from(low ^ (1 << 63));
            Some(value as i128)
        }
        _ => None,
    }
}

/// Values of nested columns in state, one self-contained byte string each.
pub(crate) fn decode_values<'a>(
    data_type: &DataType,
    values: impl Iterator<Item = Option<&'a [u8]>>,
) -> Result<ArrayRef> {
    let mut column = Decoded::new(&Codec::of(data_type, Use::Value)?);
    for value in values {
        match value {
            None => column.push_null(),
            Some(mut bytes) => column
                .push(&mut bytes)
                .ok_or_else(|| Error::new(Code::SnapshotCorrupt, format!("a state value is no {data_type}")))?,
        }
    }
    column.finish(data_type)
}
