//! The cluster in one seeded process: the real deciding code under faults, with its promises checked at every step.
//!
//! Three to know: [`log_world`] (claimants of one job log, stopped between any two storage calls), [`job_world`] (whole
//! jobs with sources, keyed counters and a transactional sink), [`Omission`] (one rule left out on purpose, which the
//! invariants must notice).
//!
//! One seed decides everything, so a failing seed fails again. Must not know: threads, clocks, real storage.

pub mod invariants;
pub mod job_world;
pub mod log_world;
mod omission;
mod scenario;

pub use omission::Omission;
pub use scenario::{Scenario, run};
