//! StreamJob and Savepoint as people write them: types with defaults, the CRDs made from them, and pure validation.
//!
//! Three to know: [`StreamJob`] (one streaming job), [`load()`] (YAML text → StreamJobs, or every fault of their form),
//! [`validate()`] (StreamJob → [`ValidatedJob`], or every fault of its meaning). The operator and the command line read the
//! same types.
//!
//! Must not know: a Kubernetes client, tokio, how a job runs, any clock or file.

pub mod autoscaler;
mod cel;
pub mod checkpoint;
pub mod config;
pub mod crd;
mod cron;
pub mod deletion;
mod fault;
mod load;
mod nearest;
pub mod pods;
pub mod program;
mod quantity;
pub mod restart;
pub mod restore;
mod savepoint;
pub mod savepoint_policy;
mod settings;
pub mod state;
pub mod status;
mod stream_job;
mod strict;
mod text;
pub mod upgrade;
mod validate;
pub mod yaml;

pub use fault::Fault;
pub use load::{ConfigMaps, Manifest, ObjectName, load};
pub use savepoint::{ExistingSavepoint, Savepoint, SavepointPhase, SavepointSpec, SavepointStatus, SavepointTrigger};
pub use settings::{
    CheckpointSettings, ProgramSource, RestartStrategy, RestoreRequest, SavepointSettings, StateSettings, ValidatedJob,
};
pub use stream_job::{StreamJob, StreamJobSpec};
pub use text::{DurationText, QuantityText, StorageUri};
pub use validate::{unsupported, validate};
