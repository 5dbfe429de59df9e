//! Metrics for Prometheus: which there are, and how they are served.
//!
//! The list in `list` is the only one: the text of `/metrics` and docs/reference/metrics.md are made from it. JobManagers
//! serve sums of vertices and everything about checkpoints on the port of their REST API, TaskManagers the subtasks that
//! run in them on a port of their own.

mod list;
mod process;
mod samples;
mod server;

pub use list::*;
pub use process::process_samples;
pub use samples::{CONTENT_TYPE, Number, Samples, render};
pub use server::MetricsServer;
