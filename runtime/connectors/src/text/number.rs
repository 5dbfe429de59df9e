//! Booleans, integers and floating point numbers.

use std::fmt::{Debug, Display};

use super::write_display;

/// Appends the decimal digits.
pub(crate) fn write_integer(value: i64, out: &mut Vec<u8>) {
    let mut digits = [0_u8; 20];
    let mut start = digits.len();
    let mut rest = value.unsigned_abs();
    loop {
        start -= 1;
        // A remainder by 10 is one digit.
        digits[start] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    if value < 0 {
        out.push(b'-');
    }
    out.extend_from_slice(&digits[start..]);
}

/// Appends the shortest text that reads back as the same number, with a decimal point or an exponent.
pub(super) fn write_float<F: Display + Debug + Into<f64> + Copy>(value: F, out: &mut Vec<u8>) {
    let wide: f64 = value.into();
    if wide.is_nan() {
        out.extend_from_slice(b"NaN");
    } else if wide.is_infinite() {
        out.extend_from_slice(if wide > 0.0 { b"Infinity" } else { b"-Infinity" });
    } else {
        write_display(format_args!("{value:?}"), out);
    }
}

/// An integer with an optional sign, blanks around it allowed. `None` if it is none or does not fit.
#[inline]
pub(crate) fn parse_integer(text: &[u8]) -> Option<i64> {
    // Up to 18 digits cannot overflow: the common case, without checks.
    if text.is_empty() || text.len() > 18 || !text.iter().all(u8::is_ascii_digit) {
        return parse_integer_slow(text);
    }
    Some(text.iter().fold(0, |number, digit| number * 10 + i64::from(digit - b'0')))
}

#[cold]
fn parse_integer_slow(text: &[u8]) -> Option<i64> {
    std::str::from_utf8(text.trim_ascii()).ok()?.parse().ok()
}

/// A floating point number, blanks around it allowed.
pub(crate) fn parse_float(text: &[u8]) -> Option<f64> {
    std::str::from_utf8(text.trim_ascii()).ok()?.parse().ok()
}

/// `true` or `false` in any case, or `1` or `0`, blanks around it allowed.
pub(crate) fn parse_boolean(text: &[u8]) -> Option<bool> {
    let text = text.trim_ascii();
    if text.eq_ignore_ascii_case(b"true") || text == b"1" {
        Some(true)
    } else if text.eq_ignore_ascii_case(b"false") || text == b"0" {
        Some(false)
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn numbers_read_with_signs_and_blanks_and_not_beyond_their_range() {
        for (text, value) in [
            ("0", Some(0)),
            (" 42 ", Some(42)),
            ("-7", Some(-7)),
            ("+7", Some(7)),
            ("9223372036854775807", Some(i64::MAX)),
            ("9223372036854775808", None),
            ("", None),
            ("1.0", None),
            ("1 2", None),
            ("--1", None),
        ] {
            assert_eq!(parse_integer(text.as_bytes()), value, "{text:?}");
        }
    }

    #[test]
    fn special_floats_have_words() {
        for (value, text) in
            [(f64::NAN, "NaN"), (f64::INFINITY, "Infinity"), (f64::NEG_INFINITY, "-Infinity"), (1.0, "1.0")]
        {
            let mut out = Vec::new();
            write_float(value, &mut out);
            assert_eq!(out, text.as_bytes());
            assert!(parse_float(&out).is_some_and(|back| back == value || value.is_nan()));
        }
    }

    proptest! {
        #[test]
        fn integers_read_back(value: i64) {
            let mut out = Vec::new();
            write_integer(value, &mut out);
            let expected = value.to_string();
            prop_assert_eq!(&out, expected.as_bytes());
            prop_assert_eq!(parse_integer(&out), Some(value));
        }

        #[test]
        fn floats_read_back(value: f64) {
            prop_assume!(!value.is_nan());
            let mut out = Vec::new();
            write_float(value, &mut out);
            prop_assert_eq!(parse_float(&out), Some(value));
        }
    }
}
