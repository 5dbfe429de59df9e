//! A task: one attempt of one subtask, on one named OS thread.
//!
//! ```text
//!  gate or reader ──▶ alignment / watermarks ──▶ chain of operators ──▶ router ──▶ channels
//!        ▲                                         │ freeze
//!   mailbox: trigger, notify, cancel               ▼
//!                                             upload pool ──▶ acknowledgement
//! ```
//! Where to look: when a channel is blocked: `alignment`; in which order a snapshot is made: `snapshots`; where a
//! source cuts its batches: `lateness`; where rows go: `router`.

mod aborted;
mod alignment;
mod chain;
mod coalesce;
mod core;
mod deployment;
mod keyed;
mod lateness;
mod operator_task;
mod panics;
mod rate_limit;
mod reporter;
mod router;
mod run;
mod snapshots;
mod source_head;
mod source_task;
mod source_watermarks;
mod split_watermarks;
mod time;
mod uploads;
mod watermarks;

pub use deployment::{TaskEnding, TaskEnvironment, TaskHandle, TaskInput, TaskSpec, TaskWiring, spawn};
pub use reporter::ReportSink;
pub use router::OutputEdge;
pub use uploads::UploadPool;
