//! The whole cluster: JobManagers of which one leads, TaskManagers with slots, and a network and a storage that fail.
//!
//! ```text
//!  JobManager 0 ◄─watch─ JobManager 1          storage: log, manifests, files
//!     ▲     ▲ deploy, trigger, notify             ▲ every process
//!     │     │ reports, signs of life
//!  TaskManager 2 ◄── elements ──► TaskManager 3 ──► committed rows
//! ```
//! Every process has its own clock. Faults: processes die (their peers notice, or only hear nothing more), freeze and
//! thaw, and go on from where they were; connections break; one direction between two processes is cut; messages are
//! late; one end of a connection may still act on what came before it closed; storage refuses, loses writes or their
//! answers, and is slow. Meanwhile people ask for savepoints, stops and other parallelisms, and TaskManagers come back
//! with other slots. Then everything heals, and the job must finish in time with each record in effect exactly once.
//!
//! A failing seed is run once more to tell what happened last.

mod environment;
mod job_manager;
mod network;
mod options;
mod task_manager;
mod wire;

use std::time::Duration;

use rand::Rng;
use streamkeeper_jobmanager::engine::{Bounds, CheckpointRequest, Event, Origin, RequestId, Sharing};
use streamkeeper_protocol::{CheckpointKind, SnapshotFormat};
use streamkeeper_storage::Faults;
use streamkeeper_types::Millis;

use crate::{
    Omission,
    invariants::{Verdict, ends_in_time},
    shared::Shared,
    tasks::{RECORDS_PER_SPLIT, SPLITS},
};
use environment::{Environment, Happening, Kill, Tracing};
use job_manager::JobManager;
use task_manager::TaskManager;

/// JobManagers first, then TaskManagers.
type ProcessId = usize;

/// `liveness.interval` and `liveness.timeout`.
const ALIVE_EVERY: Duration = Duration::from_millis(40);
const SILENCE: Millis = 160;

/// Time with faults, and the most that a healed job may need, in simulated milliseconds.
const CHAOS: Millis = 1_500;
const HEALED: Millis = 20_000;

/// Between two throws of the dice for faults.
const DISTURBANCE: Millis = 20;

/// Runs one seed.
///
/// # Errors
/// The promise that was broken, and what happened before.
pub fn run(seed: u64, omission: Omission) -> Verdict {
    if World::new(seed, omission, Tracing::Off).run().is_ok() {
        return Ok(());
    }
    let mut world = World::new(seed, omission, Tracing::On);
    world.run().map_err(|broken| format!("{broken}\n{}", world.environment.trace()))
}

struct World {
    environment: Environment,
    managers: Vec<JobManager>,
    workers: Vec<TaskManager>,
    requests: u64,
    /// How likely each kind of fault is in this run, as a factor.
    roughness: [f64; 10],
}

impl World {
    fn new(seed: u64, omission: Omission, tracing: Tracing) -> Self {
        let faults = Faults { refused: 0.005, lost: 0.005, answer_lost: 0.005 };
        let mut shared = Shared::new(seed, omission, faults);
        let (managers, workers) = (shared.rng.random_range(1..=3), shared.rng.random_range(2..=3));
        // Some kinds do not happen at all, others often.
        let roughness = std::array::from_fn(|_| (shared.rng.random_range(-0.5..2.0_f64)).max(0.0));
        let mut environment = Environment::new(shared, managers, managers + workers, tracing);
        (0..managers + workers).for_each(|process| environment.start(process));
        Self {
            managers: (0..managers).map(|id| JobManager::new(id, &environment)).collect(),
            workers: (managers..managers + workers)
                .map(|id| {
                    let slots = environment.shared.rng.random_range(1..=2);
                    TaskManager::new(id, managers, slots, &environment)
                })
                .collect(),
            environment,
            requests: 0,
            roughness,
        }
    }

    fn run(&mut self) -> Verdict {
        let mut disturbed = 0;
        while self.environment.shared.now < CHAOS && !self.environment.is_finished {
            self.step()?;
            while disturbed < self.environment.shared.now {
                disturbed += DISTURBANCE;
                self.disturb();
            }
        }
        self.environment.heal();
        let healed = self.environment.shared.now;
        while !self.environment.is_finished {
            ends_in_time(self.environment.shared.now - healed, HEALED, || self.describe())?;
            self.step()?;
        }
        self.environment.shared.outside.finished(SPLITS, RECORDS_PER_SPLIT)
    }

    fn step(&mut self) -> Verdict {
        let Some((process, happening)) = self.environment.next() else {
            return Err("nothing happens any more".to_owned());
        };
        if matches!(happening, Happening::Restart) {
            self.restart(process);
        } else if process < self.managers.len() {
            self.managers[process].on(happening, &mut self.environment);
        } else {
            self.workers[process - self.managers.len()].on(happening, &mut self.environment);
        }
        std::mem::replace(&mut self.environment.shared.broken, Ok(()))
    }

    fn restart(&mut self, process: ProcessId) {
        let managers = self.managers.len();
        self.environment.start(process);
        if process < managers {
            self.managers[process] = JobManager::new(process, &self.environment);
            return;
        }
        let slots = self.environment.shared.rng.random_range(1..=2);
        self.workers[process - managers] = TaskManager::new(process, managers, slots, &self.environment);
    }

    fn happens(&mut self, kind: usize, probability: f64) -> bool {
        let probability = (probability * self.roughness[kind]).min(1.0);
        self.environment.shared.mishap(probability)
    }

    fn any(&mut self) -> ProcessId {
        self.environment.shared.rng.random_range(0..self.managers.len() + self.workers.len())
    }

    fn disturb(&mut self) {
        for (kind, killed) in [(0, Kill::Process), (1, Kill::Machine)] {
            if self.happens(kind, 0.02) {
                let (process, restart) = (self.any(), self.environment.shared.rng.random_range(20..400));
                if self.environment.is_alive(process) {
                    self.environment.kill(process, killed, restart);
                }
            }
        }
        if self.happens(2, 0.03) {
            let (process, time) = (self.any(), self.environment.shared.rng.random_range(20..700));
            self.environment.freeze(process, time);
        }
        if self.happens(3, 0.03) {
            let (one, other) = (self.any(), self.any());
            let time = self.environment.shared.rng.random_range(20..600);
            self.environment.cut(one, other, time);
            if self.environment.shared.rng.random_bool(0.5) {
                self.environment.cut(other, one, time);
            }
        }
        if self.happens(4, 0.03) {
            self.environment.break_one();
        }
        self.ask();
    }

    /// People want something of whoever leads; a zombie may be asked too.
    fn ask(&mut self) {
        if self.happens(5, 0.03) {
            let target = self.environment.shared.rng.random_range(1..=3);
            // There are always two slots in the end.
            let least = self.environment.shared.rng.random_range(1..=target.min(2));
            self.ask_for(&Event::Rescale(Bounds { least, target }));
        }
        for (kind, probability, snapshot) in
            [(6, 0.03, CheckpointKind::Savepoint), (7, 0.005, CheckpointKind::StopSavepoint { drain: false })]
        {
            if self.happens(kind, probability) {
                self.requests += 1;
                let request = CheckpointRequest {
                    request: Some(RequestId(self.requests)),
                    origin: Origin::Savepoint,
                    kind: snapshot,
                    format: SnapshotFormat::Native,
                    target: Some(format!("savepoints/{}", self.requests)),
                    sharing: Sharing::Full,
                };
                self.ask_for(&Event::Requested(request));
            }
        }
    }

    fn ask_for(&mut self, event: &Event) {
        let leading: Vec<ProcessId> = (0..self.managers.len()).filter(|id| self.managers[*id].is_leading()).collect();
        if leading.is_empty() {
            return;
        }
        let chosen = leading[self.environment.shared.rng.random_range(0..leading.len())];
        if self.environment.is_awake(chosen) {
            self.managers[chosen].ask(event.clone(), &mut self.environment);
        }
    }

    fn describe(&self) -> String {
        let managers = self.managers.iter().map(|manager| manager.describe(&self.environment));
        let workers = self.workers.iter().map(|worker| worker.describe(&self.environment));
        managers.chain(workers).collect::<Vec<_>>().join("\n  ")
    }
}
