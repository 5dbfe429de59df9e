//! The scenarios by name, for tests and for the command that replays a seed.

use std::{
    ops::Range,
    sync::atomic::{AtomicU64, Ordering},
    thread,
};

use crate::{Omission, cluster_world, job_world, log_world};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scenario {
    Log,
    Job,
    Cluster,
}

impl Scenario {
    pub const ALL: [Self; 3] = [Self::Log, Self::Job, Self::Cluster];

    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|scenario| scenario.name() == name)
    }

    fn name(self) -> &'static str {
        match self {
            Self::Log => "log",
            Self::Job => "job",
            Self::Cluster => "cluster",
        }
    }
}

/// Runs one seed.
///
/// # Errors
/// The promise that was broken, and the command that shows it again.
pub fn run(scenario: Scenario, seed: u64, omission: Omission) -> Result<(), String> {
    let result = match scenario {
        Scenario::Log => log_world::run(seed, omission),
        Scenario::Job => job_world::run(seed, omission),
        Scenario::Cluster => cluster_world::run(seed, omission),
    };
    result.map_err(|broken| {
        let name = scenario.name();
        let omit = if omission == Omission::Nothing { String::new() } else { format!(" --omit {omission:?}") };
        format!("{broken}\n  replay: cargo run -p streamkeeper-sim -- --scenario {name} --seed {seed}{omit}")
    })
}

/// Runs many seeds on all cores, until one fails.
///
/// # Errors
/// As [`run`], for the lowest of the seeds that failed.
pub fn run_many(scenario: Scenario, seeds: Range<u64>, omission: Omission) -> Result<(), String> {
    let next = AtomicU64::new(seeds.start);
    let work = || {
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= seeds.end {
                return None;
            }
            if let Err(broken) = run(scenario, seed, omission) {
                next.store(seeds.end, Ordering::Relaxed);
                return Some((seed, broken));
            }
        }
    };
    let cores = thread::available_parallelism().map_or(1, usize::from);
    let failed = thread::scope(|scope| {
        let workers: Vec<_> = (0..cores).map(|_| scope.spawn(work)).collect();
        let ends =
            workers.into_iter().map(|worker| worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        ends.flatten().min_by_key(|(seed, _)| *seed)
    });
    failed.map_or(Ok(()), |(_, broken)| Err(broken))
}
