//! To DATE, TIME, TIMESTAMP and TIMESTAMP_LTZ.

use arrow::{array::ArrayRef, datatypes::DataType};
use datafusion::common::Result;

use super::OnBadText;
use crate::{
    functions::{
        call::Call,
        definition::is_text,
        time::{
            Moment, Moments, instants_to_array,
            pattern::{parse_clock, parse_date, parse_timestamp, truncated},
            to_array,
        },
    },
    types::SqlType,
};

pub(super) fn to_time(call: &Call, to: &SqlType, on_bad: OnBadText) -> Result<ArrayRef> {
    let precision = match to {
        SqlType::Time(precision) | SqlType::Timestamp(precision) | SqlType::TimestampLtz(precision) => *precision,
        _ => 0,
    };
    let array = call.array(0)?;
    if is_text(array.data_type()) {
        let texts = call.text(0)?;
        let parse: fn(&str) -> Option<Moment> = match to {
            // A date may have a time behind it, which is dropped.
            SqlType::Date => |text| parse_date(text).or_else(|| parse_timestamp(text)),
            SqlType::Time(_) => |text| parse_clock(text.trim()).map(|(millis, nanos)| Moment { millis, nanos }),
            _ => parse_timestamp,
        };
        return to_array(call, |row| {
            let Some(text) = texts.get(row) else { return Ok(None) };
            Ok(on_bad.value(parse(text), text, to)?.map(|moment| truncated(moment, precision)))
        });
    }
    let moments = Moments::new(call, 0)?;
    let is_instant = matches!(array.data_type(), DataType::Timestamp(_, Some(_)));
    if is_instant && matches!(to, SqlType::TimestampLtz(_)) {
        return instants_to_array(call, |row| Ok(moments.instant(row).map(|moment| truncated(moment, precision))));
    }
    // Everything else meets on the wall clock of the session's zone.
    to_array(call, |row| {
        Ok(moments.get(row).map(|moment| if *to == SqlType::Date { moment } else { truncated(moment, precision) }))
    })
}
