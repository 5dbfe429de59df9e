//! Two JobManagers and three TaskManagers over TCP, under load: killed, frozen, cut off and started again at random. The
//! files that they leave in the end are byte for byte those of an undisturbed run, after sorting.
//!
//! `STREAMKEEPER_CHAOS_SECONDS` (60) and `STREAMKEEPER_CHAOS_SEED` (2026) change its length and what happens. The same seed
//! gives the same actions, though not at the same instants of the job. Processes are cut off where the test may make network
//! namespaces, as root on Linux; elsewhere they are frozen instead.

use std::time::{Duration, Instant};

use rand::{Rng, SeedableRng, rngs::StdRng};

use crate::{
    namespaces::Namespaces,
    processes::{Cluster, Role, Shape},
};

const JOB_MANAGERS: usize = 2;
const TASK_MANAGERS: usize = 3;
/// Rows per second.
const RATE: u32 = 10_000;
/// Rows of one copy of the log.
const ROWS: u32 = 10_000;

/// Says at the end of a failing run how to repeat it.
struct Seed(u64);

impl Drop for Seed {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!(
                "the seed was {0}: STREAMKEEPER_CHAOS_SEED={0} cargo test -p streamkeeper-cli --test it chaos",
                self.0
            );
        }
    }
}

fn from_environment(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |text| text.parse().unwrap())
}

#[test]
fn chaos_of_kills_freezes_and_partitions_loses_and_doubles_nothing() {
    let seed = Seed(from_environment("STREAMKEEPER_CHAOS_SEED", 2026));
    let length = Duration::from_secs(from_environment("STREAMKEEPER_CHAOS_SECONDS", 60));
    let mut random = StdRng::seed_from_u64(seed.0);
    let network = Namespaces::new(JOB_MANAGERS + TASK_MANAGERS);
    let cuts = network.is_some();
    if !cuts {
        eprintln!("no network namespaces here: processes are frozen instead of cut off");
    }
    // The job would be done when the time is over if nothing disturbed it.
    let copies = u32::try_from(length.as_secs()).unwrap() * RATE / ROWS;
    let mut cluster = Cluster::start(copies, RATE, Shape { network, ..Shape::new(JOB_MANAGERS, TASK_MANAGERS) });
    let begun = Instant::now();
    while begun.elapsed() < length && !cluster.has_finished() {
        // The instant is what is random here; nothing waits for a state.
        std::thread::sleep(Duration::from_millis(random.random_range(100..3_000)));
        disturb(&mut cluster, &mut random, cuts);
    }
    // The rest as fast as it goes, and once more from nothing but the storage.
    if !cluster.has_finished() {
        cluster.example.edit_job(&format!(", 'scan.rate-limit' = '{RATE}'"), "");
        (0..JOB_MANAGERS).for_each(|index| cluster.kill(Role::JobManager(index)));
        (0..TASK_MANAGERS).for_each(|index| cluster.restart(Role::TaskManager(index)));
        (0..JOB_MANAGERS).for_each(|index| cluster.restart(Role::JobManager(index)));
    }
    cluster.finish();
}

fn disturb(cluster: &mut Cluster, random: &mut StdRng, cuts: bool) {
    let worker = Role::TaskManager(random.random_range(0..TASK_MANAGERS));
    let leader = Role::JobManager(random.random_range(0..JOB_MANAGERS));
    let anybody = if random.random_bool(0.5) { worker } else { leader };
    let a_while = Duration::from_millis(random.random_range(200..4_000));
    match random.random_range(0..10) {
        0..3 => cluster.restart(worker),
        3 => cluster.restart(leader),
        4 => {
            cluster.restart(leader);
            cluster.restart(worker);
        }
        5 => {
            cluster.kill(worker);
            std::thread::sleep(a_while);
            cluster.restart(worker);
        }
        6 | 7 if cuts => {
            cluster.cut_off(anybody);
            std::thread::sleep(a_while);
            cluster.join(anybody);
        }
        _ => {
            cluster.freeze(anybody);
            std::thread::sleep(a_while);
            cluster.thaw(anybody);
        }
    }
}
