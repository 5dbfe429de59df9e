//! Which byte form a data type has.

use arrow::datatypes::{DataType, IntervalUnit, TimeUnit};
use streamkeeper_types::{Code, Error, Result};

/// Byte form of the values of one type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Codec {
    Null,
    Bool,
    Int {
        width: IntWidth,
        signed: bool,
    },
    /// Seconds or milliseconds, written as microseconds so that equal instants have equal bytes.
    Micros {
        per_unit: i64,
    },
    DayTime,
    MonthDayNano,
    F32,
    F64,
    I128,
    Bytes,
    Row(Vec<Self>),
    List(Box<Self>),
}

/// Bytes of an integer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum IntWidth {
    One = 1,
    Two = 2,
    Four = 4,
    Eight = 8,
}

/// What the bytes are for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Use {
    /// Equal values must have equal bytes: −0.0 is 0.0, there is one NaN. No MAP.
    Key,
    /// The value comes back bit for bit.
    Value,
}

impl Codec {
    /// # Errors
    /// `SQL_UNSUPPORTED` for a type without a byte form in that use.
    pub(crate) fn of(data_type: &DataType, usage: Use) -> Result<Self> {
        let int = |width, signed| Self::Int { width, signed };
        Ok(match data_type {
            DataType::Null => Self::Null,
            DataType::Boolean => Self::Bool,
            DataType::Int8 => int(IntWidth::One, true),
            DataType::Int16 => int(IntWidth::Two, true),
            DataType::Int32 | DataType::Date32 | DataType::Interval(IntervalUnit::YearMonth) => {
                int(IntWidth::Four, true)
            }
            DataType::Timestamp(TimeUnit::Second, _) | DataType::Time32(TimeUnit::Second) => {
                Self::Micros { per_unit: 1_000_000 }
            }
            DataType::Timestamp(TimeUnit::Millisecond, _) | DataType::Time32(_) => Self::Micros { per_unit: 1_000 },
            DataType::Int64
            | DataType::Date64
            | DataType::Time64(_)
            | DataType::Timestamp(_, _)
            | DataType::Duration(_) => int(IntWidth::Eight, true),
            DataType::UInt8 => int(IntWidth::One, false),
            DataType::UInt16 => int(IntWidth::Two, false),
            DataType::UInt32 => int(IntWidth::Four, false),
            DataType::UInt64 => int(IntWidth::Eight, false),
            DataType::Interval(IntervalUnit::DayTime) => Self::DayTime,
            DataType::Interval(IntervalUnit::MonthDayNano) => Self::MonthDayNano,
            DataType::Float32 => Self::F32,
            DataType::Float64 => Self::F64,
            DataType::Decimal128(_, _) => Self::I128,
            DataType::Utf8
            | DataType::LargeUtf8
            | DataType::Utf8View
            | DataType::Binary
            | DataType::LargeBinary
            | DataType::BinaryView
            | DataType::FixedSizeBinary(_) => Self::Bytes,
            DataType::Struct(fields) => {
                Self::Row(fields.iter().map(|f| Self::of(f.data_type(), usage)).collect::<Result<_>>()?)
            }
            DataType::List(item) | DataType::LargeList(item) => {
                Self::List(Box::new(Self::of(item.data_type(), usage)?))
            }
            DataType::Map(entries, _) if usage == Use::Value => {
                Self::List(Box::new(Self::of(entries.data_type(), usage)?))
            }
            other => return Err(unsupported(other, usage)),
        })
    }

    /// Bytes of a value that is not NULL, if all values have as many.
    pub(crate) fn fixed_len(&self) -> Option<usize> {
        match self {
            Self::Bool => Some(1),
            Self::Int { width, .. } => Some(*width as usize),
            Self::Micros { .. } | Self::DayTime | Self::F64 => Some(8),
            Self::F32 => Some(4),
            Self::MonthDayNano | Self::I128 => Some(16),
            Self::Null | Self::Bytes | Self::Row(_) | Self::List(_) => None,
        }
    }
}

fn unsupported(data_type: &DataType, usage: Use) -> Error {
    let what = match usage {
        Use::Key => "a key",
        Use::Value => "state",
    };
    let error = Error::new(Code::SqlUnsupported, format!("a value of type {data_type} cannot be part of {what}"));
    match data_type {
        DataType::Map(_, _) => error.way_out("use single entries of the map, as in `m['name']`"),
        _ => error.way_out("cast it to another type first"),
    }
}
