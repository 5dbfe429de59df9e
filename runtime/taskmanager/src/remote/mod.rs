//! A TaskManager for a JobManager in another process.
//!
//! ```text
//!  serve: for ever, JobManager after JobManager
//!    └ session: connect ─► register ─► welcome ─► plan the program ─► run what is deployed ─► stream ends
//!                                                                          └ all tasks are cancelled: whoever leads
//!                                                                            next deploys them from the log
//! ```

mod broken;
mod figures;
mod options;
mod reports;
mod serve;
mod session;
mod work_folder;

pub use options::{Prepare, Prepared, RemoteOptions};
pub use serve::serve;
