//! Aggregates: what they are, how their state is updated by column, and GROUP BY over a changelog.
//!
//! Three to know: [`AggregateSpec`] (plain data), [`accumulator::Accumulator`] (one aggregate's state columns),
//! [`GroupAggregateFactory`] (GROUP BY without windows).

pub(crate) mod accumulator;
mod combine;
pub(crate) mod distinct;
mod extreme;
mod finish;
pub(crate) mod fold;
mod group;
mod spec;
mod value_rows;
mod values;

pub use group::{GroupAggregateFactory, GroupAggregateSpec};
pub use spec::{AggregateFunction, AggregateSpec};
