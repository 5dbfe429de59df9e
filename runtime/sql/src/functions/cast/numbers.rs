//! To numbers and BOOLEAN.

use std::sync::Arc;

use arrow::{
    array::{ArrayRef, AsArray, BooleanArray, PrimitiveArray},
    compute::cast as arrow_cast,
    datatypes::{
        ArrowPrimitiveType, DataType, Decimal128Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type,
        Int64Type, i256,
    },
};
use datafusion::common::{Result, plan_err};

use super::{OnBadText, write_double};
use crate::{
    functions::{
        call::Call,
        number::{DecimalType, half_up, parse_decimal, power_of_ten},
    },
    types::SqlType,
};

/// A text to anything but text.
pub(super) fn from_text(call: &Call, to: &SqlType, on_bad: OnBadText) -> Result<ArrayRef> {
    match to {
        SqlType::Boolean => {
            let texts = call.text(0)?;
            call.booleans(|row| texts.get(row).map_or(Ok(None), |text| on_bad.value(boolean(text), text, to)))
        }
        SqlType::TinyInt => parsed::<Int8Type>(call, to, on_bad, |text| whole(text)?.try_into().ok()),
        SqlType::SmallInt => parsed::<Int16Type>(call, to, on_bad, |text| whole(text)?.try_into().ok()),
        SqlType::Int => parsed::<Int32Type>(call, to, on_bad, |text| whole(text)?.try_into().ok()),
        SqlType::BigInt => parsed::<Int64Type>(call, to, on_bad, |text| whole(text)?.try_into().ok()),
        SqlType::Float => parsed::<Float32Type>(call, to, on_bad, |text| float(text)?.parse().ok()),
        SqlType::Double => parsed::<Float64Type>(call, to, on_bad, |text| float(text)?.parse().ok()),
        SqlType::Decimal { .. } => {
            let Some(target) = DecimalType::of(&to.arrow()) else { return plan_err!("no DECIMAL") };
            let texts = call.text(0)?;
            // Too many digits are NULL in both kinds of cast.
            let row = |row: usize| match texts.get(row) {
                Some(text) => on_bad.value(parse_decimal(text, target), text, to).map(Option::flatten),
                None => Ok(None),
            };
            let values: PrimitiveArray<Decimal128Type> = (0..call.rows()).map(row).collect::<Result<_>>()?;
            Ok(Arc::new(values.with_data_type(to.arrow())))
        }
        _ => plan_err!("a text cannot be cast to {to}"),
    }
}

fn parsed<T: ArrowPrimitiveType>(
    call: &Call,
    to: &SqlType,
    on_bad: OnBadText,
    parse: fn(&str) -> Option<T::Native>,
) -> Result<ArrayRef> {
    let texts = call.text(0)?;
    call.numbers::<T>(|row| texts.get(row).map_or(Ok(None), |text| on_bad.value(parse(text), text, to)))
}

fn boolean(text: &str) -> Option<bool> {
    let text = text.trim();
    let is = |words: &[&str]| words.iter().any(|word| text.eq_ignore_ascii_case(word));
    if is(&["t", "true", "y", "yes", "1"]) {
        Some(true)
    } else if is(&["f", "false", "n", "no", "0"]) {
        Some(false)
    } else {
        None
    }
}

/// A number's whole part: digits behind a point are checked, then dropped.
fn whole(text: &str) -> Option<i128> {
    let text = text.trim();
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let digits = whole.strip_prefix(['+', '-']).unwrap_or(whole);
    let is_number = digits.bytes().chain(fraction.bytes()).all(|byte| byte.is_ascii_digit());
    if !is_number || digits.is_empty() || digits.len() > 38 {
        return None;
    }
    whole.parse().ok()
}

/// What Java's `Double.parseDouble` accepts of what Rust accepts.
fn float(text: &str) -> Option<&str> {
    let text = text.trim();
    let number = text.strip_suffix(['d', 'D', 'f', 'F']).unwrap_or(text);
    let has_digit = number.bytes().any(|byte| byte.is_ascii_digit());
    let named = matches!(number.trim_start_matches(['+', '-']), "NaN" | "Infinity");
    if named {
        return Some(number);
    }
    let plain = number.bytes().all(|byte| byte.is_ascii_digit() || matches!(byte, b'+' | b'-' | b'.' | b'e' | b'E'));
    (has_digit && plain).then_some(number)
}

/// A number or BOOLEAN to a number or BOOLEAN.
pub(super) fn from_number(array: &ArrayRef, to: &SqlType) -> Result<ArrayRef> {
    let target = to.arrow();
    if *array.data_type() == target {
        return Ok(Arc::clone(array));
    }
    if *array.data_type() == DataType::Boolean {
        let ones = arrow_cast(array, &DataType::Int32)?;
        return from_number(&ones, to);
    }
    if *to == SqlType::Boolean {
        let zeros = arrow_cast(array, &DataType::Float64)?;
        let truths: BooleanArray =
            zeros.as_primitive::<Float64Type>().iter().map(|value| Some(value? != 0.0)).collect();
        return Ok(Arc::new(truths));
    }
    match (array.data_type(), to) {
        (_, SqlType::Float | SqlType::Double) => Ok(arrow_cast(array, &target)?),
        (DataType::Float32 | DataType::Float64, SqlType::Decimal { .. }) => double_to_decimal(array, &target),
        (DataType::Float32 | DataType::Float64, _) => double_to_integer(array, to),
        (_, SqlType::Decimal { .. }) => to_decimal(array, &target),
        _ => to_integer(array, to),
    }
}

fn double_to_decimal(array: &ArrayRef, target: &DataType) -> Result<ArrayRef> {
    let Some(decimal) = DecimalType::of(target) else { return plan_err!("no DECIMAL") };
    let wide = arrow_cast(array, &DataType::Float64)?;
    let mut shown = String::new();
    let values: PrimitiveArray<Decimal128Type> = wide
        .as_primitive::<Float64Type>()
        .iter()
        .map(|value| {
            shown.clear();
            write_double(value?, &mut shown);
            parse_decimal(&shown, decimal).flatten()
        })
        .collect();
    Ok(Arc::new(values.with_data_type(target.clone())))
}

/// Java's narrowing: cut towards zero, at most the greatest value; TINYINT and SMALLINT by way of INT.
fn double_to_integer(array: &ArrayRef, to: &SqlType) -> Result<ArrayRef> {
    let wide = arrow_cast(array, &DataType::Float64)?;
    let doubles = wide.as_primitive::<Float64Type>();
    #[expect(clippy::cast_possible_truncation, reason = "narrows as Java does")]
    let result: ArrayRef = match to {
        SqlType::TinyInt => Arc::new(doubles.unary::<_, Int8Type>(|value| value as i32 as i8)),
        SqlType::SmallInt => Arc::new(doubles.unary::<_, Int16Type>(|value| value as i32 as i16)),
        SqlType::Int => Arc::new(doubles.unary::<_, Int32Type>(|value| value as i32)),
        _ => Arc::new(doubles.unary::<_, Int64Type>(|value| value as i64)),
    };
    Ok(result)
}

/// Exact numbers to DECIMAL, half up; too many digits are NULL.
fn to_decimal(array: &ArrayRef, target: &DataType) -> Result<ArrayRef> {
    let (Some(from), Some(to)) = (DecimalType::of(array.data_type()), DecimalType::of(target)) else {
        return plan_err!("{} cannot be cast to {target}", array.data_type());
    };
    let values = arrow_cast(array, &from.arrow())?;
    let rescale = |value: i128| {
        let value = i256::from_i128(value);
        let rescaled = if to.scale >= from.scale {
            value.checked_mul(power_of_ten(to.scale - from.scale)?)
        } else {
            half_up(value, power_of_ten(from.scale - to.scale)?)
        };
        to.checked(rescaled?)
    };
    let result: PrimitiveArray<Decimal128Type> =
        values.as_primitive::<Decimal128Type>().iter().map(|value| rescale(value?)).collect();
    Ok(Arc::new(result.with_data_type(target.clone())))
}

/// Exact numbers to integers: cut towards zero, wrapping.
fn to_integer(array: &ArrayRef, to: &SqlType) -> Result<ArrayRef> {
    let Some(from) = DecimalType::of(array.data_type()) else {
        return plan_err!("{} cannot be cast to {to}", array.data_type());
    };
    let unscaled = arrow_cast(array, &from.arrow())?;
    let divisor = 10_i128.pow(u32::try_from(from.scale).unwrap_or(0).min(38));
    let values = unscaled.as_primitive::<Decimal128Type>();
    #[expect(clippy::cast_possible_truncation, reason = "wraps as Java does")]
    let result: ArrayRef = match to {
        SqlType::TinyInt => Arc::new(values.unary::<_, Int8Type>(|value| (value / divisor) as i8)),
        SqlType::SmallInt => Arc::new(values.unary::<_, Int16Type>(|value| (value / divisor) as i16)),
        SqlType::Int => Arc::new(values.unary::<_, Int32Type>(|value| (value / divisor) as i32)),
        _ => Arc::new(values.unary::<_, Int64Type>(|value| (value / divisor) as i64)),
    };
    Ok(result)
}
