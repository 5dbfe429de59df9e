//! From text to statements: Flink's dialect over stock sqlparser, and our own parsing of Flink's DDL over its tokens.
//!
//! [`parse_script`] reads a whole script. Flink's special forms (CAST with Flink's types, window table functions, JSON
//! clauses, …) become plain calls of functions whose names begin with `__`; [`crate::functions`] has them all.
//!
//! Must not know: which functions and connectors exist, types of expressions, plans.

mod build;
mod create_table;
pub(crate) mod cursor;
mod dialect;
pub(crate) mod fault;
mod fields;
mod forms;
mod interval;
mod json_forms;
mod limits;
mod script;
mod statement;
mod table_functions;
mod window;

pub use dialect::FlinkDialect;
pub use script::{Script, parse_script};
pub use statement::{Insert, Query, Statement};
pub use window::{WindowKind, WindowTvf};
