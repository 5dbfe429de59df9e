//! What JobManager and TaskManagers say to each other, and what both say of a job to people.
//!
//! Three to know: [`ToTask`] (commands), [`FromTask`] (reports), [`Barrier`] (what travels with a checkpoint).
//! All of it is plain data; transports (in-process now, gRPC with the distributed mode) carry it unchanged.
//!
//! Must not know: how a task runs, what a manifest holds, any transport.

mod barrier;
mod metrics;
mod task;

pub use barrier::{Barrier, CheckpointKind, SnapshotFormat};
pub use metrics::{CheckpointMetrics, SourceProgress, SubtaskMetrics, TaskTime};
pub use task::{CoordinatorEvent, DeclineReason, FromTask, TaskReport, TaskState, ToTask};
