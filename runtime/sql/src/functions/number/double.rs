//! Functions on DOUBLE, as Java's `Math` has them.

use std::{
    cell::RefCell,
    f64::consts,
    hash::{BuildHasher, RandomState},
};

use arrow::{
    array::ArrayRef,
    datatypes::{Float64Type, Int32Type, Int64Type},
};
use datafusion::common::Result;

use crate::functions::{
    call::Call,
    definition::{
        Definition,
        Param::{Double, Integer},
        returns::{double, int},
    },
    fault::evaluation,
};

macro_rules! functions {
    ($count:literal; $($name:literal $usage:literal $eval:expr;)+ ; $($more:expr),+ $(,)?) => {
        pub(crate) static FUNCTIONS: [Definition; $count] = [
            $(Definition::new($name, $usage, &[Double], double, |call| one(call, $eval)),)+
            $($more),+
        ];
    };
}

functions! { 25;
    "sqrt" "SQRT(x) → DOUBLE" f64::sqrt;
    "exp" "EXP(x) → DOUBLE" f64::exp;
    "ln" "LN(x) → DOUBLE" f64::ln;
    "log10" "LOG10(x) → DOUBLE" f64::log10;
    "log2" "LOG2(x) → DOUBLE" f64::log2;
    "sin" "SIN(x) → DOUBLE" f64::sin;
    "cos" "COS(x) → DOUBLE" f64::cos;
    "tan" "TAN(x) → DOUBLE" f64::tan;
    "cot" "COT(x) → DOUBLE" |x| 1.0 / x.tan();
    "asin" "ASIN(x) → DOUBLE" f64::asin;
    "acos" "ACOS(x) → DOUBLE" f64::acos;
    "atan" "ATAN(x) → DOUBLE" f64::atan;
    "sinh" "SINH(x) → DOUBLE" f64::sinh;
    "cosh" "COSH(x) → DOUBLE" f64::cosh;
    "tanh" "TANH(x) → DOUBLE" f64::tanh;
    "degrees" "DEGREES(x) → DOUBLE" f64::to_degrees;
    "radians" "RADIANS(x) → DOUBLE" f64::to_radians;
    "cbrt" "CBRT(x) → DOUBLE" f64::cbrt;
    ;
    Definition::new("power", "POWER(x, y) → DOUBLE", &[Double, Double], double, |call| two(call, f64::powf)),
    Definition::new("atan2", "ATAN2(y, x) → DOUBLE", &[Double, Double], double, |call| two(call, f64::atan2)),
    Definition::new("log", "LOG([base,] x) → DOUBLE", &[Double, Double], double, log)
        .required(1)
        .note("Without a base the natural logarithm."),
    Definition::new("pi", "PI() → DOUBLE", &[], double, |call| constant(call, consts::PI)),
    Definition::new("e", "E() → DOUBLE", &[], double, |call| constant(call, consts::E)),
    Definition::new("rand", "RAND([seed INT]) → DOUBLE", &[Integer], double, rand)
        .required(0)
        .volatile()
        .note("With a seed the same numbers for each batch, though not those of Java."),
    Definition::new("rand_integer", "RAND_INTEGER([seed INT,] bound INT) → INT", &[Integer, Integer], int, rand_integer)
        .required(1)
        .volatile(),
}

fn one(call: &Call, apply: fn(f64) -> f64) -> Result<ArrayRef> {
    let values = call.number::<Float64Type>(0)?;
    call.numbers::<Float64Type>(|row| Ok(values.get(row).map(apply)))
}

fn two(call: &Call, apply: fn(f64, f64) -> f64) -> Result<ArrayRef> {
    let (first, second) = (call.number::<Float64Type>(0)?, call.number::<Float64Type>(1)?);
    call.numbers::<Float64Type>(|row| Ok(first.get(row).zip(second.get(row)).map(|(x, y)| apply(x, y))))
}

fn log(call: &Call) -> Result<ArrayRef> {
    if call.len() == 1 { one(call, f64::ln) } else { two(call, |base, x| x.ln() / base.ln()) }
}

fn constant(call: &Call, value: f64) -> Result<ArrayRef> {
    call.numbers::<Float64Type>(|_| Ok(Some(value)))
}

thread_local! {
    /// State of the numbers without a seed; begins anew for each thread at a place that nobody knows.
    static STATE: RefCell<u64> = RefCell::new(RandomState::new().hash_one(0_u8));
}

/// The next number of the sequence that SplitMix64 defines.
fn next(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut mixed = *state;
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

/// Runs `draw` over a seeded sequence or the thread's own.
fn random<R>(seed: Option<i64>, draw: impl FnOnce(&mut u64) -> R) -> R {
    match seed {
        Some(seed) => draw(&mut seed.cast_unsigned()),
        None => STATE.with_borrow_mut(draw),
    }
}

/// From 0 up to, not including, 1.
#[expect(clippy::cast_precision_loss, reason = "53 bits are what a double holds")]
fn unit(state: &mut u64) -> f64 {
    (next(state) >> 11) as f64 / (1_u64 << 53) as f64
}

fn rand(call: &Call) -> Result<ArrayRef> {
    let seed = if call.len() > 0 { call.number::<Int64Type>(0)?.get(0) } else { None };
    random(seed, |state| call.numbers::<Float64Type>(|_| Ok(Some(unit(state)))))
}

fn rand_integer(call: &Call) -> Result<ArrayRef> {
    let bounds = call.number::<Int64Type>(call.len() - 1)?;
    let seed = if call.len() > 1 { call.number::<Int64Type>(0)?.get(0) } else { None };
    random(seed, |state| {
        call.numbers::<Int32Type>(|row| {
            let Some(bound) = bounds.get(row) else { return Ok(None) };
            match i32::try_from(bound) {
                Ok(bound @ 1..) => {
                    #[expect(clippy::cast_possible_truncation, reason = "below an INT")]
                    let number = (unit(state) * f64::from(bound)) as i32;
                    Ok(Some(number))
                }
                _ => Err(evaluation(format!("RAND_INTEGER wants a bound above 0, not {bound}"))),
            }
        })
    })
}
