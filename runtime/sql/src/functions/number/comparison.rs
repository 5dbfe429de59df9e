//! Comparisons of DOUBLE and FLOAT as Java has them: −0.0 equals 0.0, and NaN equals nothing, itself included, and is
//! neither less nor greater than anything. Arrow's kernels have IEEE 754's total order instead.

use arrow::{array::ArrayRef, datatypes::Float64Type};
use datafusion::{common::Result, logical_expr::Operator};

use crate::functions::{
    call::Call,
    definition::{Definition, Param::Number, returns::boolean},
};

/// Name of the comparison that `operator` is for floating-point numbers.
pub(crate) fn name_of(operator: Operator) -> Option<&'static str> {
    Some(match operator {
        Operator::Eq => "__float_eq",
        Operator::NotEq => "__float_ne",
        Operator::Lt => "__float_lt",
        Operator::LtEq => "__float_le",
        Operator::Gt => "__float_gt",
        Operator::GtEq => "__float_ge",
        Operator::IsDistinctFrom => "__float_distinct",
        Operator::IsNotDistinctFrom => "__float_same",
        _ => return None,
    })
}

/// Whether a function is one of these, which no value can make fail.
pub(crate) fn is_comparison(function: &str) -> bool {
    FUNCTIONS.iter().chain(&MEMBERSHIP).any(|definition| definition.name == function)
}

/// Name of `x IN (…)` for floating-point numbers.
pub(crate) const IN: &str = "__float_in";

macro_rules! comparisons {
    ($($name:literal $usage:literal $eval:expr;)+) => {
        [$(Definition::new($name, $usage, &[Number, Number], boolean, $eval)),+]
    };
}

pub(crate) static FUNCTIONS: [Definition; 8] = comparisons! {
    "__float_eq" "x = y" |call| compare(call, |x, y| x == y);
    "__float_ne" "x <> y" |call| compare(call, |x, y| x != y);
    "__float_lt" "x < y" |call| compare(call, |x, y| x < y);
    "__float_le" "x <= y" |call| compare(call, |x, y| x <= y);
    "__float_gt" "x > y" |call| compare(call, |x, y| x > y);
    "__float_ge" "x >= y" |call| compare(call, |x, y| x >= y);
    "__float_distinct" "x IS DISTINCT FROM y" |call| distinct(call, true);
    "__float_same" "x IS NOT DISTINCT FROM y" |call| distinct(call, false);
};

pub(crate) static MEMBERSHIP: [Definition; 1] =
    [Definition::new(IN, "x IN (y, …)", &[Number, Number], boolean, is_in).repeats()];

fn compare(call: &Call, holds: fn(f64, f64) -> bool) -> Result<ArrayRef> {
    let (left, right) = (call.number::<Float64Type>(0)?, call.number::<Float64Type>(1)?);
    call.booleans(|row| Ok(left.get(row).zip(right.get(row)).map(|(x, y)| holds(x, y))))
}

/// NULL is like NULL and unlike every number. `when_unlike` is the result for what differs.
fn distinct(call: &Call, when_unlike: bool) -> Result<ArrayRef> {
    let (left, right) = (call.number::<Float64Type>(0)?, call.number::<Float64Type>(1)?);
    call.booleans(|row| {
        let like = match (left.get(row), right.get(row)) {
            (None, None) => true,
            (Some(x), Some(y)) => x == y,
            _ => false,
        };
        Ok(Some(like != when_unlike))
    })
}

/// TRUE if any equals, else NULL if any is NULL.
fn is_in(call: &Call) -> Result<ArrayRef> {
    let subject = call.number::<Float64Type>(0)?;
    let list = (1..call.len()).map(|index| call.number::<Float64Type>(index)).collect::<Result<Vec<_>>>()?;
    call.booleans(|row| {
        let Some(x) = subject.get(row) else { return Ok(None) };
        let mut unknown = false;
        for item in &list {
            match item.get(row) {
                Some(y) if x == y => return Ok(Some(true)),
                Some(_) => {}
                None => unknown = true,
            }
        }
        Ok((!unknown).then_some(false))
    })
}
