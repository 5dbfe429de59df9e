//! Functions on numbers, and Flink's arithmetic where it differs from DataFusion's.

mod arithmetic;
mod decimal;
mod double;
mod integer;
mod rounding;

pub(crate) use arithmetic::FUNCTIONS as ARITHMETIC;
pub(crate) use decimal::{DecimalType, half_up, parse as parse_decimal, power_of_ten};
pub(crate) use double::FUNCTIONS as DOUBLE;
pub(crate) use integer::FUNCTIONS as INTEGER;
pub(crate) use rounding::FUNCTIONS as ROUNDING;
