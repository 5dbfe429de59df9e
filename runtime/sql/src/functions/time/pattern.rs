//! Java's date patterns (`yyyy-MM-dd HH:mm:ss.SSS`), both ways, and the fixed forms that CAST reads and writes.

use std::fmt::Write;

use chrono::{Datelike, NaiveDate};

use super::moment::{Moment, clock_of, hour12};

/// A compiled pattern.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Pattern(Vec<Item>);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Item {
    Text(String),
    /// A letter and how often it stands in a row.
    Field(char, usize),
}

const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];
const DAYS: [&str; 7] = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"];

/// Letters with a meaning here.
const LETTERS: &str = "yuMLdDHhkKmsSnaE";

impl Pattern {
    /// Compiles a pattern.
    ///
    /// # Errors
    /// The letter that has no meaning, or an open quote.
    pub(crate) fn new(pattern: &str) -> Result<Self, String> {
        let mut items = Vec::new();
        let mut rest = pattern.chars().peekable();
        while let Some(c) = rest.next() {
            match c {
                '\'' => {
                    let mut text = String::new();
                    loop {
                        match rest.next() {
                            Some('\'') if rest.peek() == Some(&'\'') => text.extend(rest.next()),
                            Some('\'') => break,
                            Some(c) => text.push(c),
                            None => return Err(format!("the pattern `{pattern}` has an open quote")),
                        }
                    }
                    items.push(Item::Text(if text.is_empty() { "'".to_owned() } else { text }));
                }
                c if c.is_ascii_alphabetic() => {
                    if !LETTERS.contains(c) {
                        return Err(format!("the letter `{c}` of the pattern `{pattern}` is not supported"));
                    }
                    let mut count = 1;
                    while rest.next_if_eq(&c).is_some() {
                        count += 1;
                    }
                    items.push(Item::Field(c, count));
                }
                c => match items.last_mut() {
                    Some(Item::Text(text)) => text.push(c),
                    _ => items.push(Item::Text(c.to_string())),
                },
            }
        }
        Ok(Self(items))
    }

    /// Appends the moment's text; `None` outside the years that a calendar has.
    pub(crate) fn format(&self, moment: Moment, out: &mut String) -> Option<()> {
        let date = moment.date()?;
        let (hour, minute, second) = clock_of(moment);
        for item in &self.0 {
            let (letter, count) = match item {
                Item::Text(text) => {
                    out.push_str(text);
                    continue;
                }
                Item::Field(letter, count) => (*letter, *count),
            };
            let number = match letter {
                'y' | 'u' if count == 2 => i64::from(date.year().rem_euclid(100)),
                'y' | 'u' => i64::from(date.year()),
                'M' | 'L' if count >= 3 => {
                    let name = MONTHS[date.month0() as usize];
                    out.push_str(if count == 3 { &name[..3] } else { name });
                    continue;
                }
                'M' | 'L' => i64::from(date.month()),
                'd' => i64::from(date.day()),
                'D' => i64::from(date.ordinal()),
                'H' => hour,
                'k' => {
                    if hour == 0 {
                        24
                    } else {
                        hour
                    }
                }
                'K' => hour % 12,
                'h' => i64::from(hour12(moment).1),
                'm' => minute,
                's' => second,
                'n' => moment.subsecond(),
                'S' => {
                    let digits = format!("{:09}", moment.subsecond());
                    out.extend(digits.chars().chain(std::iter::repeat('0')).take(count));
                    continue;
                }
                'a' => {
                    out.push_str(if hour12(moment).0 { "PM" } else { "AM" });
                    continue;
                }
                _ => {
                    let name = DAYS[date.weekday().num_days_from_monday() as usize];
                    out.push_str(if count <= 3 { &name[..3] } else { name });
                    continue;
                }
            };
            // Writing to a String cannot fail.
            let _ = write!(out, "{number:0count$}");
        }
        Some(())
    }

    /// Reads a whole text. Fields that the pattern lacks are those of 1970-01-01 00:00.
    pub(crate) fn parse(&self, text: &str) -> Option<Moment> {
        let mut fields = Fields::default();
        let mut rest = text;
        for (i, item) in self.0.iter().enumerate() {
            match item {
                Item::Text(expected) => rest = rest.strip_prefix(expected.as_str())?,
                Item::Field(letter, count) => {
                    let adjacent = matches!(self.0.get(i + 1), Some(Item::Field(next, _)) if *next != 'a');
                    rest = fields.read(*letter, *count, adjacent, rest)?;
                }
            }
        }
        if rest.is_empty() { fields.moment() } else { None }
    }
}

struct Fields {
    year: i32,
    month: u32,
    day: u32,
    day_of_year: Option<u32>,
    hour: i64,
    afternoon: Option<bool>,
    minute: i64,
    second: i64,
    nanos: u32,
}

impl Default for Fields {
    fn default() -> Self {
        Self {
            year: 1970,
            month: 1,
            day: 1,
            day_of_year: None,
            hour: 0,
            afternoon: None,
            minute: 0,
            second: 0,
            nanos: 0,
        }
    }
}

impl Fields {
    fn read<'t>(&mut self, letter: char, count: usize, adjacent: bool, text: &'t str) -> Option<&'t str> {
        match letter {
            'M' | 'L' if count >= 3 => {
                let (index, rest) = name(text, &MONTHS, count)?;
                self.month = u32::try_from(index).ok()? + 1;
                return Some(rest);
            }
            'E' => return name(text, &DAYS, count.max(3)).map(|(_, rest)| rest),
            'a' => {
                self.afternoon = Some(match text.get(..2)?.to_ascii_uppercase().as_str() {
                    "AM" => false,
                    "PM" => true,
                    _ => return None,
                });
                return Some(&text[2..]);
            }
            _ => {}
        }
        let fixed = count >= 2 || adjacent;
        let most = match letter {
            _ if fixed => count,
            'y' | 'u' => 9,
            'D' => 3,
            'S' => count,
            'n' => 9,
            _ => 2,
        };
        let digits = text.bytes().take(most).take_while(u8::is_ascii_digit).count();
        if digits == 0 || (fixed && digits < count) {
            return None;
        }
        let number: i64 = text[..digits].parse().ok()?;
        match letter {
            'y' | 'u' if count == 2 => self.year = 2_000 + i32::try_from(number).ok()?,
            'y' | 'u' => self.year = i32::try_from(number).ok()?,
            'M' | 'L' => self.month = u32::try_from(number).ok()?,
            'd' => self.day = u32::try_from(number).ok()?,
            'D' => self.day_of_year = Some(u32::try_from(number).ok()?),
            'H' => self.hour = Some(number).filter(|hour| *hour < 24)?,
            'k' => self.hour = Some(number).filter(|hour| (1..=24).contains(hour))? % 24,
            'h' => self.hour = Some(number).filter(|hour| (1..=12).contains(hour))? % 12,
            'K' => self.hour = Some(number).filter(|hour| *hour < 12)?,
            'm' => self.minute = number,
            's' => self.second = number,
            'n' => self.nanos = u32::try_from(number).ok()?,
            _ => self.nanos = format!("{:0<9}", &text[..digits])[..9].parse().ok()?,
        }
        Some(&text[digits..])
    }

    fn moment(&self) -> Option<Moment> {
        let date = match self.day_of_year {
            Some(day) => NaiveDate::from_yo_opt(self.year, day)?,
            None => NaiveDate::from_ymd_opt(self.year, self.month, self.day)?,
        };
        let hour = if self.afternoon == Some(true) { self.hour % 12 + 12 } else { self.hour };
        time_of(hour, self.minute, self.second, self.nanos).map(|(millis, nanos)| Moment::new(date, millis, nanos))
    }
}

fn name<'t>(text: &'t str, names: &[&str], count: usize) -> Option<(usize, &'t str)> {
    names.iter().enumerate().find_map(|(index, name)| {
        let name = if count == 3 { &name[..3] } else { name };
        text.strip_prefix(name).map(|rest| (index, rest))
    })
}

/// Milliseconds of the day and nanoseconds below; `None` if it is no time.
fn time_of(hour: i64, minute: i64, second: i64, nanos: u32) -> Option<(i64, u32)> {
    if !(0..24).contains(&hour) || !(0..60).contains(&minute) || !(0..60).contains(&second) {
        return None;
    }
    let millis = ((hour * 60 + minute) * 60 + second) * 1_000 + i64::from(nanos / 1_000_000);
    Some((millis, nanos % 1_000_000))
}

/// `y-M-d`, or with a time behind a blank or `T`.
pub(crate) fn parse_timestamp(text: &str) -> Option<Moment> {
    let text = text.trim();
    match text.split_once([' ', 'T']) {
        None => parse_date(text),
        Some((date, time)) => {
            let (millis, nanos) = parse_clock(time.trim_start())?;
            parse_date(date).map(|day| Moment { millis: day.millis + millis, nanos })
        }
    }
}

/// `y-M-d`.
pub(crate) fn parse_date(text: &str) -> Option<Moment> {
    let mut parts = text.trim().splitn(3, '-');
    let (year, month, day) = (digits(parts.next()?, 9)?, digits(parts.next()?, 2)?, digits(parts.next()?, 2)?);
    let date =
        NaiveDate::from_ymd_opt(i32::try_from(year).ok()?, u32::try_from(month).ok()?, u32::try_from(day).ok()?)?;
    Some(Moment::new(date, 0, 0))
}

/// `H:m[:s[.fraction]]` as milliseconds of the day and nanoseconds below.
pub(crate) fn parse_clock(text: &str) -> Option<(i64, u32)> {
    let (clock, fraction) = text.split_once('.').unwrap_or((text, ""));
    if !fraction.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let nanos = format!("{fraction:0<9}")[..9].parse().ok()?;
    let mut parts = clock.splitn(3, ':');
    let (hour, minute) = (digits(parts.next()?, 2)?, digits(parts.next()?, 2)?);
    let second = parts.next().map_or(Some(0), |second| digits(second, 2))?;
    time_of(hour, minute, second, nanos)
}

fn digits(text: &str, most: usize) -> Option<i64> {
    let valid = !text.is_empty() && text.len() <= most && text.bytes().all(|byte| byte.is_ascii_digit());
    if valid { text.parse().ok() } else { None }
}

/// `yyyy-MM-dd HH:mm:ss` and `precision` digits of the fraction, as CAST to STRING writes.
pub(crate) fn write_timestamp(moment: Moment, precision: usize, out: &mut String) -> Option<()> {
    write_date(moment, out)?;
    out.push(' ');
    write_clock(moment, precision, out);
    Some(())
}

pub(crate) fn write_date(moment: Moment, out: &mut String) -> Option<()> {
    let date = moment.date()?;
    write!(out, "{:04}-{:02}-{:02}", date.year(), date.month(), date.day()).ok()
}

pub(crate) fn write_clock(moment: Moment, precision: usize, out: &mut String) {
    let (hour, minute, second) = clock_of(moment);
    // Writing to a String cannot fail.
    let _ = write!(out, "{hour:02}:{minute:02}:{second:02}");
    if precision > 0 {
        let fraction = format!("{:09}", moment.subsecond());
        let _ = write!(out, ".{}", &fraction[..precision.min(9)]);
    }
}

/// Cuts what is finer than `precision` digits of the second.
pub(crate) fn truncated(moment: Moment, precision: u8) -> Moment {
    let cut = |value: i64, digits: u32| value.div_euclid(10_i64.pow(digits)) * 10_i64.pow(digits);
    match precision {
        0..=3 => Moment::of_millis(cut(moment.millis, 3 - u32::from(precision))),
        _ => {
            let nanos = cut(i64::from(moment.nanos), 9 - u32::from(precision.min(9)));
            Moment { millis: moment.millis, nanos: u32::try_from(nanos).unwrap_or(0) }
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn patterns_read_what_they_write() {
        let check = |pattern: &str, text: &str, canonical: &str| {
            let compiled = Pattern::new(pattern).unwrap();
            let moment = compiled.parse(text).unwrap_or_else(|| panic!("{text} by {pattern}"));
            let (mut back, mut shown) = (String::new(), String::new());
            compiled.format(moment, &mut back).unwrap();
            write_timestamp(moment, 3, &mut shown).unwrap();
            assert_eq!((back.as_str(), shown.as_str()), (text, canonical), "{pattern}");
        };
        check("yyyy-MM-dd HH:mm:ss", "2020-05-15 09:03:07", "2020-05-15 09:03:07.000");
        check("yyyyMMddHHmmssSSS", "20200515090307123", "2020-05-15 09:03:07.123");
        check("dd/MMM/yyyy:HH:mm:ss", "17/May/2015:10:05:03", "2015-05-17 10:05:03.000");
        check("d.M.yyyy h:mm a", "5.12.1999 1:05 PM", "1999-12-05 13:05:00.000");
        check("yyyy-MM-dd'T'HH:mm''", "2020-05-15T09:03'", "2020-05-15 09:03:00.000");
        check("EEEE, MMMM d yyyy", "Friday, May 15 2020", "2020-05-15 00:00:00.000");
        check("HH:mm", "07:08", "1970-01-01 07:08:00.000");
        check("yyyy-DDD", "2020-366", "2020-12-31 00:00:00.000");
    }

    #[test]
    fn texts_that_do_not_fit_are_none() {
        let check = |pattern: &str, text: &str| assert_eq!(Pattern::new(pattern).unwrap().parse(text), None, "{text}");
        check("yyyy-MM-dd", "2020-02-30");
        check("yyyy-MM-dd", "2020-1-01");
        check("yyyy-MM-dd", "2020-01-01 ");
        check("HH:mm", "24:00");
        check("yyyy", "é");
        assert!(Pattern::new("yyyy-QQ").is_err());
        assert!(Pattern::new("yyyy'x").is_err());
        for text in ["", "2020", "2020-13-01", "2020-01-01 25:00:00", "2020-01-01 1", "2020-01-01 00:00:00.x", "é-é-é"]
        {
            assert_eq!(parse_timestamp(text), None, "{text}");
        }
    }
}
