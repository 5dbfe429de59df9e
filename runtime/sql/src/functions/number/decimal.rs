//! [`DecimalType`]: precision and scale of results, and rounding of unscaled values.

use arrow::datatypes::{DataType, i256};

/// Precision and scale of a DECIMAL. Results whose precision exceeds 38 lose digits of their scale, but keep 6.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct DecimalType {
    pub precision: i32,
    pub scale: i32,
}

const MAX: i32 = 38;

impl DecimalType {
    /// The decimal that holds every value of an exact number's type.
    pub(crate) fn of(data_type: &DataType) -> Option<Self> {
        let (precision, scale) = match data_type {
            DataType::Int8 => (3, 0),
            DataType::Int16 => (5, 0),
            DataType::Int32 => (10, 0),
            DataType::Int64 => (19, 0),
            DataType::Decimal128(precision, scale) => (i32::from(*precision), i32::from(*scale)),
            _ => return None,
        };
        Some(Self { precision, scale })
    }

    pub(crate) fn arrow(self) -> DataType {
        let precision = u8::try_from(self.precision.clamp(1, MAX)).unwrap_or(38);
        DataType::Decimal128(precision, i8::try_from(self.scale.clamp(0, MAX)).unwrap_or(0))
    }

    fn fitted(precision: i32, scale: i32) -> Self {
        if precision <= MAX {
            return Self { precision, scale };
        }
        Self { precision: MAX, scale: (MAX - (precision - scale)).max(scale.min(6)) }
    }

    /// Of a sum or difference.
    pub(crate) fn sum(self, other: Self) -> Self {
        let scale = self.scale.max(other.scale);
        let whole = (self.precision - self.scale).max(other.precision - other.scale);
        Self::fitted(whole + scale + 1, scale)
    }

    pub(crate) fn product(self, other: Self) -> Self {
        Self::fitted(self.precision + other.precision + 1, self.scale + other.scale)
    }

    pub(crate) fn quotient(self, other: Self) -> Self {
        let scale = (self.scale + other.precision + 1).max(6);
        Self::fitted(self.precision - self.scale + other.scale + scale, scale)
    }

    pub(crate) fn remainder(self, other: Self) -> Self {
        let scale = self.scale.max(other.scale);
        Self::fitted((self.precision - self.scale).min(other.precision - other.scale) + scale, scale)
    }

    /// Of ROUND to this many digits.
    pub(crate) fn rounded(self, digits: i32) -> Self {
        if digits >= self.scale {
            self
        } else if digits < 0 {
            Self { precision: MAX.min(1 + self.precision - self.scale), scale: 0 }
        } else {
            Self { precision: 1 + self.precision - self.scale + digits, scale: digits }
        }
    }

    /// The value as an Arrow decimal; `None`, which is NULL, if it has too many digits.
    pub(crate) fn checked(self, unscaled: i256) -> Option<i128> {
        let value = unscaled.to_i128()?;
        (value.unsigned_abs() < 10_u128.pow(u32::try_from(self.precision.clamp(1, MAX)).unwrap_or(38))).then_some(value)
    }
}

/// 10 to this power; `None` beyond 256 bits.
pub(crate) fn power_of_ten(exponent: i32) -> Option<i256> {
    if !(0..=76).contains(&exponent) {
        return None;
    }
    i256::from_i128(10).checked_pow(exponent.unsigned_abs())
}

/// `numerator / denominator`, halves away from zero. The denominator is not 0.
pub(crate) fn half_up(numerator: i256, denominator: i256) -> Option<i256> {
    let quotient = numerator.checked_div(denominator)?;
    let remainder = numerator.checked_rem(denominator)?;
    let magnitude = |value: i256| if value < i256::ZERO { value.wrapping_neg() } else { value };
    // 2·r may not fit 256 bits, so compare r with d − r.
    let away = magnitude(remainder) >= magnitude(denominator).wrapping_sub(magnitude(remainder));
    let negative = (numerator < i256::ZERO) != (denominator < i256::ZERO);
    match (away, negative) {
        (false, _) => Some(quotient),
        (true, false) => quotient.checked_add(i256::ONE),
        (true, true) => quotient.checked_sub(i256::ONE),
    }
}

/// Unscaled value of a text such as `-12.345` or `1.5e3`, rounded half up to `scale`; `None` if it is no number.
/// The outer option is about the text, the inner about the range.
pub(crate) fn parse(text: &str, to: DecimalType) -> Option<Option<i128>> {
    let text = text.trim();
    let (negative, digits) = match text.as_bytes().first()? {
        b'-' => (true, &text[1..]),
        b'+' => (false, &text[1..]),
        _ => (false, text),
    };
    let (mantissa, exponent) = match digits.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, exponent.parse::<i32>().ok()?),
        None => (digits, 0),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    if whole.is_empty() && fraction.is_empty() || !(whole.bytes().chain(fraction.bytes())).all(|b| b.is_ascii_digit()) {
        return None;
    }
    // Position of the point within the digits, moved by what the scale multiplies with.
    let point = i64::try_from(whole.len()).ok()? + i64::from(exponent) + i64::from(to.scale);
    let mut value = i256::ZERO;
    let ten = i256::from_i128(10);
    for (i, digit) in (0_i64..).zip(whole.bytes().chain(fraction.bytes())) {
        let digit = i256::from_i128(i128::from(digit - b'0'));
        if i == point {
            // The first digit that is cut decides.
            if digit >= i256::from_i128(5) {
                value = value.wrapping_add(i256::ONE);
            }
            break;
        }
        if i > point {
            break;
        }
        match value.checked_mul(ten).and_then(|value| value.checked_add(digit)) {
            Some(next) => value = next,
            None => return Some(None),
        }
    }
    let given = i64::try_from(whole.len() + fraction.len()).ok()?;
    if point > given && value != i256::ZERO {
        let factor = i32::try_from(point - given).ok().and_then(power_of_ten);
        match factor.and_then(|factor| value.checked_mul(factor)) {
            Some(next) => value = next,
            None => return Some(None),
        }
    }
    Some(to.checked(if negative { value.wrapping_neg() } else { value }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decimal(precision: i32, scale: i32) -> DecimalType {
        DecimalType { precision, scale }
    }

    #[test]
    fn results_have_flinks_precision_and_scale() {
        assert_eq!(decimal(10, 2).quotient(decimal(6, 3)), decimal(20, 9));
        assert_eq!(decimal(10, 2).product(decimal(5, 1)), decimal(16, 3));
        assert_eq!(decimal(38, 10).product(decimal(38, 10)), decimal(38, 6));
        assert_eq!(decimal(38, 10).sum(decimal(38, 10)), decimal(38, 9));
        assert_eq!(decimal(10, 2).sum(decimal(5, 4)), decimal(13, 4));
        assert_eq!(decimal(10, 2).remainder(decimal(5, 0)), decimal(7, 2));
        assert_eq!(decimal(10, 4).rounded(2), decimal(9, 2));
    }

    #[test]
    fn texts_are_read_with_halves_rounded_up() {
        let read = |text: &str| parse(text, decimal(6, 2));
        assert_eq!(read("12.345"), Some(Some(1_235)));
        assert_eq!(read(" -12.344 "), Some(Some(-1_234)));
        assert_eq!(read("-0.005"), Some(Some(-1)));
        assert_eq!(read("1.5e3"), Some(Some(150_000)));
        assert_eq!(read("15e-3"), Some(Some(2)));
        assert_eq!(read("4e-3"), Some(Some(0)));
        assert_eq!(read("9e-9"), Some(Some(0)));
        assert_eq!(read("99999"), Some(None));
        assert_eq!(read("1e9999"), Some(None));
        assert_eq!(read("0e9999"), Some(Some(0)));
        for bad in ["", ".", "-", "1x", "1e", "--1", "é", "１"] {
            assert_eq!(read(bad), None, "{bad}");
        }
    }

    #[test]
    fn halves_go_away_from_zero() {
        let check = |a: i128, b: i128, expected: i128| {
            assert_eq!(half_up(i256::from_i128(a), i256::from_i128(b)), Some(i256::from_i128(expected)), "{a} / {b}");
        };
        check(5, 2, 3);
        check(-5, 2, -3);
        check(5, -2, -3);
        check(1, 3, 0);
        check(2, 3, 1);
        check(-2, 3, -1);
    }
}
