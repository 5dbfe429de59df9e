//! The real process, killed with SIGKILL at random instants and at every point that the engine reports: the files it
//! leaves in the end are byte for byte those of an undisturbed run, after sorting.

use std::{collections::BTreeMap, fs, sync::Mutex, time::Duration};

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

/// Rows per second where every point is to be reached: the log once, in about three checkpoints.
const SLOW_RATE: u32 = 3_500;
/// Runs at a time: a slowed run hardly needs a processor.
const WORKERS: usize = 4;

#[test]
fn a_kill_at_every_reported_point_loses_and_doubles_nothing() {
    let example = slow_example();
    let list = example.folder.path().join("points");
    assert_success(&example.run(&[]).env("STREAMKEEPER_CRASH_POINTS", &list).output().unwrap());
    let mut reached: BTreeMap<String, u32> = BTreeMap::new();
    for name in fs::read_to_string(&list).unwrap().lines() {
        *reached.entry(name.to_owned()).or_default() += 1;
    }
    assert!(reached.len() >= 16, "too few points to be every write: {reached:?}");
    // The first time finds an empty store; the middle one a checkpoint to go on from.
    let instants = reached.into_iter().flat_map(|(name, times)| {
        let mut instants = vec![1, times.div_ceil(2)];
        instants.dedup();
        instants.into_iter().map(move |instant| format!("{name}:{instant}"))
    });
    let todo = Mutex::new(instants.collect::<Vec<_>>());
    std::thread::scope(|scope| {
        for _ in 0..WORKERS {
            scope.spawn(|| {
                while let Some(instant) = next(&todo) {
                    kill_at(&instant);
                }
            });
        }
    });
}

fn next(todo: &Mutex<Vec<String>>) -> Option<String> {
    todo.lock().unwrap().pop()
}

fn kill_at(instant: &str) {
    let example = slow_example();
    let crashed = example.run(&[]).env("STREAMKEEPER_CRASH_AT", instant).output().unwrap();
    // How often a point is reached depends on timing: a run that ends without reaching it shows nothing wrong.
    if crashed.status.success() {
        assert!(!instant.ends_with(":1"), "{instant} was reached before and is not now");
    }
    example.edit_job(&format!(", 'scan.rate-limit' = '{SLOW_RATE}'"), "");
    let output = example.run(&["--parallelism", "3"]).output().unwrap();
    assert!(output.status.success(), "after {instant}: {}", String::from_utf8_lossy(&output.stderr));
    assert!(example.result() == example.expected, "rows differ after {instant}");
}

fn slow_example() -> Example {
    let example = Example::new(1);
    example.edit_job("'format' = 'raw'", &format!("'format' = 'raw', 'scan.rate-limit' = '{SLOW_RATE}'"));
    example
}
