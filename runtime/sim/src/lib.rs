//! The cluster in one seeded process: the real deciding code under faults, with its promises checked at every step.
//!
//! Four to know: [`log_world`] (claimants of one job log, stopped between any two storage calls), [`job_world`] (whole
//! jobs with sources, keyed counters and a transactional sink under one JobManager at a time), [`cluster_world`] (several
//! JobManagers and TaskManagers with a network between them), [`Omission`] (one rule left out on purpose, which the
//! [`invariants`] must notice).
//!
//! Real code: the engine, the job log, restore, recovery, retention, the inventory. Modelled: tasks (see `tasks`),
//! storage, network, and whoever executes the engine's commands.
//!
//! One seed decides everything, so a failing seed fails again. Must not know: threads, clocks, real storage.

pub mod cluster_world;
pub mod invariants;
pub mod job_world;
pub mod log_world;
mod omission;
mod scenario;
mod shared;
mod tasks;

pub use omission::Omission;
pub use scenario::{Scenario, run, run_many};
