//! The JobManager: decides when to checkpoint, what completes, and what happens after a failure.
//!
//! Three to know: [`engine::Job`] (one job's life as a pure state machine), [`engine::Event`] (what it is told),
//! [`engine::Command`] (what it wants done).
//!
//! Must not know: any connector, what state files hold, RocksDB.

pub mod engine;
pub mod rpc;
pub mod shell;
