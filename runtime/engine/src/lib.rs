//! The engine: what operators, sources and sinks are, how they are chained into tasks, and the loop that runs a task.
//!
//! Three to know: [`Operator`] (what a step of the dataflow implements), [`SourceFactory`] with its reader and split
//! coordinator, [`StreamGraph`] (what planning yields and [`JobGraph`] chains).
//!
//! Must not know: SQL, any concrete operator or connector, where a channel ends, how checkpoints are decided.

mod clock;
mod deployment;
mod graph;
mod operator;
mod source;
mod source_events;
pub mod task;

pub use clock::{Clock, ManualClock, SystemClock};
pub use deployment::{Deployment, TaskDeployment};
pub use graph::{
    Changelog, Edge, JobEdge, JobGraph, Node, NodeFactory, Partitioning, StateDescription, StreamGraph, Vertex,
};
pub use operator::{
    Operator, OperatorContext, OperatorFactory, OperatorMetrics, OperatorRestore, Output, RestoredLists, SubtaskInfo,
};
pub use source::{
    Assignment, Paused, Polled, SourceContext, SourceFactory, SourceReader, Split, SplitCoordinator, SplitRequest,
    UnreadSplits, WatermarkStrategy,
};
pub use source_events::{SPLITS, SplitItem, ToCoordinator, ToReader};
