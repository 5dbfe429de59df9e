//! A whole job under faults: sources that get their splits dealt out, keyed counters, a transactional sink, and the
//! real JobManager engine over the real log and restore code.
//!
//! ```text
//!  split coordinator ─► source ─┐ by key   ┌─► counter → sink ─► committed rows
//!                       source ─┴──────────┴─► counter → sink ─►
//! ```
//! Slots come and go, and the parallelism is changed now and then. Faults: storage refuses, loses writes or their
//! answers; tasks fail, or live on as zombies that nobody can reach; JobManagers die, or are replaced while they go on;
//! answers are late; notifications get lost, doubled or overtaken. Then everything heals, and the job must finish with each record in effect exactly once.

mod manager;

use rand::Rng;
use streamkeeper_jobmanager::engine::JobEnd;
use streamkeeper_protocol::CheckpointKind;
use streamkeeper_storage::Faults;

use crate::{
    Omission,
    invariants::{Verdict, ends_within, named_files_exist},
    shared::Shared,
    tasks::{RECORDS_PER_SPLIT, SPLITS},
};
use manager::Manager;

/// Steps with faults, and the most that a healed job may need.
const CHAOS: usize = 900;
const HEALED: usize = 60_000;
const STARTS_IN_VAIN: u32 = 100;

/// Runs one seed.
///
/// # Errors
/// The promise that was broken.
pub fn run(seed: u64, omission: Omission) -> Verdict {
    let mut world = World::new(seed, omission);
    for _ in 0..CHAOS {
        if world.finished {
            break;
        }
        world.disturb();
        world.step()?;
    }
    world.heal();
    let mut steps = 0;
    while !world.finished {
        ends_within(steps, HEALED, || world.describe())?;
        steps += 1;
        world.step()?;
    }
    world.shared.outside.finished(SPLITS, RECORDS_PER_SPLIT)
}

struct World {
    shared: Shared,
    /// The newest last; earlier ones are zombies that do not know it yet.
    managers: Vec<Manager>,
    instances: u64,
    /// Starts in vain, one after the other, while nothing disturbs them.
    in_vain: u32,
    finished: bool,
}

impl World {
    fn new(seed: u64, omission: Omission) -> Self {
        let shared = Shared::new(seed, omission, Faults { refused: 0.01, lost: 0.01, answer_lost: 0.01 });
        Self { shared, managers: Vec::new(), instances: 0, in_vain: 0, finished: false }
    }

    /// Kills or replaces the JobManager now and then, changes what it has to run on, and asks for savepoints and other
    /// parallelisms.
    fn disturb(&mut self) {
        if self.shared.mishap(0.002) {
            // The process is gone, and its tasks with it.
            self.managers.pop();
        }
        if self.shared.mishap(0.002) {
            self.start_manager();
        }
        let (slots, rescale) = (self.shared.mishap(0.004), self.shared.mishap(0.004));
        if let Some(manager) = self.managers.last_mut() {
            if slots {
                manager.change_slots(&mut self.shared);
            }
            if rescale {
                manager.rescale(&mut self.shared);
            }
        }
        for (probability, kind) in
            [(0.004, CheckpointKind::Savepoint), (0.000_5, CheckpointKind::StopSavepoint { drain: false })]
        {
            if self.shared.mishap(probability)
                && let Some(manager) = self.managers.last_mut()
            {
                manager.request_savepoint(&mut self.shared, kind);
            }
        }
    }

    fn heal(&mut self) {
        self.shared.chaos = false;
        self.shared.faults = Faults::NONE;
        for manager in &mut self.managers {
            manager.heal(&mut self.shared);
        }
    }

    fn step(&mut self) -> Verdict {
        self.shared.now += self.shared.rng.random_range(0..4);
        if self.managers.is_empty() {
            self.start_manager();
        }
        // The newest is the most likely to run; the zombies get their turns.
        let last = self.managers.len().saturating_sub(1);
        let index =
            if last > 0 && self.shared.rng.random_bool(0.3) { self.shared.rng.random_range(0..last) } else { last };
        if let Some(manager) = self.managers.get_mut(index) {
            manager.step(&mut self.shared);
            match manager.end() {
                None => {}
                Some(JobEnd::Finished) => self.finished = true,
                Some(JobEnd::Failed(error)) => return Err(format!("the job failed: {error}")),
                Some(JobEnd::Stopped(_) | JobEnd::Suspended | JobEnd::Cancelled) => {
                    self.managers.remove(index);
                }
            }
        }
        std::mem::replace(&mut self.shared.broken, Ok(()))
    }

    fn start_manager(&mut self) {
        self.instances += 1;
        if let Some(manager) = Manager::start(&mut self.shared, self.instances) {
            let whole = named_files_exist(&self.shared.storage, manager.log_state());
            self.shared.check(whole);
            self.finished = manager.is_ended_in_log();
            self.managers.push(manager);
            self.in_vain = 0;
            if !self.shared.chaos {
                self.heal();
            }
        } else if !self.shared.chaos {
            self.in_vain += 1;
            let stuck = self.in_vain > STARTS_IN_VAIN;
            self.shared.check(if stuck { Err("no JobManager can take the job over".to_owned()) } else { Ok(()) });
        }
    }

    fn describe(&self) -> String {
        let describe = |manager: &Manager| manager.describe(self.shared.now);
        self.managers.last().map_or_else(|| "no JobManager starts".to_owned(), describe)
    }
}
