//! What speaks against a start, and what an explicit choice does.

use streamkeeper_taskmanager::local::{JobOutcome, RestoreChoice, run_local};
use streamkeeper_types::{Code, Error};

use crate::{
    outside::Outside,
    world::{Gate, LONG, World},
};

fn refused(result: streamkeeper_types::Result<streamkeeper_taskmanager::local::JobHandle>) -> Error {
    match result {
        Ok(_) => panic!("the job started"),
        Err(error) => error,
    }
}

/// A job that completed two checkpoints and was then lost.
fn lost() -> World {
    let mut world = World::new(4, 900);
    world.numbers.gate = Gate::default();
    let job = world.start(2).unwrap();
    job.wait_until(LONG, |status| status.checkpoints.completed >= 2);
    job.abandon();
    world.numbers.gate.open();
    world
}

#[test]
fn a_log_that_is_gone_is_no_reason_to_begin_empty() {
    let mut world = lost();
    for object in world.storage.list("log").unwrap() {
        world.storage.delete(&object.path).unwrap();
    }
    for _ in 0..3 {
        let error = refused(world.start(2));
        assert_eq!(error.code, Code::EmptyStart);
        assert!(error.way_out.is_some());
    }
    world.outside = Outside::new(world.fuse.clone());
    let mut job = world.job(2);
    job.job.restore = RestoreChoice::Discard;
    assert_eq!(run_local(job).unwrap().join().unwrap(), JobOutcome::Finished);
    world.check_exactly_once();
}

#[test]
fn r33_a_checkpoint_that_cannot_be_read_fails_the_start() {
    let world = lost();
    for object in world.storage.list("shared").unwrap() {
        world.storage.delete(&object.path).unwrap();
    }
    assert_eq!(refused(world.start(2)).code, Code::SnapshotCorrupt);
}

#[test]
fn discarding_state_begins_empty_and_is_remembered() {
    let mut world = lost();
    world.outside = Outside::new(world.fuse.clone());
    let mut job = world.job(2);
    job.job.restore = RestoreChoice::Discard;
    assert_eq!(run_local(job).unwrap().join().unwrap(), JobOutcome::Finished);
    world.check_exactly_once();
    assert_eq!(world.start(2).unwrap().join().unwrap(), JobOutcome::AlreadyFinished);
}

#[test]
fn a_parallelism_beyond_the_key_groups_is_refused_and_changes_nothing() {
    let world = lost();
    let mut job = world.job(2);
    job.job.max_parallelism = Some(64);
    assert_eq!(refused(run_local(job)).code, Code::ParallelismInvalid);
    assert_eq!(world.start(2).unwrap().join().unwrap(), JobOutcome::Finished);
    world.check_exactly_once();
}

#[test]
fn a_second_run_on_the_machine_is_told_that_the_first_one_lives() {
    let mut world = World::new(2, 300);
    world.numbers.gate = Gate::default();
    let lock = world.local.path().join("lock");
    let locked = || {
        let mut job = world.job(1);
        job.job.lock = Some(lock.clone());
        job
    };
    let first = run_local(locked()).unwrap();
    let mut second = locked();
    second.tasks.local_dir = world.local.path().join("second");
    assert_eq!(refused(run_local(second)).code, Code::Fenced);
    world.numbers.gate.open();
    assert_eq!(first.join().unwrap(), JobOutcome::Finished);
    assert_eq!(run_local(locked()).unwrap().join().unwrap(), JobOutcome::AlreadyFinished);
}

#[test]
fn r25_a_run_that_lost_its_reign_ends_fenced_and_harms_nothing() {
    let mut world = World::new(4, 900);
    world.numbers.gate = Gate::default();
    let first = world.start(2).unwrap();
    first.wait_until(LONG, |status| status.checkpoints.completed >= 1);
    let mut second = world.job(2);
    second.tasks.local_dir = world.local.path().join("second");
    let second = run_local(second).unwrap();
    assert_eq!(first.join().unwrap_err().code, Code::Fenced);
    world.numbers.gate.open();
    assert_eq!(second.join().unwrap(), JobOutcome::Finished);
    world.check_exactly_once();
}
