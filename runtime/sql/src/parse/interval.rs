//! Interval literals: `INTERVAL '10' MINUTES`, `INTERVAL -'1 12:30' DAY TO MINUTE`, `INTERVAL '1-6' YEAR TO MONTH`.

use datafusion::sql::sqlparser::{
    ast::{Expr, Interval as SqlInterval},
    parser::{Parser, ParserError},
    tokenizer::{Location, Token},
};

use super::{
    build::text,
    cursor::{accept_word, literal, location, unsigned},
    fault::malformed,
};

/// A span of time: either of months or of milliseconds, as in Flink.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Interval {
    Months(i64),
    Millis(i64),
}

impl Interval {
    /// As sqlparser and DataFusion read it.
    pub(crate) fn expression(self) -> Expr {
        let value = match self {
            Self::Months(months) => format!("{months} months"),
            Self::Millis(millis) => format!("{millis} milliseconds"),
        };
        Expr::Interval(SqlInterval {
            value: Box::new(text(value)),
            leading_field: None,
            leading_precision: None,
            last_field: None,
            fractional_seconds_precision: None,
        })
    }
}

/// Units from the longest to the shortest, with their size in months or milliseconds, and how the value's parts are
/// joined to the next shorter unit in `DAY TO SECOND` and the like.
const UNITS: [(&str, &str, Interval); 8] = [
    ("YEAR", "YEARS", Interval::Months(12)),
    ("QUARTER", "QUARTERS", Interval::Months(3)),
    ("MONTH", "MONTHS", Interval::Months(1)),
    ("WEEK", "WEEKS", Interval::Millis(604_800_000)),
    ("DAY", "DAYS", Interval::Millis(86_400_000)),
    ("HOUR", "HOURS", Interval::Millis(3_600_000)),
    ("MINUTE", "MINUTES", Interval::Millis(60_000)),
    ("SECOND", "SECONDS", Interval::Millis(1_000)),
];

/// Behind the word INTERVAL.
pub(crate) fn parse(parser: &mut Parser) -> Result<Interval, ParserError> {
    let at = location(parser);
    let mut negative = false;
    while matches!(parser.peek_token_ref().token, Token::Minus | Token::Plus) {
        negative ^= parser.next_token().token == Token::Minus;
    }
    let value = literal(parser)?;
    let first = unit(parser)?;
    let last = if accept_word(parser, "TO") { unit(parser)? } else { first };
    let wrong = || {
        let range =
            if first == last { UNITS[first].0.to_owned() } else { format!("{} TO {}", UNITS[first].0, UNITS[last].0) };
        malformed(
            at,
            format!("'{value}' is no interval in {range}"),
            "write for example INTERVAL '10' MINUTE or INTERVAL '1 12:00' DAY TO MINUTE",
        )
    };
    let (sign, digits) = match value.trim().strip_prefix('-') {
        Some(digits) => (-1, digits),
        None => (1, value.trim().strip_prefix('+').unwrap_or(value.trim())),
    };
    let sign = if negative { -sign } else { sign };
    let interval = match (first, last) {
        (0, 2) => year_to_month(digits),
        _ if first == last => single(digits, first),
        (4..=7, 4..=7) if first < last => day_to_second(digits, first, last),
        _ => None,
    };
    match interval.ok_or_else(wrong)? {
        Interval::Months(months) => Ok(Interval::Months(sign * months)),
        Interval::Millis(millis) => Ok(Interval::Millis(sign * millis)),
    }
}

/// Index into [`UNITS`].
fn unit(parser: &mut Parser) -> Result<usize, ParserError> {
    let found = UNITS.iter().position(|(one, many, _)| accept_word(parser, one) || accept_word(parser, many));
    let Some(unit) = found else {
        return parser.expected("a unit such as SECOND, MINUTE, HOUR, DAY, MONTH or YEAR", parser.peek_token());
    };
    // Precisions say how many digits are allowed; ours are limited by 64 bits only.
    if parser.consume_token(&Token::LParen) {
        unsigned(parser)?;
        if parser.consume_token(&Token::Comma) {
            unsigned(parser)?;
        }
        parser.expect_token(&Token::RParen)?;
    }
    Ok(unit)
}

fn single(digits: &str, unit: usize) -> Option<Interval> {
    if UNITS[unit].0 == "SECOND" {
        return seconds(digits).map(Interval::Millis);
    }
    let number = whole(digits)?;
    match UNITS[unit].2 {
        Interval::Months(size) => number.checked_mul(size).map(Interval::Months),
        Interval::Millis(size) => number.checked_mul(size).map(Interval::Millis),
    }
}

fn year_to_month(digits: &str) -> Option<Interval> {
    let (years, months) = digits.split_once('-')?;
    let months = whole(months).filter(|months| *months < 12)?;
    whole(years)?.checked_mul(12)?.checked_add(months).map(Interval::Months)
}

/// `1 02:03:04.5`: the parts of all units from `first` to `last`.
fn day_to_second(digits: &str, first: usize, last: usize) -> Option<Interval> {
    let mut total: i64 = 0;
    let mut rest = digits;
    for (name, _, size) in &UNITS[first..=last] {
        let Interval::Millis(size) = *size else { return None };
        let part = if *name == UNITS[last].0 {
            std::mem::take(&mut rest)
        } else {
            let (part, behind) = rest.split_once(if *name == "DAY" { ' ' } else { ':' })?;
            rest = behind.trim_start();
            part
        };
        let millis = if size == 1_000 { seconds(part)? } else { whole(part)?.checked_mul(size)? };
        total = total.checked_add(millis)?;
    }
    Some(Interval::Millis(total))
}

fn whole(digits: &str) -> Option<i64> {
    let digits = digits.trim();
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    digits.parse().ok()
}

/// Seconds with a fraction, in milliseconds; digits beyond the third are cut.
fn seconds(digits: &str) -> Option<i64> {
    let (seconds, fraction) = digits.trim().split_once('.').unwrap_or((digits, ""));
    if !fraction.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let millis: i64 = format!("{fraction:0<3}")[..3].parse().ok()?;
    whole(seconds)?.checked_mul(1_000)?.checked_add(millis)
}

/// For messages about sizes of windows.
pub(crate) fn expect_millis(parser: &mut Parser) -> Result<(Location, i64), ParserError> {
    let at = location(parser);
    if !accept_word(parser, "INTERVAL") {
        return parser.expected("INTERVAL '…' and a unit", parser.peek_token());
    }
    match parse(parser)? {
        Interval::Millis(millis) => Ok((at, millis)),
        Interval::Months(_) => {
            Err(malformed(at, "months and years differ in length", "state windows in days or shorter units"))
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use datafusion::sql::sqlparser::tokenizer::Tokenizer;

    use super::*;
    use crate::parse::FlinkDialect;

    fn read(text: &str) -> Option<Interval> {
        let tokens = Tokenizer::new(&FlinkDialect, text).tokenize_with_location().unwrap();
        parse(&mut Parser::new(&FlinkDialect).with_tokens_with_locations(tokens)).ok()
    }

    #[test]
    fn intervals_have_their_length() {
        assert_eq!(read("'10' MINUTES"), Some(Interval::Millis(600_000)));
        assert_eq!(read("'1.5' SECOND(3)"), Some(Interval::Millis(1_500)));
        assert_eq!(read("-'1' DAY"), Some(Interval::Millis(-86_400_000)));
        assert_eq!(read("'-1' HOUR"), Some(Interval::Millis(-3_600_000)));
        assert_eq!(read("'1 12:30' DAY TO MINUTE"), Some(Interval::Millis(131_400_000)));
        assert_eq!(read("'1 02:03:04.005' DAY TO SECOND"), Some(Interval::Millis(93_784_005)));
        assert_eq!(read("'10:05' MINUTE TO SECOND"), Some(Interval::Millis(605_000)));
        assert_eq!(read("'1-6' YEAR TO MONTH"), Some(Interval::Months(18)));
        assert_eq!(read("'2' YEARS"), Some(Interval::Months(24)));
    }

    #[test]
    fn what_is_no_interval_is_refused() {
        for text in [
            "'x' DAY",
            "'1.5' DAY",
            "'' SECOND",
            "'1' FORTNIGHT",
            "'1-12' YEAR TO MONTH",
            "'1' DAY TO MONTH",
            "'99999999999999999999' DAY",
            "'9223372036854775807' DAY",
            "'1.é' SECOND",
            "1 DAY",
        ] {
            assert_eq!(read(text), None, "{text}");
        }
    }
}
