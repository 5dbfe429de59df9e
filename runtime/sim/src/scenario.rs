//! The scenarios by name, for tests and for the command that replays a seed.

use crate::{Omission, job_world, log_world};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scenario {
    Log,
    Job,
}

impl Scenario {
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        match name {
            "log" => Some(Self::Log),
            "job" => Some(Self::Job),
            _ => None,
        }
    }
}

/// Runs one seed.
///
/// # Errors
/// The promise that was broken, and the command that shows it again.
pub fn run(scenario: Scenario, seed: u64, omission: Omission) -> Result<(), String> {
    let (name, result) = match scenario {
        Scenario::Log => ("log", log_world::run(seed, omission)),
        Scenario::Job => ("job", job_world::run(seed, omission)),
    };
    result.map_err(|broken| {
        let omit = if omission == Omission::Nothing { String::new() } else { format!(" --omit {omission:?}") };
        format!("{broken}\n  replay: cargo run -p streamkeeper-sim -- --scenario {name} --seed {seed}{omit}")
    })
}
