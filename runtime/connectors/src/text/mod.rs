//! Values as text: what csv, json, print and partition folders write, and the parsers that read it back.
//!
//! A column is matched to its type once a batch ([`Column`]); writing one value is then a switch and no allocation.

mod decimal;
mod number;
mod time;

use std::io::Write;

use arrow::{
    array::{
        Array, ArrayRef, AsArray, BinaryArray, BooleanArray, Decimal128Array, ListArray, MapArray, PrimitiveArray,
        StringArray, StringViewArray, StructArray,
    },
    datatypes::{
        DataType, Date32Type, Decimal128Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type,
        Time32MillisecondType, Time32SecondType, Time64MicrosecondType, Time64NanosecondType, TimeUnit,
        TimestampMicrosecondType, TimestampMillisecondType, TimestampNanosecondType, TimestampSecondType,
    },
};
use streamkeeper_types::{Error, Result};

pub(crate) use decimal::parse_decimal;
pub(crate) use number::{parse_boolean, parse_float, parse_integer, write_integer};
pub(crate) use time::{parse_date, parse_time, parse_timestamp};

use crate::base64;

/// A column, matched to its type.
pub(crate) enum Column<'a> {
    Null,
    Boolean(&'a BooleanArray),
    Int8(&'a PrimitiveArray<Int8Type>),
    Int16(&'a PrimitiveArray<Int16Type>),
    Int32(&'a PrimitiveArray<Int32Type>),
    Int64(&'a PrimitiveArray<Int64Type>),
    Float32(&'a PrimitiveArray<Float32Type>),
    Float64(&'a PrimitiveArray<Float64Type>),
    Decimal(&'a Decimal128Array, i8),
    Text(&'a StringArray),
    TextView(&'a StringViewArray),
    Bytes(&'a BinaryArray),
    Date(&'a PrimitiveArray<Date32Type>),
    Time(Ticks<'a>),
    Timestamp(Ticks<'a>, Zone),
    Row(&'a StructArray, Vec<(String, Column<'a>)>),
    List(&'a ListArray, Box<Column<'a>>),
    Map(&'a MapArray, Box<Column<'a>>, Box<Column<'a>>),
}

/// Whether a timestamp is an instant (TIMESTAMP_LTZ, shown in UTC with a `Z`) or a wall clock's reading.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Zone {
    None,
    Utc,
}

/// Times and timestamps of any unit, as raw counts.
pub(crate) struct Ticks<'a> {
    array: &'a dyn Array,
    values: TickValues<'a>,
    /// Ticks of one second.
    per_second: i64,
}

enum TickValues<'a> {
    Narrow(&'a [i32]),
    Wide(&'a [i64]),
}

impl Ticks<'_> {
    fn value(&self, row: usize) -> i64 {
        match self.values {
            TickValues::Narrow(values) => i64::from(values[row]),
            TickValues::Wide(values) => values[row],
        }
    }
}

/// Ticks of one second in `unit`.
pub(crate) fn per_second(unit: TimeUnit) -> i64 {
    match unit {
        TimeUnit::Second => 1,
        TimeUnit::Millisecond => 1_000,
        TimeUnit::Microsecond => 1_000_000,
        TimeUnit::Nanosecond => 1_000_000_000,
    }
}

impl<'a> Column<'a> {
    /// # Errors
    /// `INTERNAL` for a type that no SQL type has; planning refuses those earlier.
    pub(crate) fn new(array: &'a ArrayRef) -> Result<Self> {
        Ok(match array.data_type() {
            DataType::Null => Self::Null,
            DataType::Boolean => Self::Boolean(array.as_boolean()),
            DataType::Int8 => Self::Int8(array.as_primitive()),
            DataType::Int16 => Self::Int16(array.as_primitive()),
            DataType::Int32 => Self::Int32(array.as_primitive()),
            DataType::Int64 => Self::Int64(array.as_primitive()),
            DataType::Float32 => Self::Float32(array.as_primitive()),
            DataType::Float64 => Self::Float64(array.as_primitive()),
            DataType::Decimal128(_, scale) => Self::Decimal(array.as_primitive::<Decimal128Type>(), *scale),
            DataType::Utf8 => Self::Text(array.as_string()),
            DataType::Utf8View => Self::TextView(array.as_string_view()),
            DataType::Binary => Self::Bytes(array.as_binary()),
            DataType::Date32 => Self::Date(array.as_primitive()),
            DataType::Time32(unit) | DataType::Time64(unit) => Self::Time(ticks(array, *unit)),
            DataType::Timestamp(unit, zone) => {
                Self::Timestamp(ticks(array, *unit), if zone.is_some() { Zone::Utc } else { Zone::None })
            }
            DataType::Struct(fields) => {
                let row = array.as_struct();
                let columns = fields.iter().zip(row.columns()).map(|(f, c)| Ok((f.name().clone(), Self::new(c)?)));
                Self::Row(row, columns.collect::<Result<_>>()?)
            }
            DataType::List(_) => {
                let list = array.as_list::<i32>();
                Self::List(list, Box::new(Self::new(list.values())?))
            }
            DataType::Map(_, _) => {
                let map = array.as_map();
                Self::Map(map, Box::new(Self::new(map.keys())?), Box::new(Self::new(map.values())?))
            }
            other => return Err(Error::internal(format!("a column of type {other} cannot be written as text"))),
        })
    }

    pub(crate) fn is_null(&self, row: usize) -> bool {
        match self {
            Self::Null => true,
            Self::Boolean(a) => a.is_null(row),
            Self::Int8(a) => a.is_null(row),
            Self::Int16(a) => a.is_null(row),
            Self::Int32(a) => a.is_null(row),
            Self::Int64(a) => a.is_null(row),
            Self::Float32(a) => a.is_null(row),
            Self::Float64(a) => a.is_null(row),
            Self::Decimal(a, _) => a.is_null(row),
            Self::Text(a) => a.is_null(row),
            Self::TextView(a) => a.is_null(row),
            Self::Bytes(a) => a.is_null(row),
            Self::Date(a) => a.is_null(row),
            Self::Time(t) | Self::Timestamp(t, _) => t.array.is_null(row),
            Self::Row(a, _) => a.is_null(row),
            Self::List(a, _) => a.is_null(row),
            Self::Map(a, _, _) => a.is_null(row),
        }
    }

    /// Appends the text of a scalar that is not NULL. Nested values write what [`Column::print`] writes.
    pub(crate) fn write(&self, row: usize, out: &mut Vec<u8>) {
        match self {
            Self::Null => {}
            Self::Boolean(a) => out.extend_from_slice(if a.value(row) { b"true" } else { b"false" }),
            Self::Int8(a) => number::write_integer(i64::from(a.value(row)), out),
            Self::Int16(a) => number::write_integer(i64::from(a.value(row)), out),
            Self::Int32(a) => number::write_integer(i64::from(a.value(row)), out),
            Self::Int64(a) => number::write_integer(a.value(row), out),
            Self::Float32(a) => number::write_float(a.value(row), out),
            Self::Float64(a) => number::write_float(a.value(row), out),
            Self::Decimal(a, scale) => decimal::write_decimal(a.value(row), *scale, out),
            Self::Text(a) => out.extend_from_slice(a.value(row).as_bytes()),
            Self::TextView(a) => out.extend_from_slice(a.value(row).as_bytes()),
            Self::Bytes(a) => base64::encode(a.value(row), out),
            Self::Date(a) => time::write_date(i64::from(a.value(row)), out),
            Self::Time(t) => time::write_time(t.value(row), t.per_second, out),
            Self::Timestamp(t, zone) => self::write_timestamp(t, *zone, row, b' ', out),
            Self::Row(..) | Self::List(..) | Self::Map(..) => self.print(row, out),
        }
    }

    /// Appends the value for people: NULL, `[a, b]` for arrays and rows, `{k=v}` for maps.
    pub(crate) fn print(&self, row: usize, out: &mut Vec<u8>) {
        if self.is_null(row) {
            out.extend_from_slice(b"NULL");
            return;
        }
        let separator = |first: bool, out: &mut Vec<u8>| {
            if !first {
                out.extend_from_slice(b", ");
            }
        };
        match self {
            Self::Row(_, columns) => {
                out.extend_from_slice(b"+I[");
                for (index, (_, column)) in columns.iter().enumerate() {
                    separator(index == 0, out);
                    column.print(row, out);
                }
                out.push(b']');
            }
            Self::List(list, items) => {
                out.push(b'[');
                let range = range(list.value_offsets(), row);
                for item in range.clone() {
                    separator(item == range.start, out);
                    items.print(item, out);
                }
                out.push(b']');
            }
            Self::Map(map, keys, values) => {
                out.push(b'{');
                let range = range(map.value_offsets(), row);
                for item in range.clone() {
                    separator(item == range.start, out);
                    keys.print(item, out);
                    out.push(b'=');
                    values.print(item, out);
                }
                out.push(b'}');
            }
            scalar => scalar.write(row, out),
        }
    }
}

/// Appends a timestamp with `separator` between date and time, and `Z` behind an instant.
pub(crate) fn write_timestamp(ticks: &Ticks<'_>, zone: Zone, row: usize, separator: u8, out: &mut Vec<u8>) {
    time::write_timestamp(ticks.value(row), ticks.per_second, separator, out);
    if zone == Zone::Utc {
        out.push(b'Z');
    }
}

/// Positions of one list's or map's items among its child's.
pub(crate) fn range(offsets: &[i32], row: usize) -> std::ops::Range<usize> {
    let at = |index: usize| usize::try_from(offsets[index]).unwrap_or_default();
    at(row)..at(row + 1)
}

fn ticks(array: &ArrayRef, unit: TimeUnit) -> Ticks<'_> {
    let values = match (array.data_type(), unit) {
        (DataType::Time32(_), TimeUnit::Second) => {
            TickValues::Narrow(array.as_primitive::<Time32SecondType>().values())
        }
        (DataType::Time32(_), _) => TickValues::Narrow(array.as_primitive::<Time32MillisecondType>().values()),
        (DataType::Time64(_), TimeUnit::Microsecond) => {
            TickValues::Wide(array.as_primitive::<Time64MicrosecondType>().values())
        }
        (DataType::Time64(_), _) => TickValues::Wide(array.as_primitive::<Time64NanosecondType>().values()),
        (_, TimeUnit::Second) => TickValues::Wide(array.as_primitive::<TimestampSecondType>().values()),
        (_, TimeUnit::Millisecond) => TickValues::Wide(array.as_primitive::<TimestampMillisecondType>().values()),
        (_, TimeUnit::Microsecond) => TickValues::Wide(array.as_primitive::<TimestampMicrosecondType>().values()),
        (_, TimeUnit::Nanosecond) => TickValues::Wide(array.as_primitive::<TimestampNanosecondType>().values()),
    };
    Ticks { array, values, per_second: per_second(unit) }
}

/// Appends anything that can be displayed; writing to a vector cannot fail.
fn write_display(value: impl std::fmt::Display, out: &mut Vec<u8>) {
    let _ = write!(out, "{value}");
}
