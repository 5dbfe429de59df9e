//! Dates, times and timestamps in the proleptic Gregorian calendar.

const SECONDS_OF_DAY: i64 = 86_400;

/// Year, month and day of a number of days since 1970-01-01, by counting 400-year cycles from a 1st of March.
fn civil(days: i64) -> (i64, i64, i64) {
    let shifted = days + 719_468;
    let cycle = shifted.div_euclid(146_097);
    let day_of_cycle = shifted.rem_euclid(146_097);
    let year_of_cycle = (day_of_cycle - day_of_cycle / 1_460 + day_of_cycle / 36_524 - day_of_cycle / 146_096) / 365;
    let day_of_year = day_of_cycle - (365 * year_of_cycle + year_of_cycle / 4 - year_of_cycle / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    (cycle * 400 + year_of_cycle + i64::from(month <= 2), month, day)
}

/// Days since 1970-01-01 of a date that exists.
fn days_of(year: i64, month: i64, day: i64) -> Option<i64> {
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let length = match month {
        1 | 3 | 5 | 7 | 8 | 10 | 12 => 31,
        4 | 6 | 9 | 11 => 30,
        2 => 28 + i64::from(leap),
        _ => return None,
    };
    if !(1..=length).contains(&day) {
        return None;
    }
    let shifted = if month <= 2 { year - 1 } else { year };
    let cycle = shifted.div_euclid(400);
    let year_of_cycle = shifted.rem_euclid(400);
    let month_from_march = (month + 9) % 12;
    let day_of_year = (153 * month_from_march + 2) / 5 + day - 1;
    Some(cycle * 146_097 + year_of_cycle * 365 + year_of_cycle / 4 - year_of_cycle / 100 + day_of_year - 719_468)
}

/// Appends `value` with `N` digits at least; more if it needs them.
fn write_padded<const N: usize>(value: i64, out: &mut Vec<u8>) {
    let mut digits = [b'0'; N];
    let mut rest = value;
    for digit in digits.iter_mut().rev() {
        *digit = b'0' + (rest % 10) as u8;
        rest /= 10;
    }
    if rest > 0 {
        super::number::write_integer(rest, out);
    }
    out.extend_from_slice(&digits);
}

/// Appends `YYYY-MM-DD`.
pub(super) fn write_date(days: i64, out: &mut Vec<u8>) {
    let (year, month, day) = civil(days);
    if year < 0 {
        out.push(b'-');
    }
    write_padded::<4>(year.abs(), out);
    out.push(b'-');
    write_padded::<2>(month, out);
    out.push(b'-');
    write_padded::<2>(day, out);
}

/// Appends `HH:MM:SS[.f…]` without zeros at the end of the fraction.
pub(super) fn write_time(ticks: i64, per_second: i64, out: &mut Vec<u8>) {
    let seconds = ticks.div_euclid(per_second);
    write_padded::<2>(seconds / 3_600, out);
    out.push(b':');
    write_padded::<2>(seconds / 60 % 60, out);
    out.push(b':');
    write_padded::<2>(seconds % 60, out);
    let mut rest = ticks.rem_euclid(per_second);
    if rest == 0 {
        return;
    }
    out.push(b'.');
    let mut unit = per_second;
    while rest > 0 {
        unit /= 10;
        out.push(b'0' + (rest / unit) as u8);
        rest %= unit;
    }
}

/// Appends `YYYY-MM-DD HH:MM:SS[.f…]` with `separator` between date and time.
pub(super) fn write_timestamp(ticks: i64, per_second: i64, separator: u8, out: &mut Vec<u8>) {
    let per_day = SECONDS_OF_DAY * per_second;
    write_date(ticks.div_euclid(per_day), out);
    out.push(separator);
    write_time(ticks.rem_euclid(per_day), per_second, out);
}

/// What is left of a text that is read from its front.
struct Cursor<'a>(&'a [u8]);

impl Cursor<'_> {
    fn number(&mut self, digits: usize) -> Option<i64> {
        let (text, rest) = self.0.split_at_checked(digits)?;
        self.0 = rest;
        text.iter().try_fold(0, |number, byte| byte.is_ascii_digit().then(|| number * 10 + i64::from(byte - b'0')))
    }

    fn take(&mut self, byte: u8) -> Option<()> {
        self.0 = self.0.strip_prefix(&[byte])?;
        Some(())
    }

    fn date(&mut self) -> Option<i64> {
        let year = self.number(4)?;
        self.take(b'-')?;
        let month = self.number(2)?;
        self.take(b'-')?;
        days_of(year, month, self.number(2)?)
    }

    /// Ticks since midnight; seconds and fraction may be missing, digits beyond the unit are cut.
    fn time(&mut self, per_second: i64) -> Option<i64> {
        let hour = self.number(2).filter(|h| *h < 24)?;
        self.take(b':')?;
        let minute = self.number(2).filter(|m| *m < 60)?;
        let mut ticks = (hour * 3_600 + minute * 60) * per_second;
        if self.take(b':').is_none() {
            return Some(ticks);
        }
        ticks += self.number(2).filter(|s| *s < 60)? * per_second;
        if self.take(b'.').is_none() {
            return Some(ticks);
        }
        let digits = self.0.iter().take_while(|b| b.is_ascii_digit()).count();
        if digits == 0 || digits > 9 {
            return None;
        }
        let mut unit = per_second;
        for _ in 0..digits {
            let digit = self.number(1)?;
            unit /= 10;
            ticks += digit * unit;
        }
        Some(ticks)
    }

    /// `Z` or `±HH:MM`, in seconds east of UTC; 0 if there is none.
    fn offset(&mut self) -> Option<i64> {
        let sign = match self.0.first() {
            None => return Some(0),
            Some(b'Z') => {
                self.take(b'Z')?;
                return Some(0);
            }
            Some(b'+') => 1,
            Some(b'-') => -1,
            Some(_) => return None,
        };
        self.0 = &self.0[1..];
        let hours = self.number(2).filter(|h| *h < 24)?;
        self.take(b':')?;
        Some(sign * (hours * 3_600 + self.number(2).filter(|m| *m < 60)? * 60))
    }

    fn end<T>(&self, value: T) -> Option<T> {
        self.0.is_empty().then_some(value)
    }
}

/// `YYYY-MM-DD` as days since 1970-01-01.
pub(crate) fn parse_date(text: &[u8]) -> Option<i32> {
    let mut cursor = Cursor(text.trim_ascii());
    let days = cursor.date()?;
    cursor.end(i32::try_from(days).ok()?)
}

/// `HH:MM[:SS[.f…]]` as ticks since midnight.
pub(crate) fn parse_time(text: &[u8], per_second: i64) -> Option<i64> {
    let mut cursor = Cursor(text.trim_ascii());
    let ticks = cursor.time(per_second)?;
    cursor.end(ticks)
}

/// `YYYY-MM-DD HH:MM[:SS[.f…]]`, also with `T` between. An instant may have `Z` or an offset and is in UTC without;
/// a wall clock's reading may have neither.
pub(crate) fn parse_timestamp(text: &[u8], per_second: i64, zone: super::Zone) -> Option<i64> {
    let mut cursor = Cursor(text.trim_ascii());
    let days = cursor.date()?;
    cursor.take(b' ').or_else(|| cursor.take(b'T'))?;
    let time = cursor.time(per_second)?;
    let offset = if zone == super::Zone::Utc { cursor.offset()? } else { 0 };
    let midnight = days.checked_mul(SECONDS_OF_DAY * per_second)?;
    cursor.end(midnight.checked_add(time)?.checked_sub(offset * per_second)?)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use chrono::{DateTime, NaiveDate};
    use proptest::prelude::*;

    use super::*;
    use crate::text::Zone;

    #[test]
    fn timestamps_are_read_in_both_standards() {
        let instant = 1_431_857_103_250;
        for (text, zone) in [
            ("2015-05-17 10:05:03.25", Zone::None),
            ("2015-05-17T10:05:03.250", Zone::None),
            ("2015-05-17 10:05:03.250999", Zone::None),
            ("2015-05-17T10:05:03.25Z", Zone::Utc),
            ("2015-05-17 12:05:03.25+02:00", Zone::Utc),
            ("2015-05-17 10:05:03.25", Zone::Utc),
        ] {
            assert_eq!(parse_timestamp(text.as_bytes(), 1_000, zone), Some(instant), "{text}");
        }
    }

    #[test]
    fn what_is_no_time_is_refused() {
        for bad in [
            "",
            "2015-05-17",
            "2015-02-29 00:00:00",
            "2015-13-01 00:00:00",
            "2015-05-17 24:00:00",
            "2015-05-17 10:05:60",
            "2015-05-17 10:05:03.",
            "2015-05-17 10:05:03Z",
            "15-05-17 10:05:03",
            "2015-05-17x10:05:03",
        ] {
            assert_eq!(parse_timestamp(bad.as_bytes(), 1_000, Zone::None), None, "{bad}");
        }
    }

    proptest! {
        #[test]
        fn dates_agree_with_chrono(days in -700_000_i64..2_900_000) {
            let mut out = Vec::new();
            write_date(days, &mut out);
            let date = NaiveDate::from_ymd_opt(1970, 1, 1).unwrap() + chrono::Duration::days(days);
            prop_assert_eq!(String::from_utf8(out.clone()).unwrap(), date.format("%Y-%m-%d").to_string());
            prop_assert_eq!(parse_date(&out), Some(i32::try_from(days).unwrap()));
        }

        #[test]
        fn timestamps_agree_with_chrono_and_read_back(micros in -62_000_000_000_000_000_i64..253_000_000_000_000_000) {
            let mut out = Vec::new();
            write_timestamp(micros, 1_000_000, b' ', &mut out);
            let time = DateTime::from_timestamp_micros(micros).unwrap().naive_utc();
            let text = String::from_utf8(out.clone()).unwrap();
            prop_assert_eq!(&text[..19], time.format("%Y-%m-%d %H:%M:%S").to_string());
            prop_assert_eq!(parse_timestamp(&out, 1_000_000, Zone::None), Some(micros));
        }

        #[test]
        fn no_text_panics(text: Vec<u8>) {
            let _ = parse_timestamp(&text, 1_000_000_000, Zone::Utc);
            let _ = parse_time(&text, 1_000);
            let _ = parse_date(&text);
        }
    }
}
