//! Cancelled tasks that do not end.

use std::{
    sync::{Arc, mpsc},
    time::Duration,
};

use streamkeeper_types::Error;

use crate::world::{Fault, Faults, LONG, World};

/// A job whose counting operator hangs in its first batch, and what is heard of tasks that do not end.
fn hanging() -> (World, streamkeeper_taskmanager::local::LocalJob, mpsc::Receiver<Error>) {
    let world = World { faults: Faults::after(0, Fault::Hang), ..World::new(2, 100) };
    let (told, heard) = mpsc::channel();
    let mut job = world.job(1);
    job.tasks.cancel_timeout = Duration::from_millis(50);
    job.tasks.on_stuck = Arc::new(move |error| {
        // The test may be over.
        let _ = told.send(error);
    });
    (world, job, heard)
}

fn assert_names_the_task(error: &Error) {
    assert!(error.cause.contains("does not end") && error.cause.contains("v1/0"), "{error}");
    assert!(error.way_out.as_ref().is_some_and(|way_out| way_out.contains("task.cancel-timeout")), "{error}");
}

#[test]
fn a_cancelled_task_that_hangs_is_noticed() {
    let (world, job, heard) = hanging();
    let handle = streamkeeper_taskmanager::local::run_local(job).unwrap();
    handle.wait_until(LONG, |status| status.vertices.first().is_some_and(|source| source.records_in > 0));
    handle.cancel();
    assert_names_the_task(&heard.recv_timeout(LONG).unwrap());
    world.faults.resumes.open();
    handle.join().unwrap();
}

#[test]
fn a_shutdown_does_not_wait_for_ever_for_a_task_that_hangs() {
    let (world, job, heard) = hanging();
    let handle = streamkeeper_taskmanager::local::run_local(job).unwrap();
    handle.wait_until(LONG, |status| status.vertices.first().is_some_and(|source| source.records_in > 0));
    // Without any word to the tasks, which are ended by the shutdown alone.
    handle.abandon();
    assert_names_the_task(&heard.recv_timeout(LONG).unwrap());
    world.faults.resumes.open();
}
