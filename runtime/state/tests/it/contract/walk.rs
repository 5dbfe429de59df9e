//! Random walks: batches, checkpoints that complete, abort or are lost, kills and rescales, equal to the model after
//! each step.

use streamkeeper_state::{Extent, ScanOrder, SnapshotFormat, SnapshotKind};

use super::{
    Fixture,
    job::{Completed, Job},
    model::Random,
};

/// The walk of parallelism; a restore takes the next step.
const STEPS: [u32; 7] = [3, 5, 2, 7, 1, 4, 3];

fn batch(job: &mut Job, random: &mut Random, keys: u64) {
    let size = random.below(300) as usize + 1;
    match random.below(8) {
        0..=2 => job.count(&(0..size).map(|_| random.below(keys) as i64).collect::<Vec<_>>()),
        3 => job.forget(&(0..size / 4 + 1).map(|_| random.below(keys) as i64).collect::<Vec<_>>()),
        4 => {
            let rows: Vec<_> =
                (0..size).map(|_| (random.below(6) as i64 * 1000, random.below(keys / 4) as i64)).collect();
            job.add_to_windows(&rows);
        }
        5 => {
            let order = if random.chance(50) { ScanOrder::Any } else { ScanOrder::Key };
            job.fire(random.below(6) as i64 * 1000, order);
        }
        6 => {
            let rows: Vec<_> =
                (0..size / 2 + 1).map(|_| (random.below(9) as i64, format!("v{}\0", random.below(40)))).collect();
            job.add_values(&rows);
        }
        _ => job.pop_value(random.below(9) as i64),
    }
    if random.chance(80) {
        job.maintain();
    }
}

fn walk(fixture: &dyn Fixture, seed: u64, budget: usize, keys: u64, steps: usize) {
    let mut random = Random(seed);
    let mut job = Job::new(fixture, budget, STEPS[0]);
    let mut last = Completed {
        id: streamkeeper_types::CheckpointId(0),
        handles: Vec::new(),
        model: super::model::Model::default(),
    };
    let mut rescales = 0;
    for _ in 0..steps {
        for _ in 0..=random.below(6) {
            batch(&mut job, &mut random, keys);
        }
        match random.below(10) {
            0..=3 => last = job.checkpoint(),
            4 => {
                let extent = if random.chance(20) { Extent::Full } else { Extent::Incremental };
                let frozen = job.freeze(SnapshotKind::Checkpoint, SnapshotFormat::Native, extent);
                batch(&mut job, &mut random, keys);
                job.maintain();
                let completed = job.upload(frozen);
                batch(&mut job, &mut random, keys);
                if random.chance(70) {
                    job.confirm(completed.id);
                    last = completed;
                } else {
                    job.abort(completed.id);
                }
            }
            5 => {
                // Lost before its upload.
                let frozen = job.freeze(SnapshotKind::Checkpoint, SnapshotFormat::Native, Extent::Incremental);
                batch(&mut job, &mut random, keys);
                let id = frozen.id;
                drop(frozen);
                job.abort(id);
            }
            6 => {
                let format = if random.chance(50) { SnapshotFormat::Canonical } else { SnapshotFormat::Native };
                let savepoint = job.savepoint(format);
                if random.chance(50) {
                    rescales += 1;
                    job.restore(STEPS[rescales % STEPS.len()], &savepoint);
                    job.check();
                    last = savepoint;
                }
            }
            7 => {
                // A kill between upload and confirmation: the log has it, the task never heard.
                let frozen = job.freeze(SnapshotKind::Checkpoint, SnapshotFormat::Native, Extent::Incremental);
                last = job.upload(frozen);
                batch(&mut job, &mut random, keys);
                rescales += 1;
                job.restore(STEPS[rescales % STEPS.len()], &last);
                job.check();
            }
            8 => {
                // A kill at the same parallelism.
                job.restore(STEPS[rescales % STEPS.len()], &last);
            }
            _ => job.check(),
        }
    }
    rescales += 1;
    let end = job.checkpoint();
    job.restore(STEPS[rescales % STEPS.len()], &end);
    job.check();
}

pub fn x13_random_walks_of_parallelism_equal_the_model(fixture: &dyn Fixture) {
    for seed in 0..fixture.walks() {
        walk(fixture, seed, 64 << 20, 400, 40);
    }
}

pub fn x13_random_walks_with_evictions_equal_the_model(fixture: &dyn Fixture) {
    for seed in 100..100 + fixture.walks() {
        walk(fixture, seed, 160 << 10, 3000, 40);
    }
}
