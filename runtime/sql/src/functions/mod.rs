//! Flink's scalar functions under Flink's names, with Flink's results, and Flink's meaning of operators imposed on
//! DataFusion's expressions.
//!
//! [`rows`] is the one table of what there is; [`FlinkFunctions`] is what a planner looks functions up in;
//! [`flink_semantics`] rewrites what DataFusion would compute otherwise.
//!
//! Must not know: tables, statements, operators, state.

mod aggregates;
mod call;
mod cast;
pub mod clock;
mod collection;
mod conditional;
mod definition;
mod encoding;
pub mod fault;
mod json;
mod number;
mod regex;
mod registry;
mod rewrite;
mod table;
mod text;
pub mod time;
mod window;

pub use aggregates::{aggregates, result_type};
pub use cast::cast_to;
pub(crate) use number::is_comparison;
pub use registry::{FlinkFunctions, session_defaults};
pub use rewrite::{evaluable, flink_plan, flink_semantics};
pub use table::{Row, Served, reference_markdown, refusal, rows, scalar_functions};
pub use window::{WindowColumn, WindowMark, window_mark};
