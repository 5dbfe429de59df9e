//! DECIMAL values: an unscaled integer and a scale.

use super::write_display;

/// Powers of ten up to what 38 digits need.
fn power_of_ten(exponent: u32) -> Option<i128> {
    10_i128.checked_pow(exponent)
}

/// Appends `value · 10^−scale` with exactly `scale` digits behind the point.
pub(super) fn write_decimal(value: i128, scale: i8, out: &mut Vec<u8>) {
    if value < 0 {
        out.push(b'-');
    }
    let magnitude = value.unsigned_abs();
    if scale <= 0 {
        write_display(magnitude, out);
        if magnitude != 0 {
            out.extend(std::iter::repeat_n(b'0', usize::from(scale.unsigned_abs())));
        }
        return;
    }
    let digits = u32::from(scale.unsigned_abs());
    let unit = 10_u128.pow(digits.min(38));
    write_display(format_args!("{}.{:0width$}", magnitude / unit, magnitude % unit, width = digits as usize), out);
}

/// Reads a number such as `-12.345` or `1.2e3` into `precision` digits of which `scale` lie behind the point. Further
/// digits are rounded half up, away from zero. `None` if it is no number or has too many digits.
pub(crate) fn parse_decimal(text: &[u8], precision: u8, scale: i8) -> Option<i128> {
    let text = text.trim_ascii();
    let (negative, digits) = match text.split_first()? {
        (b'-', rest) => (true, rest),
        (b'+', rest) => (false, rest),
        _ => (false, text),
    };
    let (mantissa, exponent) = match digits.iter().position(|b| matches!(b, b'e' | b'E')) {
        None => (digits, 0),
        Some(at) => (&digits[..at], std::str::from_utf8(&digits[at + 1..]).ok()?.parse::<i32>().ok()?),
    };
    let point = mantissa.iter().position(|b| *b == b'.');
    let whole = point.unwrap_or(mantissa.len());
    let count = mantissa.len() - usize::from(point.is_some());
    if count == 0 {
        return None;
    }
    // How many of the digits count; the one after them decides the rounding.
    let keep = i64::try_from(whole).ok()? + i64::from(exponent) + i64::from(scale);
    let mut value = 0_i128;
    let mut round_up = false;
    let mut seen = 0_i64;
    for byte in mantissa.iter().filter(|b| **b != b'.') {
        let digit = byte.checked_sub(b'0').filter(|d| *d < 10)?;
        if seen < keep {
            value = value.checked_mul(10)?.checked_add(i128::from(digit))?;
        } else if seen == keep {
            round_up = digit >= 5;
        }
        seen += 1;
    }
    if mantissa.iter().filter(|b| **b == b'.').count() > 1 {
        return None;
    }
    if keep > seen && value != 0 {
        value = value.checked_mul(power_of_ten(u32::try_from(keep - seen).ok()?)?)?;
    }
    value += i128::from(round_up);
    let fits = value < power_of_ten(u32::from(precision))?;
    fits.then_some(if negative { -value } else { value })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn text_is_read_into_the_scale_and_rounded_half_up() {
        for (text, value) in [
            ("12.345", Some(1235)),
            ("-12.345", Some(-1235)),
            ("12.344", Some(1234)),
            ("0.005", Some(1)),
            (".5", Some(50)),
            ("5.", Some(500)),
            ("1e2", Some(10_000)),
            ("125e-2", Some(125)),
            ("1e-9", Some(0)),
            ("999.99", Some(99_999)),
            ("999.995", None),
            ("1000", None),
            ("", None),
            ("-", None),
            (".", None),
            ("1.2.3", None),
            ("1x", None),
            ("1e", None),
            ("1e999999999", None),
            ("0e999999999", Some(0)),
        ] {
            assert_eq!(parse_decimal(text.as_bytes(), 5, 2), value, "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn decimals_read_back(value in -(10_i128.pow(20))..10_i128.pow(20), scale in 0_i8..20) {
            let mut out = Vec::new();
            write_decimal(value, scale, &mut out);
            prop_assert_eq!(parse_decimal(&out, 38, scale), Some(value));
        }

        #[test]
        fn no_text_panics(text: Vec<u8>, precision in 1_u8..=38, scale in -5_i8..=38) {
            let _ = parse_decimal(&text, precision, scale);
        }
    }
}
