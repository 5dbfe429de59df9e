//! The ways in which one case must give the same rows.

use std::fmt;

use streamkeeper_api::state::StateBackend;

/// One way to run a case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Variant {
    pub backend: StateBackend,
    pub parallelism: u32,
    /// Crashes in order.
    pub crashes: Vec<Crash>,
}

/// Waits for a checkpoint at a place of the input, kills the job, and goes on from the checkpoint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Crash {
    /// Share of the input's records after which it happens, in percent.
    pub after_percent: u64,
    /// How the job goes on.
    pub parallelism: u32,
    pub resume_from: ResumeFrom,
}

/// What the job is restored from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResumeFrom {
    Checkpoint,
    /// A canonical savepoint, on the other backend.
    SavepointOnOtherBackend,
}

impl Variant {
    /// Every variant that a case runs in.
    #[must_use]
    pub fn all() -> Vec<Self> {
        let crash =
            |after_percent, parallelism| Crash { after_percent, parallelism, resume_from: ResumeFrom::Checkpoint };
        let variant = |backend, parallelism, crashes| Self { backend, parallelism, crashes };
        let other = Crash { after_percent: 50, parallelism: 2, resume_from: ResumeFrom::SavepointOnOtherBackend };
        vec![
            variant(StateBackend::Rocksdb, 1, vec![]),
            variant(StateBackend::Memory, 2, vec![]),
            variant(StateBackend::Rocksdb, 2, vec![crash(25, 2), crash(50, 2), crash(75, 2)]),
            variant(StateBackend::Memory, 1, vec![crash(40, 1), crash(80, 1)]),
            variant(StateBackend::Rocksdb, 2, vec![crash(30, 3), crash(60, 1)]),
            variant(StateBackend::Memory, 1, vec![crash(50, 3)]),
            variant(StateBackend::Rocksdb, 1, vec![other.clone()]),
            variant(StateBackend::Memory, 2, vec![other]),
        ]
    }
}

impl fmt::Display for Variant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let backend = match self.backend {
            StateBackend::Rocksdb => "rocksdb",
            StateBackend::Memory => "memory",
        };
        write!(f, "{backend} ×{}", self.parallelism)?;
        for crash in &self.crashes {
            let from = match crash.resume_from {
                ResumeFrom::Checkpoint => "crash",
                ResumeFrom::SavepointOnOtherBackend => "savepoint to the other backend",
            };
            write!(f, ", {from} at {} % → ×{}", crash.after_percent, crash.parallelism)?;
        }
        Ok(())
    }
}
