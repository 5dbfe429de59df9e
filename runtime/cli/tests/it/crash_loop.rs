//! The real process, killed with SIGKILL at random instants and at every point that the engine reports: the files it
//! leaves in the end are byte for byte those of an undisturbed run, after sorting.

use std::{collections::BTreeMap, fs, time::Duration};

use rand::{Rng, SeedableRng, rngs::StdRng};

use crate::example::{Example, assert_success};

/// Kills at random instants, over as many jobs as it takes.
const KILLS: u32 = 50;
/// How often the log stands in the file, and rows per second: a run lasts about eight seconds, several checkpoints long.
const COPIES: u32 = 16;
const RATE: u32 = 20_000;

#[test]
fn kills_at_random_instants_lose_and_double_nothing() {
    let mut random = StdRng::seed_from_u64(2026);
    let mut kills = 0;
    while kills < KILLS {
        let example = Example::new(COPIES);
        example.edit_job("'format' = 'raw'", &format!("'format' = 'raw', 'scan.rate-limit' = '{RATE}'"));
        loop {
            let parallelism = random.random_range(1..=3).to_string();
            let mut child = example.run(&["--parallelism", &parallelism]).spawn().unwrap();
            // The instant is what is random here; nothing waits for a state.
            std::thread::sleep(Duration::from_millis(random.random_range(30..1_700)));
            if let Some(status) = child.try_wait().unwrap() {
                assert!(status.success(), "the run ended with {status} after {kills} kills");
                break;
            }
            child.kill().unwrap();
            child.wait().unwrap();
            kills += 1;
            if kills >= KILLS {
                break;
            }
        }
        example.finish(&["--parallelism", "2"]);
    }
}

#[test]
fn a_kill_at_every_reported_point_loses_and_doubles_nothing() {
    let example = Example::new(3);
    let list = example.folder.path().join("points");
    assert_success(&example.run(&[]).env("STREAMKEEPER_CRASH_POINTS", &list).output().unwrap());
    let mut reached: BTreeMap<String, u32> = BTreeMap::new();
    for name in fs::read_to_string(&list).unwrap().lines() {
        *reached.entry(name.to_owned()).or_default() += 1;
    }
    assert!(reached.len() >= 8, "too few points to be every write: {reached:?}");
    for (name, times) in reached {
        // First, second and last time: an empty store, one with something to go on from, and the end.
        let mut instants = vec![1, 2.min(times), times];
        instants.dedup();
        for instant in instants {
            let example = Example::new(3);
            let crashed = example.run(&[]).env("STREAMKEEPER_CRASH_AT", format!("{name}:{instant}")).output().unwrap();
            assert!(!crashed.status.success() || instant >= times, "{name}:{instant} was not reached");
            example.finish(&["--parallelism", "3"]);
        }
    }
}
