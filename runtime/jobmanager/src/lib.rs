//! The JobManager: decides when to checkpoint, what completes, and what happens after a failure.
//!
//! Three to know: [`engine::Job`] (one job's life as a pure state machine), [`engine::Event`] (what it is told),
//! [`engine::Command`] (what it wants done). Around it: [`shell`] (the thread that runs it), [`rpc`] (TaskManagers
//! elsewhere), [`rest`] (people and programs), [`metrics`] (Prometheus).
//!
//! Must not know: any connector, what state files hold, RocksDB.

pub mod engine;
mod listener;
pub mod metrics;
pub mod rest;
pub mod rpc;
mod secrets;
pub mod shell;
