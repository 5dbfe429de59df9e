//! What all parts of a simulated world share: dice, time, storage, the outside and the promises.

use rand::{Rng, SeedableRng, rngs::SmallRng};
use streamkeeper_storage::{Faults, MemoryStorage};
use streamkeeper_types::Millis;

use crate::{
    Omission,
    invariants::{ExactlyOnce, IdsOnlyGrow, OneReignPublishes, Verdict},
};

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
    pub(crate) fn new(seed: u64, omission: Omission, faults: Faults) -> Self {
        Self {
            rng: SmallRng::seed_from_u64(seed),
            now: 0,
            omission,
            storage: MemoryStorage::new(),
            faults,
            outside: ExactlyOnce::default(),
            ids: IdsOnlyGrow::default(),
            reigns: OneReignPublishes::default(),
            broken: Ok(()),
            chaos: true,
        }
    }

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
