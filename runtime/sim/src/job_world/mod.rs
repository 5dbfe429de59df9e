//! A whole job under faults: sources that get their splits dealt out, keyed counters, a transactional sink, and the
//! real JobManager engine over the real log and restore code.
//!
//! ```text
//!  split coordinator ─► source ─┐ by key   ┌─► counter → sink ─► committed rows
//!                       source ─┴──────────┴─► counter → sink ─►
//! ```
//! Slots come and go, and the parallelism is changed now and then. Faults: storage refuses, loses writes or their answers; tasks fail, or live on as zombies that nobody can reach;
//! JobManagers die, or are replaced while they go on; answers are late; notifications get lost, doubled or overtaken.
//! Then everything heals, and the job must finish with each record in effect exactly once.

mod counter;
mod dataflow;
mod manager;
mod source;
mod split_coordinator;
mod task;

use rand::{Rng, SeedableRng, rngs::SmallRng};
use serde::{Deserialize, Serialize};
use streamkeeper_jobmanager::engine::JobEnd;
use streamkeeper_protocol::CheckpointKind;
use streamkeeper_storage::{Faults, MemoryStorage};
use streamkeeper_types::Millis;

use crate::{
    Omission,
    invariants::{ExactlyOnce, IdsOnlyGrow, OneReignPublishes, Verdict, ends_within, named_files_exist},
};
use manager::Manager;

pub(crate) const SPLITS: u32 = 3;
pub(crate) const RECORDS_PER_SPLIT: u32 = 40;
pub(crate) const KEYS: u32 = 8;
pub(crate) const MAX_PARALLELISM: u32 = 16;

/// Steps with faults, and the most that a healed job may need.
const CHAOS: usize = 900;
const HEALED: usize = 60_000;

/// What reaches the outside: a record, its key, and how many of the key there were up to it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Row {
    pub split: u32,
    pub position: u32,
    pub key: u32,
    pub count: u32,
}

/// What all parts share: dice, storage, the outside and the promises.
pub(crate) struct Shared {
    pub(crate) rng: SmallRng,
    pub(crate) now: Millis,
    pub(crate) omission: Omission,
    pub(crate) storage: MemoryStorage,
    pub(crate) faults: Faults,
    pub(crate) outside: ExactlyOnce,
    pub(crate) ids: IdsOnlyGrow,
    pub(crate) reigns: OneReignPublishes,
    /// The first promise that was broken; tasks and managers cannot stop the run themselves.
    pub(crate) broken: Verdict,
    /// Whether faults may still happen.
    pub(crate) chaos: bool,
}

impl Shared {
    pub(crate) fn check(&mut self, verdict: Verdict) {
        if self.broken.is_ok() {
            self.broken = verdict;
        }
    }

    /// Something bad happens with this probability, as long as there are faults.
    pub(crate) fn mishap(&mut self, probability: f64) -> bool {
        self.chaos && self.rng.random_bool(probability)
    }
}

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
    finished: bool,
}

impl World {
    fn new(seed: u64, omission: Omission) -> Self {
        let shared = Shared {
            rng: SmallRng::seed_from_u64(seed),
            now: 0,
            omission,
            storage: MemoryStorage::new(),
            faults: Faults { refused: 0.01, lost: 0.01, answer_lost: 0.01 },
            outside: ExactlyOnce::default(),
            ids: IdsOnlyGrow::default(),
            reigns: OneReignPublishes::default(),
            broken: Ok(()),
            chaos: true,
        };
        Self { shared, managers: Vec::new(), instances: 0, finished: false }
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
            if !self.shared.chaos {
                self.heal();
            }
        }
    }

    fn describe(&self) -> String {
        let describe = |manager: &Manager| manager.describe(self.shared.now);
        self.managers.last().map_or_else(|| "no JobManager starts".to_owned(), describe)
    }
}
