//! What JobManager and TaskManagers say to each other, and what both say of a job to people.
//!
//! Three to know: [`ToTask`] (commands), [`FromTask`] (reports), [`Barrier`] (what travels with a checkpoint).
//! All of it is plain data; in one process it is handed over as it is, between
//! processes [`control`] carries it over gRPC.
//!
//! Must not know: how a task runs, what a manifest holds.

mod barrier;
pub mod control;
mod metrics;
pub mod rest;
mod task;

pub use barrier::{Barrier, CheckpointKind, SnapshotFormat};
pub use metrics::{CheckpointMetrics, SourceProgress, SubtaskMetrics, TaskTime};
pub use task::{CoordinatorEvent, DeclineReason, FromTask, TaskReport, TaskState, ToTask};
