//! Operators that DataFusion computes otherwise: integer division and remainder that wrap, decimals with Flink's scale.

use std::sync::Arc;

use arrow::{
    array::{Array, ArrayRef, AsArray, PrimitiveArray},
    compute::cast,
    datatypes::{
        ArrowPrimitiveType, DataType, Decimal128Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, i256,
    },
};
use datafusion::common::{Result, plan_err};

use super::{DecimalType, half_up, power_of_ten};
use crate::{
    functions::{
        call::Call,
        definition::{Definition, Param::Number, Types},
        fault::{division_by_zero, external},
    },
    types::SqlType,
};

pub(crate) static FUNCTIONS: [Definition; 5] = [
    Definition::new("__divide", "x / y", &[Number, Number], quotient, divide)
        .note("INT / INT is INT; by zero it fails the job, a literal by a literal zero while it is planned. The scale of a decimal quotient is max(6, s1 + p2 + 1)."),
    Definition::new("mod", "MOD(x, y), x % y", &[Number, Number], remainder, modulo)
        .note("Of integers by zero it fails the job."),
    Definition::new("__decimal_add", "x + y (DECIMAL)", &[Number, Number], sum, |call| {
        decimal(call, i256::checked_add)
    }),
    Definition::new("__decimal_subtract", "x - y (DECIMAL)", &[Number, Number], sum, |call| {
        decimal(call, i256::checked_sub)
    }),
    Definition::new("__decimal_multiply", "x * y (DECIMAL)", &[Number, Number], product, multiply)
        .note("A result of more than 38 digits is NULL."),
];

fn operands(types: &Types) -> Option<(DecimalType, DecimalType)> {
    Some((DecimalType::of(&types.of(0))?, DecimalType::of(&types.of(1))?))
}

/// Type of an arithmetic result: the wider integer, a decimal by `rule`, or DOUBLE.
fn result(types: &Types, rule: fn(DecimalType, DecimalType) -> DecimalType) -> Result<DataType> {
    let (left, right) = (types.of(0), types.of(1));
    if !left.is_numeric() || !right.is_numeric() {
        return plan_err!("no arithmetic on {} and {}", SqlType::name_of(&left), SqlType::name_of(&right));
    }
    match operands(types) {
        Some((a, b)) if left.is_integer() && right.is_integer() => {
            Ok(if a.precision >= b.precision { left } else { right })
        }
        Some((a, b)) => Ok(rule(a, b).arrow()),
        None if left == DataType::Float32 && (right == DataType::Float32 || right.is_integer()) => Ok(left),
        None if right == DataType::Float32 && left.is_integer() => Ok(right),
        None => Ok(DataType::Float64),
    }
}

fn quotient(types: &Types) -> Result<DataType> {
    result(types, DecimalType::quotient)
}

fn remainder(types: &Types) -> Result<DataType> {
    result(types, DecimalType::remainder)
}

fn sum(types: &Types) -> Result<DataType> {
    result(types, DecimalType::sum)
}

fn product(types: &Types) -> Result<DataType> {
    result(types, DecimalType::product)
}

fn divide(call: &Call) -> Result<ArrayRef> {
    match call.return_type() {
        DataType::Int8 => integers::<Int8Type>(call, i8::wrapping_div),
        DataType::Int16 => integers::<Int16Type>(call, i16::wrapping_div),
        DataType::Int32 => integers::<Int32Type>(call, i32::wrapping_div),
        DataType::Int64 => integers::<Int64Type>(call, i64::wrapping_div),
        DataType::Decimal128(_, scale) => {
            let target = i32::from(*scale);
            decimals(call, |(a, from), (b, by)| {
                let exponent = target - from.scale + by.scale;
                let (a, b) = if exponent < 0 {
                    (a, b.checked_mul(power_of_ten(-exponent)?)?)
                } else {
                    (a.checked_mul(power_of_ten(exponent)?)?, b)
                };
                half_up(a, b)
            })
        }
        _ => floats(call, |a, b| a / b),
    }
}

fn modulo(call: &Call) -> Result<ArrayRef> {
    match call.return_type() {
        DataType::Int8 => integers::<Int8Type>(call, i8::wrapping_rem),
        DataType::Int16 => integers::<Int16Type>(call, i16::wrapping_rem),
        DataType::Int32 => integers::<Int32Type>(call, i32::wrapping_rem),
        DataType::Int64 => integers::<Int64Type>(call, i64::wrapping_rem),
        DataType::Decimal128(..) => decimals(call, |(a, from), (b, by)| {
            let scale = from.scale.max(by.scale);
            let a = a.checked_mul(power_of_ten(scale - from.scale)?)?;
            a.checked_rem(b.checked_mul(power_of_ten(scale - by.scale)?)?)
        }),
        _ => floats(call, |a, b| a % b),
    }
}

fn integers<T: ArrowPrimitiveType>(call: &Call, apply: fn(T::Native, T::Native) -> T::Native) -> Result<ArrayRef>
where
    T::Native: Default + PartialEq,
{
    let (left, right) = (call.number::<T>(0)?, call.number::<T>(1)?);
    call.numbers::<T>(|row| match left.get(row).zip(right.get(row)) {
        Some((_, divisor)) if divisor == T::Native::default() => Err(external(division_by_zero())),
        Some((a, b)) => Ok(Some(apply(a, b))),
        None => Ok(None),
    })
}

fn floats(call: &Call, apply: fn(f64, f64) -> f64) -> Result<ArrayRef> {
    let (left, right) = (call.number::<Float64Type>(0)?, call.number::<Float64Type>(1)?);
    let values = call.numbers::<Float64Type>(|row| Ok(left.get(row).zip(right.get(row)).map(|(a, b)| apply(a, b))))?;
    Ok(cast(&values, call.return_type())?)
}

/// One operand: unscaled values, and their type.
struct Operand {
    values: PrimitiveArray<Decimal128Type>,
    data_type: DecimalType,
}

impl Operand {
    fn new(call: &Call, index: usize) -> Result<Self> {
        let array = call.array(index)?;
        let Some(data_type) = DecimalType::of(array.data_type()) else {
            return plan_err!("{} is no exact number", SqlType::name_of(array.data_type()));
        };
        let values = cast(&array, &data_type.arrow())?.as_primitive::<Decimal128Type>().clone();
        Ok(Self { values, data_type })
    }

    fn get(&self, row: usize) -> Option<(i256, DecimalType)> {
        self.values.is_valid(row).then(|| (i256::from_i128(self.values.value(row)), self.data_type))
    }
}

/// Division and remainder: zero fails the job, what has too many digits is NULL.
fn decimals(call: &Call, apply: impl Fn((i256, DecimalType), (i256, DecimalType)) -> Option<i256>) -> Result<ArrayRef> {
    computed(call, |a, b| {
        if b.0 == i256::ZERO {
            return Err(external(division_by_zero()));
        }
        Ok(apply(a, b))
    })
}

fn computed(
    call: &Call,
    apply: impl Fn((i256, DecimalType), (i256, DecimalType)) -> Result<Option<i256>>,
) -> Result<ArrayRef> {
    let (left, right) = (Operand::new(call, 0)?, Operand::new(call, 1)?);
    let Some(target) = DecimalType::of(call.return_type()) else { return plan_err!("no DECIMAL") };
    let row = |row: usize| match left.get(row).zip(right.get(row)) {
        Some((a, b)) => Ok(apply(a, b)?.and_then(|value| target.checked(value))),
        None => Ok(None),
    };
    let values: PrimitiveArray<Decimal128Type> = (0..call.rows()).map(row).collect::<Result<_>>()?;
    Ok(Arc::new(values.with_data_type(call.return_type().clone())))
}

/// Sum or difference at the wider scale, rounded to that of the result.
fn decimal(call: &Call, apply: fn(i256, i256) -> Option<i256>) -> Result<ArrayRef> {
    let Some(target) = DecimalType::of(call.return_type()) else { return plan_err!("no DECIMAL") };
    computed(call, |(a, from), (b, by)| {
        Ok((|| {
            let scale = from.scale.max(by.scale);
            let a = a.checked_mul(power_of_ten(scale - from.scale)?)?;
            let b = b.checked_mul(power_of_ten(scale - by.scale)?)?;
            half_up(apply(a, b)?, power_of_ten(scale - target.scale)?)
        })())
    })
}

fn multiply(call: &Call) -> Result<ArrayRef> {
    let Some(target) = DecimalType::of(call.return_type()) else { return plan_err!("no DECIMAL") };
    computed(call, |(a, from), (b, by)| {
        Ok(a.checked_mul(b).and_then(|value| half_up(value, power_of_ten(from.scale + by.scale - target.scale)?)))
    })
}
