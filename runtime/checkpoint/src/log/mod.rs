//! The job log: fence, ledger of completed checkpoints, id counter and job result in one.
//!
//! ```text
//! log/1/0 claim   log/1/1 base   log/1/2 completed …  log/1/9 sealed by 2
//! log/2/0 claim   log/2/1 base   log/2/2 ids …
//! ```
//! Each reign of a JobManager has its own folder. It **claims** the next generation, **seals** every lower one by
//! appending after its highest number, reads the newest state, writes it as its own **base**, and only then deploys
//! tasks and **publishes**, each record at its own next number. A late leader's next append is exactly where its seal
//! lies: it collides and ends itself. The storage must offer create-if-absent and nothing more.
//!
//! [`Start`], [`Append`] and [`Reign`] decide and do no I/O: they ask with a [`Request`] and take a [`Reply`], so the
//! simulator can stop a claimant between any two steps. [`JobLog`] drives them over a storage.

mod append;
mod driver;
mod record;
mod reign;
mod start;
mod state;
mod step;

pub use append::{Append, Appended};
pub use driver::{AppendError, JobLog, RetryPolicy, StartError};
pub use record::{Completion, LOG_VERSION, Record};
pub use reign::{ID_BLOCK, Reign, numbers_to_collect};
pub use start::{Start, StartFailure, Started};
pub use state::{AppliedSource, CompletedCheckpoint, Discard, JobResult, JobState, RestoreSource};
pub use step::{Created, Reply, Request, Step, entry_path, parse_entry};
