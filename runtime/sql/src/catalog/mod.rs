//! The tables and views of a script, by name. Names are case-sensitive, as in Flink.
//!
//! Must not know: which connectors exist (their option lists are passed in), plans.

mod registry;
mod table;

pub use registry::{Catalog, Relation};
pub use table::{Column, ColumnKind, Expression, Table, TableOption, View, Watermark};
