//! Functions on numbers, and Flink's arithmetic where it differs from DataFusion's.

mod arithmetic;
mod comparison;
mod decimal;
mod double;
mod integer;
mod rounding;

pub(crate) use arithmetic::FUNCTIONS as ARITHMETIC;
pub(crate) use comparison::{FUNCTIONS as COMPARISONS, IN, MEMBERSHIP, is_comparison, name_of as comparison};
pub(crate) use decimal::{DecimalType, half_up, parse as parse_decimal, power_of_ten};
pub(crate) use double::FUNCTIONS as DOUBLE;
pub(crate) use integer::FUNCTIONS as INTEGER;
pub(crate) use rounding::FUNCTIONS as ROUNDING;
