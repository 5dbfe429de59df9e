//! Flink's SQL types: their grammar, their canonical text, and the Arrow type that holds each.
//!
//! Must not know: tables, functions, plans.

mod arrow_type;
mod parse;
mod precision;
mod sql_type;

pub(crate) use parse::parse_data_type;
pub use parse::parse_type;
pub(crate) use precision::{precision_of, with_precision, without_precision};
pub use sql_type::{Field, SqlType};
