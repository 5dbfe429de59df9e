//! Where checkpoints lie: immutable objects under paths, behind one blocking trait that needs create-if-absent only.
//!
//! Three to know: [`Storage`] (the trait), [`StorageError`] (tells «not there» and «outcome unknown» from the rest),
//! [`open_job`] (URL of a job's folder → storage).
//!
//! `file.rs` and `memory.rs` are whole storages; everything that goes over a network is below `remote`.
//!
//! Must not know: what any object means; checkpoints, logs and state are the callers' words.

pub mod crash_points;
mod environment;
mod error;
mod faulty;
mod file;
mod memory;
mod object;
mod open;
mod options;
mod path;
mod remote;

pub use environment::Environment;
pub use error::{StorageError, StorageResult};
pub use faulty::{Faults, FaultyStorage};
pub use file::FileStorage;
pub use memory::MemoryStorage;
pub use object::{ObjectMeta, PutMode, PutOutcome, SmallObjects, Storage};
pub use open::{open, open_job, open_job_with, open_with};
pub use options::StorageOptions;
