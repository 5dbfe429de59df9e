//! Failures inside a run: the job restarts from its latest checkpoint, or gives up when told so.

use std::sync::Arc;

use streamkeeper_jobmanager::engine::failover::RestartStrategy;
use streamkeeper_protocol::{CheckpointKind, SnapshotFormat};
use streamkeeper_storage::{Faults as StorageFaults, FaultyStorage, MemoryStorage};
use streamkeeper_taskmanager::local::JobOutcome;
use streamkeeper_types::Code;

use crate::world::{Fault, Faults, Gate, LONG, World};

fn survives(fault: Fault, batches: i64) {
    let world = World { faults: Faults::after(batches, fault), ..World::new(5, 1_000) };
    let job = world.start(2).unwrap();
    let board = job.board().clone();
    assert_eq!(job.join().unwrap(), JobOutcome::Finished);
    assert_eq!(board.read().restarts, 1);
    world.check_exactly_once();
}

#[test]
fn an_operator_that_fails_costs_nothing_and_doubles_nothing() {
    for batches in [0, 1, 40, 200] {
        survives(Fault::Error, batches);
    }
}

#[test]
fn r30_splits_assigned_behind_a_checkpoint_return_to_the_coordinator_each_once() {
    let mut world = World { interval: None, faults: Faults::after(150, Fault::Error), ..World::new(6, 600) };
    world.numbers.gate = Gate::default();
    let job = world.start(2).unwrap();
    job.wait_until(LONG, |status| status.vertices.first().is_some_and(|source| source.records_in > 0));
    job.snapshot(CheckpointKind::Checkpoint, SnapshotFormat::Native, None).unwrap();
    // Two splits are open; the others are assigned from here on, and some of them before the failure.
    world.numbers.gate.open();
    let board = job.board().clone();
    assert_eq!(job.join().unwrap(), JobOutcome::Finished);
    assert_eq!(board.read().restarts, 1);
    world.check_exactly_once();
}

#[test]
fn an_operator_that_panics_fails_its_job_only() {
    survives(Fault::Panic, 60);
}

#[test]
fn without_restarts_the_job_fails_with_the_cause_and_its_place() {
    let faults = Faults::after(3, Fault::Error);
    let world = World { faults, restart: RestartStrategy::None, ..World::new(5, 1_000) };
    let error = world.start(2).unwrap().join().unwrap_err();
    assert_eq!(error.code, Code::SinkFailed);
    assert!(error.place.iter().any(|place| place.contains("Count(key)")), "{error}");
    assert_eq!(world.start(2).unwrap().join().unwrap(), JobOutcome::Finished);
    world.check_exactly_once();
}

#[test]
fn r24_a_storage_that_refuses_and_forgets_to_answer_costs_nothing_and_doubles_nothing() {
    for seed in 0..6 {
        let faults = StorageFaults { refused: 0.05, lost: 0.03, answer_lost: 0.03 };
        let storage = Arc::new(FaultyStorage::new(Arc::new(MemoryStorage::new()), faults, seed));
        let world = World { storage: storage.clone(), ..World::new(5, 2_000) };
        let outcome = (0..50).find_map(|_| world.start(2).ok()?.join().ok());
        assert!(
            matches!(outcome, Some(JobOutcome::Finished | JobOutcome::AlreadyFinished)),
            "seed {seed}: {outcome:?}"
        );
        storage.set_faults(StorageFaults::NONE);
        assert_eq!(world.start(2).unwrap().join().unwrap(), JobOutcome::AlreadyFinished);
        world.check_exactly_once();
    }
}
