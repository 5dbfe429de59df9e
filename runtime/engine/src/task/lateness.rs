//! Where a source cuts its batches so that lateness is judged as if a watermark followed each row (decision 13).
//!
//! ```text
//!  rowtime   10  12  20 │  3   21 …        watermark = rowtime − 5
//!  running    5   7  15 │ 15   16          the fourth row lies at or behind 15: the watermark 15 leaves first
//! ```
//! Only rows that are late need the cut: for every other row it makes no difference where the watermark stands. So
//! results depend neither on the size of batches nor on how often watermarks are put out.

use std::sync::Arc;

use arrow::{
    array::{Array, ArrayRef, AsArray, Int64Array},
    buffer::ScalarBuffer,
    datatypes::{
        DataType, TimeUnit, TimestampMicrosecondType, TimestampMillisecondType, TimestampNanosecondType,
        TimestampSecondType,
    },
};
use streamkeeper_types::{Code, Error, Result, Watermark};

/// Before row `row` leaves, `watermark` must.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Cut {
    pub row: usize,
    pub watermark: Watermark,
}

/// Watermarks around one batch of one split.
#[derive(Debug, Clone, Copy)]
pub(super) struct Before {
    /// Of the split, before the batch.
    pub split: Watermark,
    /// How far the output may rise by this split alone.
    pub others: Watermark,
    /// Last one put out.
    pub emitted: Watermark,
}

/// Fills `cuts` and gives the split's watermark after the batch. One pass; most batches need no more than two minima.
pub(super) fn cuts(times: &[i64], marks: &[i64], before: Before, cuts: &mut Vec<Cut>) -> Watermark {
    cuts.clear();
    let highest = marks.iter().copied().max().unwrap_or(i64::MIN).max(before.split.0);
    let earliest = times.iter().copied().min().unwrap_or(i64::MAX);
    if earliest > highest.min(before.others.0) {
        return Watermark(highest);
    }
    let mut split = before.split.0;
    let mut emitted = before.emitted.0;
    for (row, (time, mark)) in times.iter().zip(marks).enumerate() {
        let running = split.min(before.others.0);
        if *time <= running && running > emitted {
            cuts.push(Cut { row, watermark: Watermark(running) });
            emitted = running;
        }
        split = split.max(*mark);
    }
    Watermark(split)
}

/// Rowtimes in milliseconds, rounded down.
///
/// # Errors
/// `RECORD_INVALID` for a NULL, `INTERNAL` for a column that is no timestamp.
pub(super) fn rowtimes(column: &ArrayRef) -> Result<ScalarBuffer<i64>> {
    if column.null_count() > 0 {
        return Err(Error::new(Code::RecordInvalid, "the rowtime of a record is NULL")
            .way_out("filter such records out before the watermark, or compute the column so that it is never NULL"));
    }
    Ok(match column.data_type() {
        DataType::Timestamp(TimeUnit::Millisecond, _) => {
            column.as_primitive::<TimestampMillisecondType>().values().clone()
        }
        DataType::Timestamp(TimeUnit::Second, _) => {
            column.as_primitive::<TimestampSecondType>().values().iter().map(|t| t.saturating_mul(1_000)).collect()
        }
        DataType::Timestamp(TimeUnit::Microsecond, _) => {
            column.as_primitive::<TimestampMicrosecondType>().values().iter().map(|t| t.div_euclid(1_000)).collect()
        }
        DataType::Timestamp(TimeUnit::Nanosecond, _) => {
            column.as_primitive::<TimestampNanosecondType>().values().iter().map(|t| t.div_euclid(1_000_000)).collect()
        }
        other => return Err(Error::internal(format!("the rowtime column has type {other}"))),
    })
}

/// Values of the WATERMARK expression; a NULL promises nothing.
pub(super) fn marks(values: Int64Array) -> ScalarBuffer<i64> {
    match values.nulls() {
        None => values.values().clone(),
        Some(nulls) => values
            .values()
            .iter()
            .zip(nulls.iter())
            .map(|(value, valid)| if valid { *value } else { i64::MIN })
            .collect(),
    }
}

/// Names the split in an error about one of its records.
pub(super) fn at_split(split: &Arc<str>) -> impl FnOnce(Error) -> Error {
    move |error| error.at(format!("split {split}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(times: &[i64], marks: &[i64], before: (i64, i64, i64), expected: &[(usize, i64)], after: i64) {
        let mut found = Vec::new();
        let before = Before { split: Watermark(before.0), others: Watermark(before.1), emitted: Watermark(before.2) };
        let split = cuts(times, marks, before, &mut found);
        assert_eq!(found.iter().map(|c| (c.row, c.watermark.0)).collect::<Vec<_>>(), expected);
        assert_eq!(split, Watermark(after));
    }

    #[test]
    fn a_batch_without_late_rows_is_not_cut() {
        check(&[10, 12, 11], &[5, 7, 6], (i64::MIN, i64::MAX, i64::MIN), &[], 7);
    }

    #[test]
    fn the_watermark_leaves_before_the_first_row_at_or_behind_it() {
        check(&[10, 12, 20, 3, 15, 21, 16], &[5, 7, 15, -2, 10, 16, 11], (0, i64::MAX, 0), &[(3, 15), (6, 16)], 16);
    }

    #[test]
    fn a_watermark_that_is_already_out_needs_no_cut() {
        check(&[3, 4], &[-2, -1], (15, i64::MAX, 15), &[], 15);
        check(&[3, 4], &[-2, -1], (15, i64::MAX, 9), &[(0, 15)], 15);
    }

    #[test]
    fn another_split_bounds_the_running_watermark() {
        check(&[20, 9, 7], &[20, 9, 7], (0, 8, 0), &[(2, 8)], 20);
    }
}
