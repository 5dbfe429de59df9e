//! A short run of every target, the same inputs each time.

use streamkeeper_fuzz::{Mutator, TARGETS};

/// Inputs per target.
const INPUTS: usize = 3_000;

#[test]
fn no_target_panics_on_mutated_seeds() {
    for target in TARGETS {
        for seed in target.seeds {
            (target.run)(seed);
        }
        let mut mutator = Mutator::new(1, target.seeds, target.tokens);
        for _ in 0..INPUTS {
            let input = mutator.next_input();
            let outcome = std::panic::catch_unwind(|| (target.run)(&input));
            assert!(outcome.is_ok(), "{} panics on {:?}", target.name, String::from_utf8_lossy(&input));
        }
    }
}
