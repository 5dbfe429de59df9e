//! Failures: which count, whom they hit, and what stays.

use streamkeeper_jobmanager::engine::{Event, Stored, Timer};
use streamkeeper_protocol::{CheckpointKind, DeclineReason, TaskReport, ToTask};
use streamkeeper_types::{AttemptId, Code, Error, FileScope};

use crate::bench::{Bench, STOP, error, file, id, snapshot};

fn decline(bench: &mut Bench, attempt: AttemptId, n: u64, reason: DeclineReason) {
    bench.report(attempt, TaskReport::Decline { id: id(n), reason });
}

/// One failure is tolerated, the second in a row is not.
fn check_counts(name: &str, fail: impl Fn(&mut Bench, u64)) {
    let mut bench = Bench::running();
    for n in 1..=2 {
        bench.now += 20_000;
        bench.fire(Timer::Periodic);
        fail(&mut bench, n);
        assert_eq!(bench.restarts(), n == 2, "{name}, failure {n}");
    }
    assert_eq!(bench.job.last_failure().unwrap().code, Code::CheckpointsFailing, "{name}");
}

#[test]
fn b5_b6_every_way_to_fail_counts() {
    check_counts("no id", |bench, _| {
        bench.on(Event::IdFailed(error("no storage")));
    });
    check_counts("coordinator's cut", |bench, n| {
        bench.on(Event::IdAllocated(id(n)));
        let operator = crate::bench::SOURCE;
        bench.on(Event::CoordinatorCut { id: id(n), operator, state: Err(error("no listing")) });
    });
    check_counts("timeout", |bench, n| {
        bench.trigger(n).fire(Timer::Timeout(id(n)));
    });
    check_counts("upload", |bench, n| {
        let attempt = bench.attempt(1, 0);
        bench.trigger(n);
        decline(bench, attempt, n, DeclineReason::Failed(error("disk")));
    });
    check_counts("manifest", |bench, n| {
        bench.trigger(n).ack_all(n).metadata(n, Stored::Failed(error("no storage")));
    });
    check_counts("manifest of unknown outcome", |bench, n| {
        bench.trigger(n).ack_all(n).metadata(n, Stored::Unknown(error("no answer")));
    });
    check_counts("record", |bench, n| {
        bench.trigger(n).ack_all(n).metadata(n, Stored::Done);
        bench.on(Event::Published { id: id(n), outcome: Stored::Failed(error("no storage")) });
    });
}

#[test]
fn a_full_disk_is_tolerated_as_other_failures_are_and_then_said_by_its_name() {
    let mut bench = Bench::running();
    for n in 1..=2 {
        bench.now += 20_000;
        let attempt = bench.attempt(1, 0);
        bench.fire(Timer::Periodic).trigger(n);
        decline(&mut bench, attempt, n, DeclineReason::Failed(Error::disk_full("no space left while writing /s/1")));
        assert_eq!(bench.job.last_failure().is_some(), n == 2, "failure {n}");
    }
    let error = bench.job.last_failure().unwrap();
    assert_eq!(error.code, Code::DiskFull);
    assert!(error.cause.starts_with("more than 1 checkpoints failed in a row"), "{error}");
    assert!(error.cause.contains("/s/1") && error.way_out.is_some(), "{error}");
}

#[test]
fn what_is_nobodys_fault_does_not_count() {
    let mut bench = Bench::running();
    for n in 1..=5 {
        bench.now += 20_000;
        bench.fire(Timer::Periodic).trigger(n);
        let attempt = bench.attempt(1, 0);
        decline(&mut bench, attempt, n, DeclineReason::NotReady);
        assert!(!bench.restarts());
    }
}

#[test]
fn a_failed_savepoint_is_told_and_does_not_count() {
    let mut bench = Bench::running();
    for n in 1..=5 {
        bench.request(CheckpointKind::Savepoint, n).trigger(n).fire(Timer::Timeout(id(n)));
        assert!(matches!(bench.answer(), Some((request, Err(_))) if request == n));
        assert!(!bench.restarts());
    }
    bench.now += 20_000;
    bench.fire(Timer::Periodic);
    assert!(bench.asks_for_an_id(), "R34");
}

#[test]
fn b7_a_decline_of_an_earlier_attempt_changes_nothing() {
    let mut bench = Bench::running();
    bench.fire(Timer::Periodic).trigger(1);
    let old = AttemptId { number: 55, ..bench.attempt(1, 0) };
    decline(&mut bench, old, 1, DeclineReason::Failed(error("old")));
    bench.ack_all(1);
    assert!(bench.manifest().is_some());
}

#[test]
fn a2_an_abort_tells_every_task_the_latest_completed() {
    let mut bench = Bench::running();
    bench.complete(1);
    bench.now += 20_000;
    bench.fire(Timer::Periodic).trigger(2).fire(Timer::Timeout(id(2)));
    let aborted = ToTask::NotifyAborted { id: id(2), latest_completed: Some(id(1)) };
    assert_eq!(bench.messages().len(), 4);
    assert!(bench.messages().iter().all(|(_, message)| *message == aborted));
}

#[test]
fn an_aborted_checkpoint_loses_its_private_files() {
    let mut bench = Bench::running();
    let sink = bench.attempt(1, 0);
    bench.fire(Timer::Periodic).trigger(1).ack(sink, 1, snapshot(&[file("chk-1/p", FileScope::Private)]));
    bench.fire(Timer::Timeout(id(1)));
    assert_eq!(bench.deletes(), ["chk-1/p"]);
}

#[test]
fn a_record_that_surely_failed_takes_manifest_and_private_files_with_it() {
    let mut bench = Bench::running();
    let sink = bench.attempt(1, 0);
    bench.fire(Timer::Periodic).trigger(1).ack(sink, 1, snapshot(&[file("chk-1/p", FileScope::Private)])).ack_all(1);
    bench.metadata(1, Stored::Done);
    bench.on(Event::Published { id: id(1), outcome: Stored::Failed(error("no storage")) });
    assert_eq!(bench.deletes(), ["chk-1/p", "chk-1/_metadata"]);
}

#[test]
fn a_manifest_that_could_not_be_written_leaves_the_one_that_lies_there() {
    let mut bench = Bench::running();
    let sink = bench.attempt(1, 0);
    bench.fire(Timer::Periodic).trigger(1).ack(sink, 1, snapshot(&[file("chk-1/p", FileScope::Private)])).ack_all(1);
    bench.metadata(1, Stored::Failed(error("another manifest lies there")));
    assert_eq!(bench.deletes(), ["chk-1/p"]);
}

#[test]
fn r21_a_snapshot_that_refers_to_a_removed_file_does_not_complete() {
    let shared = [file("shared/a", FileScope::Shared)];
    let mut bench = Bench::running();
    let sink = bench.attempt(1, 0);
    bench
        .fire(Timer::Periodic)
        .trigger(1)
        .ack(sink, 1, snapshot(&shared))
        .ack_all(1)
        .metadata(1, Stored::Done)
        .publish(1);
    bench.complete(2);
    assert!(bench.deletes().contains(&"shared/a".to_owned()));
    bench.on(Event::Deleted { discard: id(1) });
    bench.now += 20_000;
    bench.fire(Timer::Periodic).trigger(3).ack(sink, 3, snapshot(&shared));
    assert_eq!(bench.aborts(), 4);
}

#[test]
fn r35_b9_a_stop_savepoint_that_fails_on_one_task_restarts_the_job_and_the_asker_learns_why() {
    let mut bench = Bench::running();
    bench.request(STOP, 7).trigger(1);
    let attempt = bench.attempt(0, 0);
    decline(&mut bench, attempt, 1, DeclineReason::NotReady);
    assert!(matches!(bench.answer(), Some((7, Err(_)))));
    assert!(bench.restarts());
}

#[test]
fn b10_r34_periodic_checkpoints_come_back_after_a_failed_stop_savepoint() {
    let mut bench = Bench::running();
    bench.request(STOP, 7).trigger(1).fire(Timer::Timeout(id(1)));
    bench.all(streamkeeper_protocol::TaskState::Cancelled).fire(Timer::Restart).deploy();
    assert!(bench.armed(Timer::Periodic).is_some());
    bench.all(streamkeeper_protocol::TaskState::Running).fire(Timer::Periodic);
    assert!(bench.asks_for_an_id());
}

#[test]
fn a_stop_savepoint_that_no_task_saw_is_only_refused() {
    let mut bench = Bench::running();
    bench.request(STOP, 7).on(Event::IdFailed(error("no storage")));
    assert!(matches!(bench.answer(), Some((7, Err(_)))));
    assert!(!bench.restarts());
}
