//! ROUND, TRUNCATE, FLOOR, CEIL, ABS, SIGN: results have the argument's type.

use std::sync::Arc;

use arrow::{
    array::{ArrayRef, AsArray, PrimitiveArray},
    compute::cast,
    datatypes::{ArrowPrimitiveType, DataType, Decimal128Type, Float64Type, Int64Type, i256},
};
use datafusion::common::Result;

use super::{DecimalType, half_up, parse_decimal, power_of_ten};
use crate::functions::{
    call::Call,
    definition::{
        Definition,
        Param::{Integer, Number},
        Types,
        returns::first,
    },
    fault::evaluation,
};

pub(crate) static FUNCTIONS: [Definition; 6] = [
    Definition::new("round", "ROUND(x [, digits INT]) → type of x", &[Number, Integer], rounded, |call| {
        round(call, Mode::HalfUp)
    })
    .required(1)
    .note("Halves away from zero."),
    Definition::new("truncate", "TRUNCATE(x [, digits INT]) → type of x", &[Number, Integer], rounded, |call| {
        round(call, Mode::Cut)
    })
    .required(1),
    Definition::new("floor", "FLOOR(x) → type of x, without fraction", &[Number], whole, |call| {
        to_whole(call, Mode::Down)
    }),
    Definition::new("ceil", "CEIL(x) → type of x, without fraction", &[Number], whole, |call| {
        to_whole(call, Mode::Up)
    })
    .alias(&["ceiling"]),
    Definition::new("abs", "ABS(x) → type of x", &[Number], first, abs).note("The least integer stays as it is."),
    Definition::new("sign", "SIGN(x) → type of x", &[Number], first, sign),
];

#[derive(Clone, Copy, PartialEq, Eq)]
enum Mode {
    HalfUp,
    Cut,
    Down,
    Up,
}

impl Mode {
    fn divide(self, value: i256, by: i256) -> Option<i256> {
        let quotient = value.checked_div(by)?;
        let inexact = value.checked_rem(by)? != i256::ZERO;
        match self {
            Self::HalfUp => half_up(value, by),
            Self::Down if inexact && value < i256::ZERO => quotient.checked_sub(i256::ONE),
            Self::Up if inexact && value > i256::ZERO => quotient.checked_add(i256::ONE),
            _ => Some(quotient),
        }
    }
}

fn rounded(types: &Types) -> Result<DataType> {
    Ok(match types.of(0) {
        given @ DataType::Decimal128(..) => {
            // Digits that are not known beforehand keep the scale.
            let digits = if types.len() > 1 { types.literal_integer(1) } else { Some(0) };
            match (DecimalType::of(&given), digits.and_then(|digits| i32::try_from(digits).ok())) {
                (Some(decimal), Some(digits)) => decimal.rounded(digits).arrow(),
                _ => given,
            }
        }
        given => given,
    })
}

fn whole(types: &Types) -> Result<DataType> {
    Ok(match types.of(0) {
        DataType::Decimal128(precision, _) => DataType::Decimal128(precision, 0),
        given => given,
    })
}

fn round(call: &Call, mode: Mode) -> Result<ArrayRef> {
    let digits = if call.len() > 1 { Some(call.number::<Int64Type>(1)?) } else { None };
    let digits = |row: usize| match &digits {
        None => Some(0),
        Some(digits) => digits.get(row).map(|digits| i32::try_from(digits.clamp(-400, 400)).unwrap_or(0)),
    };
    let data_type = call.array(0)?.data_type().clone();
    if data_type.is_integer() {
        let values = call.number::<Int64Type>(0)?;
        let result = call_integers(call, |row| {
            let (Some(value), Some(digits)) = (values.get(row), digits(row)) else { return Ok(None) };
            if digits >= 0 {
                return Ok(Some(value));
            }
            let Some(unit) = power_of_ten(-digits) else { return Ok(Some(0)) };
            let multiple =
                mode.divide(i256::from_i128(i128::from(value)), unit).and_then(|count| count.checked_mul(unit));
            // Wraps as Java's narrowing does.
            #[expect(clippy::cast_possible_truncation, reason = "wraps on purpose")]
            let wrapped = multiple.and_then(i256::to_i128).unwrap_or(0) as i64;
            Ok(Some(wrapped))
        })?;
        return narrowed(&result, &data_type);
    }
    if let DataType::Decimal128(..) = data_type {
        return decimals(call, &data_type, |row, value, scale, target| {
            let digits = digits(row)?;
            if digits >= scale {
                return value.checked_mul(power_of_ten(target - scale).unwrap_or(i256::ONE));
            }
            let unit = power_of_ten(scale - digits)?;
            let kept = mode.divide(value, unit)?;
            // Back to the scale of the result.
            kept.checked_mul(power_of_ten(target - digits)?)
        });
    }
    let values = call.number::<Float64Type>(0)?;
    let result = call.numbers::<Float64Type>(|row| {
        Ok(values.get(row).zip(digits(row)).map(|(value, digits)| round_double(value, digits, mode)))
    })?;
    Ok(cast(&result, call.return_type())?)
}

/// Rounds the decimal number that a double shows, as Java's `BigDecimal.valueOf` does.
fn round_double(value: f64, digits: i32, mode: Mode) -> f64 {
    if !value.is_finite() || value == 0.0 || digits > 17 {
        return value;
    }
    if mode == Mode::Cut {
        let factor = 10_f64.powi(digits);
        let cut = (value * factor).trunc() / factor;
        return if cut.is_finite() { cut } else { value };
    }
    // Digits in front of the point are moved behind it, which the text form can do exactly.
    let shown = format!("{value:e}");
    let Some((mantissa, exponent)) = shown.split_once('e') else { return value };
    let exponent = exponent.parse::<i32>().unwrap_or(0) + digits;
    if exponent > 30 {
        return value;
    }
    let wide = DecimalType { precision: 38, scale: 0 };
    match parse_decimal(&format!("{mantissa}e{exponent}"), wide) {
        Some(Some(unscaled)) => format!("{unscaled}e{}", -digits).parse().unwrap_or(value),
        _ => value,
    }
}

fn to_whole(call: &Call, mode: Mode) -> Result<ArrayRef> {
    let array = call.array(0)?;
    match array.data_type() {
        DataType::Decimal128(..) => {
            let data_type = array.data_type().clone();
            decimals(call, &data_type, |_, value, scale, _| mode.divide(value, power_of_ten(scale)?))
        }
        DataType::Float32 | DataType::Float64 => {
            let values = call.number::<Float64Type>(0)?;
            let apply = if mode == Mode::Up { f64::ceil } else { f64::floor };
            let result = call.numbers::<Float64Type>(|row| Ok(values.get(row).map(apply)))?;
            Ok(cast(&result, call.return_type())?)
        }
        _ => Ok(array),
    }
}

/// Decimals row by row: `apply(row, unscaled, scale, scale of the result)`; too many digits are NULL.
fn decimals(
    call: &Call,
    data_type: &DataType,
    apply: impl Fn(usize, i256, i32, i32) -> Option<i256>,
) -> Result<ArrayRef> {
    let values = call.array(0)?;
    let values = values.as_primitive::<Decimal128Type>();
    let (Some(from), Some(to)) = (DecimalType::of(data_type), DecimalType::of(call.return_type())) else {
        return Err(evaluation("no DECIMAL"));
    };
    let result: PrimitiveArray<Decimal128Type> = values
        .iter()
        .enumerate()
        .map(|(row, value)| to.checked(apply(row, i256::from_i128(value?), from.scale, to.scale)?))
        .collect();
    Ok(Arc::new(result.with_data_type(call.return_type().clone())))
}

fn call_integers(call: &Call, row: impl FnMut(usize) -> Result<Option<i64>>) -> Result<PrimitiveArray<Int64Type>> {
    (0..call.rows()).map(row).collect()
}

/// BIGINT back to a narrower type, wrapping.
fn narrowed(values: &PrimitiveArray<Int64Type>, to: &DataType) -> Result<ArrayRef> {
    use arrow::datatypes::{Int8Type, Int16Type, Int32Type};
    #[expect(clippy::cast_possible_truncation, reason = "wraps on purpose")]
    let narrowed: ArrayRef = match to {
        DataType::Int8 => Arc::new(values.unary::<_, Int8Type>(|value| value as i8)),
        DataType::Int16 => Arc::new(values.unary::<_, Int16Type>(|value| value as i16)),
        DataType::Int32 => Arc::new(values.unary::<_, Int32Type>(|value| value as i32)),
        _ => Arc::new(values.clone()),
    };
    Ok(narrowed)
}

fn abs(call: &Call) -> Result<ArrayRef> {
    same_type(call, i64::wrapping_abs, i128::wrapping_abs, f64::abs)
}

fn sign(call: &Call) -> Result<ArrayRef> {
    let data_type = call.array(0)?.data_type().clone();
    if let DataType::Decimal128(_, scale) = data_type {
        let one = 10_i128.pow(u32::try_from(scale).unwrap_or(0));
        let values = call.array(0)?;
        let result: PrimitiveArray<Decimal128Type> =
            values.as_primitive::<Decimal128Type>().unary(|v| v.signum() * one);
        return Ok(Arc::new(result.with_data_type(data_type)));
    }
    same_type(
        call,
        i64::signum,
        i128::signum,
        |value| if value == 0.0 || value.is_nan() { value } else { value.signum() },
    )
}

fn same_type(
    call: &Call,
    integer: fn(i64) -> i64,
    decimal: fn(i128) -> i128,
    double: fn(f64) -> f64,
) -> Result<ArrayRef> {
    let array = call.array(0)?;
    let data_type = array.data_type().clone();
    if data_type.is_integer() {
        let wide = cast(&array, &Int64Type::DATA_TYPE)?;
        return narrowed(&wide.as_primitive::<Int64Type>().unary(integer), &data_type);
    }
    if let DataType::Decimal128(..) = data_type {
        let result: PrimitiveArray<Decimal128Type> = array.as_primitive::<Decimal128Type>().unary(decimal);
        return Ok(Arc::new(result.with_data_type(data_type)));
    }
    let wide = cast(&array, &DataType::Float64)?;
    let result: PrimitiveArray<Float64Type> = wide.as_primitive::<Float64Type>().unary(double);
    Ok(cast(&result, &data_type)?)
}
