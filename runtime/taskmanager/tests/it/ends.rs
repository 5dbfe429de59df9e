//! How jobs end: of themselves, stopped, cancelled.

use streamkeeper_protocol::{CheckpointKind, SnapshotFormat};
use streamkeeper_taskmanager::local::{JobOutcome, RestoreChoice, run_local};

use crate::world::{Gate, LONG, World};

#[test]
fn f1_a_bounded_job_commits_everything_and_finishes() {
    let world = World::new(5, 1_000);
    assert_eq!(world.start(2).unwrap().join().unwrap(), JobOutcome::Finished);
    world.check_exactly_once();
}

#[test]
fn f1_the_final_checkpoint_comes_without_periodic_ones() {
    let world = World { interval: None, ..World::new(3, 200) };
    assert_eq!(world.start(3).unwrap().join().unwrap(), JobOutcome::Finished);
    world.check_exactly_once();
}

#[test]
fn a_source_without_rows_finishes_too() {
    let world = World::new(0, 0);
    assert_eq!(world.start(2).unwrap().join().unwrap(), JobOutcome::Finished);
    assert!(world.outside.rows().is_empty());
}

#[test]
fn a_finished_job_that_is_run_again_says_so_and_changes_nothing() {
    let world = World::new(2, 100);
    world.start(2).unwrap().join().unwrap();
    let before = world.storage.list("").unwrap();
    let rows = world.outside.rows();
    assert_eq!(world.start(3).unwrap().join().unwrap(), JobOutcome::AlreadyFinished);
    assert_eq!(world.storage.list("").unwrap(), before);
    assert_eq!(world.outside.rows(), rows);
}

#[test]
fn a_cancelled_job_goes_on_where_its_latest_checkpoint_was() {
    let mut world = World::new(4, 900);
    world.numbers.gate = Gate::default();
    let job = world.start(2).unwrap();
    let status = job.wait_until(LONG, |status| status.checkpoints.completed >= 2);
    assert!(status.checkpoints.completed >= 2, "{status:?}");
    assert!(status.deployment_ms.is_some(), "all tasks run, so the deployment has an end");
    job.cancel();
    assert_eq!(job.join().unwrap(), JobOutcome::Cancelled);
    world.numbers.gate.open();
    let job = world.start(3).unwrap();
    assert!(job.wait_until(LONG, |status| status.restored_from.is_some()).restored_from.is_some());
    assert_eq!(job.join().unwrap(), JobOutcome::Finished);
    world.check_exactly_once();
}

#[test]
fn r37_a_stop_savepoint_ends_the_job_and_holds_the_positions_at_which_sources_stopped() {
    let mut world = World { interval: None, ..World::new(4, 900) };
    world.numbers.gate = Gate::default();
    let job = world.start(2).unwrap();
    job.wait_until(LONG, |status| status.vertices.first().is_some_and(|source| source.records_in > 0));
    let kind = CheckpointKind::StopSavepoint { drain: false };
    let stopped = job.snapshot(kind, SnapshotFormat::Canonical, Some("savepoints/stop".into())).unwrap();
    assert_eq!(stopped.manifest, "savepoints/stop/_metadata");
    let outcome = job.join().unwrap();
    assert!(matches!(outcome, JobOutcome::Stopped(savepoint) if savepoint.id == stopped.id));
    let committed = world.outside.rows().len();
    assert!(committed > 0 && committed < 3_600, "{committed}");
    world.numbers.gate.open();
    assert_eq!(world.start(3).unwrap().join().unwrap(), JobOutcome::Finished);
    world.check_exactly_once();
}

#[test]
fn r18_an_intermediate_savepoint_commits_nothing_and_can_be_restored_from() {
    let mut world = World { interval: None, ..World::new(3, 600) };
    world.numbers.gate = Gate::default();
    let job = world.start(2).unwrap();
    job.wait_until(LONG, |status| status.vertices.first().is_some_and(|source| source.records_in > 0));
    job.snapshot(CheckpointKind::Savepoint, SnapshotFormat::Canonical, Some("savepoints/a".into())).unwrap();
    assert!(world.outside.rows().is_empty());
    job.abandon();
    assert!(world.outside.rows().is_empty());
    world.numbers.gate.open();
    let mut again = world.job(3);
    again.job.restore = RestoreChoice::From("savepoints/a".into());
    assert_eq!(run_local(again).unwrap().join().unwrap(), JobOutcome::Finished);
    world.check_exactly_once();
}

#[test]
fn a_drain_finishes_the_operators_and_commits_all_that_was_read() {
    let mut world = World { interval: None, ..World::new(4, 900) };
    world.numbers.gate = Gate::default();
    let job = world.start(2).unwrap();
    job.wait_until(LONG, |status| status.vertices.first().is_some_and(|source| source.records_in > 0));
    let kind = CheckpointKind::StopSavepoint { drain: true };
    job.snapshot(kind, SnapshotFormat::Canonical, Some("savepoints/drained".into())).unwrap();
    let board = job.board().clone();
    assert!(matches!(job.join().unwrap(), JobOutcome::Stopped(_)));
    let status = board.read();
    let read = status.vertices[0].records_in;
    assert_eq!(world.outside.rows().len() as u64, read, "{status:?}");
    assert_eq!(status.vertices[1].watermark, Some(i64::MAX), "the end watermark came");
}
