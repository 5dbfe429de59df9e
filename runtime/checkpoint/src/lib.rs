//! What a job's folder in checkpoint storage holds, and who may change it: log, manifests, shared files, restore.
//!
//! Three to know: [`log`] (fence, ledger and id counter in one, by create-if-absent only), [`Manifest`] (what one
//! checkpoint or savepoint consists of), [`restore::assign`] (snapshot + job graph → state of each subtask).
//!
//! The deciding parts are pure; I/O is in [`log::JobLog`], [`Inventory`], [`owner`] and [`files`].
//!
//! Must not know: how tasks run, what a state file contains, when checkpoints are triggered.

pub mod files;
mod inventory;
pub mod log;
pub mod manifest;
pub mod owner;
pub mod recovery;
pub mod registry;
pub mod restore;
pub mod retention;

pub use inventory::Inventory;
pub use log::{CompletedCheckpoint, JobResult, JobState, RestoreSource};
pub use manifest::{Manifest, ManifestOperator};
pub use recovery::StartFrom;
pub use registry::SharedRegistry;
