//! To STRING and BYTES.

use std::{fmt::Write, sync::Arc};

use arrow::{
    array::{ArrayRef, AsArray, BinaryArray},
    compute::cast as arrow_cast,
    datatypes::{DataType, Decimal128Type, Float32Type, Float64Type, Int64Type, TimeUnit},
};
use datafusion::common::{Result, plan_err};

use super::nested::Nested;
use crate::{
    functions::{
        call::Call,
        definition::is_text,
        time::{
            Moments,
            pattern::{write_clock, write_date, write_timestamp},
        },
    },
    types::SqlType,
};

pub(super) fn to_bytes(call: &Call) -> Result<ArrayRef> {
    let texts = call.text(0)?;
    let bytes: BinaryArray = (0..call.rows()).map(|row| texts.get(row).map(str::as_bytes)).collect();
    Ok(Arc::new(bytes))
}

/// Anything to CHAR, VARCHAR or STRING.
pub(super) fn to_text(call: &Call, to: &SqlType) -> Result<ArrayRef> {
    let array = call.array(0)?;
    if *to == SqlType::STRING && *array.data_type() == DataType::Utf8 {
        return Ok(array);
    }
    let fit = |out: &mut String| fit(out, to);
    match array.data_type() {
        given if is_text(given) => {
            let texts = call.text(0)?;
            rows(call, fit, |row, out| texts.get(row).map(|text| out.push_str(text)))
        }
        DataType::Boolean => {
            let values = call.boolean(0)?;
            rows(call, fit, |row, out| values.get(row).map(|value| out.push_str(if value { "TRUE" } else { "FALSE" })))
        }
        DataType::Binary => {
            let values = call.bytes(0)?;
            rows(call, fit, |row, out| values.get(row).map(|value| out.push_str(&String::from_utf8_lossy(value))))
        }
        DataType::Float64 => {
            let values = call.number::<Float64Type>(0)?;
            rows(call, fit, |row, out| values.get(row).map(|value| write_double(value, out)))
        }
        DataType::Float32 => {
            let values = call.number::<Float32Type>(0)?;
            rows(call, fit, |row, out| {
                values.get(row).map(|value| write_shortest(&format!("{value:e}"), f64::from(value), out))
            })
        }
        DataType::Decimal128(_, scale) => {
            let scale = usize::try_from(*scale).unwrap_or(0);
            let values = array.as_primitive::<Decimal128Type>();
            rows(call, fit, |row, out| {
                arrow::array::Array::is_valid(values, row).then(|| write_decimal(values.value(row), scale, out))
            })
        }
        DataType::Timestamp(unit, _) => {
            let (moments, precision) = (Moments::new(call, 0)?, precision(call)?.unwrap_or(digits(*unit)));
            rows(call, fit, |row, out| write_timestamp(moments.get(row)?, precision, out))
        }
        DataType::Date32 => {
            let moments = Moments::new(call, 0)?;
            rows(call, fit, |row, out| write_date(moments.get(row)?, out))
        }
        DataType::Time32(unit) | DataType::Time64(unit) => {
            let precision = digits(*unit);
            let moments = Moments::new(call, 0)?;
            rows(call, fit, |row, out| {
                let moment = moments.get(row)?;
                // A TIME has no type with 0 digits in Arrow, and whole seconds show none in Flink.
                write_clock(moment, if moment.subsecond() == 0 { 0 } else { precision }, out);
                Some(())
            })
        }
        given if given.is_integer() => {
            let values = arrow_cast(&array, &DataType::Int64)?;
            let values = values.as_primitive::<Int64Type>();
            rows(call, fit, |row, out| {
                arrow::array::Array::is_valid(values, row).then(|| write!(out, "{}", values.value(row)).ok()).flatten()
            })
        }
        DataType::List(_) | DataType::Map(..) | DataType::Struct(_) => {
            let nested = Nested::new(call, &array)?;
            rows(call, fit, |row, out| nested.write(row, out))
        }
        other => plan_err!("{} cannot be cast to {to}", SqlType::name_of(other)),
    }
}

/// Digits of the fraction that the value's type has, where the planner had to say so.
fn precision(call: &Call) -> Result<Option<usize>> {
    if call.len() < 3 {
        return Ok(None);
    }
    Ok(call.number::<Int64Type>(2)?.get(0).and_then(|digits| usize::try_from(digits).ok()))
}

fn rows(call: &Call, fit: impl Fn(&mut String), write: impl Fn(usize, &mut String) -> Option<()>) -> Result<ArrayRef> {
    call.texts(|row, out| Ok(write(row, out).map(|()| fit(out))))
}

/// Cuts to the length of CHAR and VARCHAR; CHAR is filled with blanks.
fn fit(out: &mut String, to: &SqlType) {
    let (SqlType::Char(length) | SqlType::Varchar(Some(length))) = to else { return };
    let length = *length as usize;
    if let Some((end, _)) = out.char_indices().nth(length) {
        out.truncate(end);
    } else if matches!(to, SqlType::Char(_)) {
        let missing = length.saturating_sub(out.chars().count());
        out.extend(std::iter::repeat_n(' ', missing));
    }
}

fn digits(unit: TimeUnit) -> usize {
    match unit {
        TimeUnit::Second => 0,
        TimeUnit::Millisecond => 3,
        TimeUnit::Microsecond => 6,
        TimeUnit::Nanosecond => 9,
    }
}

fn write_decimal(unscaled: i128, scale: usize, out: &mut String) {
    if unscaled < 0 {
        out.push('-');
    }
    let digits = format!("{:0width$}", unscaled.unsigned_abs(), width = scale + 1);
    let (whole, fraction) = digits.split_at(digits.len() - scale);
    out.push_str(whole);
    if scale > 0 {
        out.push('.');
        out.push_str(fraction);
    }
}

/// As Java's `Double.toString`: `1.0`, `1.0E10`, `1.0E-5`.
pub(crate) fn write_double(value: f64, out: &mut String) {
    write_shortest(&format!("{value:e}"), value, out);
}

/// `shown` is Rust's shortest form with an exponent, as in `1.25e3`.
fn write_shortest(shown: &str, value: f64, out: &mut String) {
    if value.is_nan() {
        out.push_str("NaN");
        return;
    }
    if value.is_infinite() {
        out.push_str(if value > 0.0 { "Infinity" } else { "-Infinity" });
        return;
    }
    let (mantissa, exponent) = shown.split_once('e').unwrap_or((shown, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let mantissa = match mantissa.strip_prefix('-') {
        Some(mantissa) => {
            out.push('-');
            mantissa
        }
        None => mantissa,
    };
    let digits: String = mantissa.chars().filter(|c| *c != '.').collect();
    match exponent {
        // Java writes plain digits from 10^-3 up to 10^7.
        0..=6 => {
            let point = usize::try_from(exponent).unwrap_or(0) + 1;
            let padded = format!("{digits:0<point$}");
            let (whole, fraction) = padded.split_at(point);
            let _ = write!(out, "{whole}.{}", if fraction.is_empty() { "0" } else { fraction });
        }
        -3..=-1 => {
            out.push_str("0.");
            (exponent..-1).for_each(|_| out.push('0'));
            out.push_str(&digits);
        }
        _ => {
            let (first, rest) = digits.split_at(1.min(digits.len()));
            let _ = write!(out, "{first}.{}E{exponent}", if rest.is_empty() { "0" } else { rest });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn doubles_look_as_java_writes_them() {
        let check = |value: f64, expected: &str| {
            let mut out = String::new();
            write_double(value, &mut out);
            assert_eq!(out, expected);
        };
        check(1.0, "1.0");
        check(-0.0, "-0.0");
        check(123.456, "123.456");
        check(1e6, "1000000.0");
        check(1e7, "1.0E7");
        check(12_345_678.9, "1.23456789E7");
        check(0.001, "0.001");
        check(0.0125, "0.0125");
        check(0.0001, "1.0E-4");
        check(f64::NAN, "NaN");
        check(f64::NEG_INFINITY, "-Infinity");
        check(1.797_693_134_862_315_7e308, "1.7976931348623157E308");
    }

    #[test]
    fn decimals_keep_the_digits_of_their_scale() {
        let check = |unscaled: i128, scale: usize, expected: &str| {
            let mut out = String::new();
            write_decimal(unscaled, scale, &mut out);
            assert_eq!(out, expected);
        };
        check(1_200, 2, "12.00");
        check(-5, 2, "-0.05");
        check(7, 0, "7");
    }
}
