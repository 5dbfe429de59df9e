//! Deaths of the whole process at any step, and restores at other parallelisms.

use std::time::Duration;

use proptest::prelude::*;
use streamkeeper_taskmanager::local::JobOutcome;

use crate::world::{LONG, World};

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, max_shrink_iters: 0, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn r17_deaths_at_any_step_and_any_parallelism_lose_and_double_nothing(
        lives in prop::collection::vec((1u32..5, 1i64..1_500), 1..6),
        last in 1u32..5,
    ) {
        let world = World { interval: Some(Duration::from_millis(1)), ..World::new(6, 3_000) };
        for (parallelism, steps) in lives {
            let death = world.fuse.reset(steps);
            match world.start(parallelism) {
                Ok(job) => {
                    // Whichever comes first.
                    job.wait_until(LONG, |_| death.try_recv().is_ok());
                    job.abandon();
                }
                // It died while it took the job over.
                Err(error) => prop_assert!(!world.fuse.is_alive(), "{error}"),
            }
        }
        drop(world.fuse.reset(i64::MAX));
        let outcome = world.start(last).unwrap().join().unwrap();
        prop_assert!(matches!(outcome, JobOutcome::Finished | JobOutcome::AlreadyFinished));
        world.check_exactly_once();
    }
}
