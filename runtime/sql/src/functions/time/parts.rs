//! EXTRACT and its short forms, FLOOR and CEIL of times, TIMESTAMPADD and TIMESTAMPDIFF.

use arrow::{
    array::ArrayRef,
    datatypes::{DataType, Int32Type, Int64Type, TimeUnit},
};
use datafusion::common::Result;

use super::{Moment, Moments, Unit, calendar, to_array};
use crate::functions::{
    call::Call,
    definition::{
        Definition,
        Param::{Integer, Moment as Time, MomentOrTime, Text},
        Types,
        returns::{bigint, first, int},
    },
    fault::{evaluation, invalid},
};

const WEEK: &str = "The week of ISO 8601.";
const SUNDAY: &str = "1 for Sunday.";

pub(crate) static FUNCTIONS: [Definition; 15] = [
    Definition::new("__extract", "EXTRACT(unit FROM time) → BIGINT", &[Text, MomentOrTime], bigint, extract)
        .note("DOW is 1 for Sunday. Right before 1970 too, where Flink is not."),
    Definition::new("year", "YEAR(date DATE) → BIGINT", &[Time], bigint, |call| short(call, Unit::Year)),
    Definition::new("quarter", "QUARTER(date DATE) → BIGINT", &[Time], bigint, |call| short(call, Unit::Quarter)),
    Definition::new("month", "MONTH(date DATE) → BIGINT", &[Time], bigint, |call| short(call, Unit::Month)),
    Definition::new("week", "WEEK(date DATE) → BIGINT", &[Time], bigint, |call| short(call, Unit::Week)).note(WEEK),
    Definition::new("dayofyear", "DAYOFYEAR(date DATE) → BIGINT", &[Time], bigint, |call| {
        short(call, Unit::DayOfYear)
    }),
    Definition::new("dayofmonth", "DAYOFMONTH(date DATE) → BIGINT", &[Time], bigint, |call| short(call, Unit::Day)),
    Definition::new("dayofweek", "DAYOFWEEK(date DATE) → BIGINT", &[Time], bigint, |call| {
        short(call, Unit::DayOfWeek)
    })
    .note(SUNDAY),
    Definition::new("hour", "HOUR(time TIMESTAMP) → BIGINT", &[MomentOrTime], bigint, |call| short(call, Unit::Hour)),
    Definition::new("minute", "MINUTE(time TIMESTAMP) → BIGINT", &[MomentOrTime], bigint, |call| {
        short(call, Unit::Minute)
    }),
    Definition::new("second", "SECOND(time TIMESTAMP) → BIGINT", &[MomentOrTime], bigint, |call| {
        short(call, Unit::Second)
    }),
    Definition::new("__floor_to", "FLOOR(time TO unit) → type of time", &[MomentOrTime, Text], first, floor)
        .note("Weeks begin on Sunday."),
    Definition::new("__ceil_to", "CEIL(time TO unit) → type of time", &[MomentOrTime, Text], first, ceil)
        .note("Weeks begin on Sunday."),
    Definition::new(
        "timestampadd",
        "TIMESTAMPADD(unit, count INT, time) → type of time",
        &[Text, Integer, Time],
        added,
        add,
    )
    .note("A DATE with a unit below DAY gives TIMESTAMP(3)."),
    Definition::new("timestampdiff", "TIMESTAMPDIFF(unit, from, to) → INT", &[Text, Time, Time], int, difference)
        .note("Whole units, cut towards zero."),
];

fn unit(call: &Call, index: usize) -> Result<Unit> {
    let name = call.constant(index).unwrap_or_default();
    Unit::parse(name).ok_or_else(|| evaluation(format!("`{name}` is no unit of time")))
}

fn out_of_range() -> datafusion::common::DataFusionError {
    evaluation("a time lies outside of the years that the calendar has")
}

fn parts(call: &Call, index: usize, unit: Unit) -> Result<ArrayRef> {
    let moments = Moments::new(call, index)?;
    call.numbers::<Int64Type>(|row| {
        // EPOCH counts from an instant, whatever clock shows it.
        let moment = if unit == Unit::Epoch { moments.instant(row) } else { moments.get(row) };
        moment.map(|moment| calendar::part(unit, moment).ok_or_else(out_of_range)).transpose()
    })
}

fn extract(call: &Call) -> Result<ArrayRef> {
    parts(call, 1, unit(call, 0)?)
}

fn short(call: &Call, unit: Unit) -> Result<ArrayRef> {
    parts(call, 0, unit)
}

fn rounded(call: &Call, round: fn(Unit, Moment) -> Option<Moment>) -> Result<ArrayRef> {
    let (moments, unit) = (Moments::new(call, 0)?, unit(call, 1)?);
    to_array(call, |row| {
        let round = |moment| {
            round(unit, moment).ok_or_else(|| {
                invalid(
                    format!("a time cannot be rounded to {}", unit.name()),
                    "round to SECOND, MINUTE, HOUR, DAY, WEEK, MONTH, QUARTER or YEAR",
                )
            })
        };
        moments.get(row).map(round).transpose()
    })
}

fn floor(call: &Call) -> Result<ArrayRef> {
    rounded(call, calendar::floor)
}

fn ceil(call: &Call) -> Result<ArrayRef> {
    rounded(call, calendar::ceil)
}

fn added(types: &Types) -> Result<DataType> {
    let below_day = types
        .literal(0)
        .and_then(Unit::parse)
        .is_some_and(|unit| !matches!(unit, Unit::Day | Unit::Week) && unit.months().is_none());
    Ok(match types.of(2) {
        DataType::Date32 if below_day => DataType::Timestamp(TimeUnit::Millisecond, None),
        other => other,
    })
}

fn add(call: &Call) -> Result<ArrayRef> {
    let (unit, counts, moments) = (unit(call, 0)?, call.number::<Int64Type>(1)?, Moments::new(call, 2)?);
    to_array(call, |row| {
        let Some((count, moment)) = counts.get(row).zip(moments.get(row)) else { return Ok(None) };
        calendar::add(unit, moment, count).ok_or_else(out_of_range).map(Some)
    })
}

fn difference(call: &Call) -> Result<ArrayRef> {
    let (unit, from, to) = (unit(call, 0)?, Moments::new(call, 1)?, Moments::new(call, 2)?);
    call.numbers::<Int32Type>(|row| {
        let Some((from, to)) = from.get(row).zip(to.get(row)) else { return Ok(None) };
        let count = calendar::difference(unit, from, to).ok_or_else(out_of_range)?;
        // An INT, and it wraps, as in Flink.
        #[expect(clippy::cast_possible_truncation, reason = "wraps on purpose")]
        let count = count as i32;
        Ok(Some(count))
    })
}
