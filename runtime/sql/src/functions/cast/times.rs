//! To DATE, TIME, TIMESTAMP and TIMESTAMP_LTZ.

use arrow::{array::ArrayRef, datatypes::DataType};
use datafusion::common::Result;

use super::OnBadText;
use crate::{
    functions::{
        call::Call,
        definition::is_text,
        fault::evaluation_with,
        time::{
            DAY, Moment, Moments, instants_to_array,
            pattern::{parse_clock, parse_date, parse_timestamp, truncated, write_timestamp},
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
            let moment = on_bad.value(parse(text), text, to)?.map(|moment| truncated(moment, precision));
            moment.map_or(Ok(None), |moment| held(moment, to, on_bad))
        });
    }
    let moments = Moments::new(call, 0)?;
    let is_instant = matches!(array.data_type(), DataType::Timestamp(_, Some(_)));
    if is_instant && matches!(to, SqlType::TimestampLtz(_)) {
        return instants_to_array(call, |row| {
            moments.instant(row).map_or(Ok(None), |moment| held(truncated(moment, precision), to, on_bad))
        });
    }
    // Everything else meets on the wall clock of the session's zone.
    to_array(call, |row| {
        let Some(moment) = moments.get(row) else { return Ok(None) };
        if *to == SqlType::Date { Ok(Some(moment)) } else { held(truncated(moment, precision), to, on_bad) }
    })
}

/// The moment, if the type holds it: nanoseconds in 64 bits reach from 1677 to 2262.
fn held(moment: Moment, to: &SqlType, on_bad: OnBadText) -> Result<Option<Moment>> {
    let DataType::Timestamp(unit, _) = to.arrow() else { return Ok(Some(moment)) };
    // A zone may move the moment by a day.
    let is_held =
        |days: i64| Moment { millis: moment.millis.saturating_add(days * DAY), ..moment }.in_unit(unit).is_some();
    if is_held(-1) && is_held(1) {
        return Ok(Some(moment));
    }
    if on_bad == OnBadText::Null {
        return Ok(None);
    }
    let mut shown = String::new();
    write_timestamp(moment, 3, &mut shown);
    let cause = format!("{shown} is not within the years 1678 to 2261, which {to} holds");
    Err(evaluation_with(
        cause,
        "TIMESTAMP(6) holds the years 1 to 9999; TRY_CAST gives NULL instead of failing the job",
    ))
}
