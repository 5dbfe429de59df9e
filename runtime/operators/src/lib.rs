//! Steps of a dataflow over Arrow batches: filter, projection, aggregates, windows, deduplication, LAG.
//!
//! Three to know: [`GroupAggregateFactory`] (updating GROUP BY), [`WindowAggregateFactory`] (TUMBLE and HOP), and
//! [`changelog`] (how rows are added and taken back). Every operator has a `…Spec` of plain data, in which arguments,
//! keys and filters are input columns, and a `…Factory` that planning puts into the stream graph.
//!
//! Must not know: SQL text, connectors, where a channel ends, which state backend runs.

mod aggregate;
pub mod changelog;
mod dedup;
mod keys;
mod lag;
mod latest;
mod project;
mod state;
mod time;
mod union;
mod waiting;
mod watermark;
mod window;

pub use aggregate::{AggregateFunction, AggregateSpec, GroupAggregateFactory, GroupAggregateSpec};
pub use dedup::{DeduplicateFactory, DeduplicateSpec, Keep, RowNumber};
pub use lag::{LagColumn, LagFactory, LagSpec};
pub use project::{ClockHook, Expression, ProjectFactory};
pub use time::TimeOrder;
pub use union::UnionAllFactory;
pub use window::{
    WindowAggregateFactory, WindowAggregateSpec, WindowAssignFactory, WindowAssignSpec, WindowSpec, WindowTime,
};
