//! Arithmetic of the calendar: parts, rounding, adding, differences.

use chrono::{Datelike, Months, NaiveDate};

use super::{
    Unit,
    moment::{DAY, Moment, clock_of, days_of},
};

/// A part of a moment; `None` outside the years that a calendar has.
pub(crate) fn part(unit: Unit, moment: Moment) -> Option<i64> {
    let (hour, minute, second) = clock_of(moment);
    Some(match unit {
        Unit::Hour => hour,
        Unit::Minute => minute,
        Unit::Second => second,
        Unit::Millisecond => moment.subsecond() / 1_000_000,
        Unit::Microsecond => moment.subsecond() / 1_000,
        Unit::Nanosecond => moment.subsecond(),
        Unit::Epoch => moment.millis.div_euclid(1_000),
        // 1970-01-01 was a Thursday.
        Unit::DayOfWeek => (moment.days() + 4).rem_euclid(7) + 1,
        Unit::IsoDayOfWeek => (moment.days() + 3).rem_euclid(7) + 1,
        _ => date_part(unit, moment.date()?),
    })
}

fn date_part(unit: Unit, date: NaiveDate) -> i64 {
    let year = i64::from(date.year());
    match unit {
        Unit::Millennium => (year + 999).div_euclid(1_000),
        Unit::Century => (year + 99).div_euclid(100),
        Unit::Decade => year.div_euclid(10),
        Unit::IsoYear => i64::from(date.iso_week().year()),
        Unit::Quarter => i64::from(date.month0() / 3 + 1),
        Unit::Month => i64::from(date.month()),
        Unit::Week => i64::from(date.iso_week().week()),
        Unit::Day => i64::from(date.day()),
        Unit::DayOfYear => i64::from(date.ordinal()),
        _ => year,
    }
}

/// The greatest moment at or below that begins a unit; `None` for units that nothing can be rounded to.
pub(crate) fn floor(unit: Unit, moment: Moment) -> Option<Moment> {
    if unit == Unit::Millisecond {
        return Some(Moment::of_millis(moment.millis));
    }
    // Weeks begin on Sunday, as Flink's do here.
    if unit == Unit::Week {
        return Some(Moment::of_days(moment.days() - (moment.days() + 4).rem_euclid(7)));
    }
    if let Some(size) = unit.millis() {
        return Some(Moment::of_millis(moment.millis.div_euclid(size) * size));
    }
    let date = moment.date()?;
    let (year, month) = match unit {
        Unit::Month => (date.year(), date.month()),
        Unit::Quarter => (date.year(), date.month0() / 3 * 3 + 1),
        Unit::Year => (date.year(), 1),
        Unit::Decade => (date.year().div_euclid(10) * 10, 1),
        Unit::Century => ((date.year() - 1).div_euclid(100) * 100 + 1, 1),
        Unit::Millennium => ((date.year() - 1).div_euclid(1_000) * 1_000 + 1, 1),
        _ => return None,
    };
    Some(Moment::new(NaiveDate::from_ymd_opt(year, month, 1)?, 0, 0))
}

/// The smallest moment at or above that begins a unit.
pub(crate) fn ceil(unit: Unit, moment: Moment) -> Option<Moment> {
    let floor = floor(unit, moment)?;
    if floor == moment { Some(moment) } else { add(unit, floor, 1) }
}

/// Adds whole units. A day that the target month lacks becomes its last.
pub(crate) fn add(unit: Unit, moment: Moment, count: i64) -> Option<Moment> {
    if let Some(size) = unit.millis() {
        return Some(Moment { millis: moment.millis.checked_add(size.checked_mul(count)?)?, ..moment });
    }
    if matches!(unit, Unit::Microsecond | Unit::Nanosecond) {
        let nanos = i128::from(count) * if unit == Unit::Microsecond { 1_000 } else { 1 } + i128::from(moment.nanos);
        let millis = moment.millis.checked_add(i64::try_from(nanos.div_euclid(1_000_000)).ok()?)?;
        return Some(Moment { millis, nanos: u32::try_from(nanos.rem_euclid(1_000_000)).ok()? });
    }
    let months = unit.months()?.checked_mul(count)?;
    let distance = Months::new(u32::try_from(months.unsigned_abs()).ok()?);
    let date = moment.date()?;
    let date = if months < 0 { date.checked_sub_months(distance)? } else { date.checked_add_months(distance)? };
    Some(Moment { millis: days_of(date) * DAY + moment.millis_of_day(), nanos: moment.nanos })
}

/// Whole units from `from` to `to`, cut towards zero.
pub(crate) fn difference(unit: Unit, from: Moment, to: Moment) -> Option<i64> {
    let nanos = |m: Moment| i128::from(m.millis) * 1_000_000 + i128::from(m.nanos);
    if let Some(size) = unit.millis() {
        return i64::try_from((nanos(to) - nanos(from)) / (i128::from(size) * 1_000_000)).ok();
    }
    match unit {
        Unit::Microsecond => return i64::try_from((nanos(to) - nanos(from)) / 1_000).ok(),
        Unit::Nanosecond => return i64::try_from(nanos(to) - nanos(from)).ok(),
        _ => {}
    }
    let months = |m: Moment| m.date().map(|date| i64::from(date.year()) * 12 + i64::from(date.month0()));
    let mut total = months(to)? - months(from)?;
    // A month that has not gone by entirely does not count.
    let within = |m: Moment| Some((m.date()?.day(), m.millis_of_day(), m.nanos));
    if total > 0 && within(to)? < within(from)? {
        total -= 1;
    } else if total < 0 && within(to)? > within(from)? {
        total += 1;
    }
    Some(total / unit.months()?)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::functions::time::pattern::parse_timestamp;

    fn at(text: &str) -> Moment {
        parse_timestamp(text).unwrap()
    }

    #[test]
    fn parts_are_those_of_the_calendar_before_1970_too() {
        let check = |unit, text: &str, expected| assert_eq!(part(unit, at(text)), Some(expected), "{unit:?} of {text}");
        check(Unit::DayOfWeek, "2024-03-03 00:00:00", 1);
        check(Unit::DayOfWeek, "2024-03-09 00:00:00", 7);
        check(Unit::IsoDayOfWeek, "2024-03-03 00:00:00", 7);
        check(Unit::Week, "2021-01-03 00:00:00", 53);
        check(Unit::Quarter, "2021-12-31 00:00:00", 4);
        check(Unit::Hour, "1969-12-31 23:00:01.5", 23);
        check(Unit::Second, "1969-12-31 23:00:01.5", 1);
        check(Unit::Millisecond, "1969-12-31 23:00:01.5", 500);
        check(Unit::Century, "2000-01-01 00:00:00", 20);
        check(Unit::Century, "2001-01-01 00:00:00", 21);
    }

    #[test]
    fn rounding_keeps_borders_and_moves_everything_else() {
        let check = |unit, text: &str, down: &str, up: &str| {
            assert_eq!(floor(unit, at(text)), Some(at(down)), "{unit:?} below {text}");
            assert_eq!(ceil(unit, at(text)), Some(at(up)), "{unit:?} above {text}");
        };
        check(Unit::Hour, "1969-12-31 22:30:00", "1969-12-31 22:00:00", "1969-12-31 23:00:00");
        check(Unit::Day, "2020-02-29 00:00:00", "2020-02-29 00:00:00", "2020-02-29 00:00:00");
        check(Unit::Week, "2024-03-06 05:00:00", "2024-03-03 00:00:00", "2024-03-10 00:00:00");
        check(Unit::Month, "2020-02-29 05:00:00", "2020-02-01 00:00:00", "2020-03-01 00:00:00");
        check(Unit::Quarter, "2020-05-29 05:00:00", "2020-04-01 00:00:00", "2020-07-01 00:00:00");
        check(Unit::Year, "2020-05-29 05:00:00", "2020-01-01 00:00:00", "2021-01-01 00:00:00");
    }

    #[test]
    fn months_are_added_to_the_last_day_at_most() {
        assert_eq!(add(Unit::Month, at("2020-01-31 10:00:00"), 1), Some(at("2020-02-29 10:00:00")));
        assert_eq!(add(Unit::Year, at("2020-02-29 10:00:00"), -1), Some(at("2019-02-28 10:00:00")));
        assert_eq!(add(Unit::Day, at("2020-02-29 10:00:00"), i64::MAX), None);
    }

    #[test]
    fn differences_count_whole_units() {
        let check = |unit, from: &str, to: &str, expected| {
            assert_eq!(difference(unit, at(from), at(to)), Some(expected), "{unit:?} {from} {to}");
            assert_eq!(difference(unit, at(to), at(from)), Some(-expected), "{unit:?} {to} {from}");
        };
        check(Unit::Day, "2020-01-01 12:00:00", "2020-01-03 11:59:59", 1);
        check(Unit::Month, "2020-01-31 00:00:00", "2020-02-29 00:00:00", 0);
        check(Unit::Month, "2020-01-15 00:00:00", "2020-03-15 00:00:00", 2);
        check(Unit::Year, "2019-03-01 00:00:01", "2020-03-01 00:00:00", 0);
        check(Unit::Second, "2020-01-01 00:00:00", "2020-01-01 00:01:00.9", 60);
    }
}
