//! Rowtime columns as milliseconds, and by what time rows are ordered.

use arrow::{
    array::{Array, ArrayRef, AsArray, PrimitiveArray, TimestampMillisecondArray},
    compute::cast,
    datatypes::{
        ArrowTimestampType, DataType, TimeUnit, TimestampMicrosecondType, TimestampMillisecondType,
        TimestampNanosecondType, TimestampSecondType,
    },
};
use streamkeeper_types::{Code, Error, Millis, Result, ResultExt};

/// Name of a rowtime in state tables.
pub(crate) const ROWTIME: &str = "__rowtime";

/// What `ORDER BY` in an OVER clause names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TimeOrder {
    /// Rows in the order in which they come.
    ProcessingTime,
    /// This TIMESTAMP input column.
    Rowtime(usize),
}

/// Replaces `out` by the column's values in milliseconds; digits beyond are cut towards the past.
///
/// # Errors
/// [`Code::RecordInvalid`] for NULL.
pub(crate) fn read_millis(column: &ArrayRef, out: &mut Vec<Millis>) -> Result<()> {
    if column.null_count() > 0 {
        return Err(Error::new(Code::RecordInvalid, "a rowtime is NULL")
            .way_out("filter such rows out, or give them a time by COALESCE in a computed column"));
    }
    read_millis_of_any(column, out)
}

/// As [`read_millis`], but NULL is allowed and gives anything.
pub(crate) fn read_millis_of_any(column: &ArrayRef, out: &mut Vec<Millis>) -> Result<()> {
    out.clear();
    match column.data_type() {
        DataType::Timestamp(TimeUnit::Second, _) => {
            out.extend(values::<TimestampSecondType>(column).iter().map(|v| v.saturating_mul(1_000)));
        }
        DataType::Timestamp(TimeUnit::Millisecond, _) => {
            out.extend_from_slice(values::<TimestampMillisecondType>(column));
        }
        DataType::Timestamp(TimeUnit::Microsecond, _) => {
            out.extend(values::<TimestampMicrosecondType>(column).iter().map(|v| v.div_euclid(1_000)));
        }
        DataType::Timestamp(TimeUnit::Nanosecond, _) => {
            out.extend(values::<TimestampNanosecondType>(column).iter().map(|v| v.div_euclid(1_000_000)));
        }
        other => return Err(Error::internal(format!("a rowtime column of type {other}"))),
    }
    Ok(())
}

fn values<T: ArrowTimestampType>(column: &ArrayRef) -> &[i64] {
    let column: &PrimitiveArray<T> = column.as_primitive();
    column.values()
}

/// Milliseconds as a column of a TIMESTAMP type.
pub(crate) fn timestamps(millis: Vec<Millis>, data_type: &DataType) -> Result<ArrayRef> {
    let DataType::Timestamp(_, zone) = data_type else {
        return Err(Error::internal(format!("a time column of type {data_type}")));
    };
    let array = TimestampMillisecondArray::from(millis).with_timezone_opt(zone.clone());
    cast(&array, data_type).or_code(Code::Internal, || "times of windows".to_owned())
}
