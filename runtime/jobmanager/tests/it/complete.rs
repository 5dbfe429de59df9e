//! From the last acknowledgement to the notification.

use streamkeeper_checkpoint::JobState;
use streamkeeper_jobmanager::engine::{CheckpointOptions, CheckpointOutcome, Command, Event, Stored, Timer};
use streamkeeper_protocol::{CheckpointKind, ToTask};
use streamkeeper_types::{AttemptId, FileScope, Generation, snapshot::SubtaskSnapshot};

use crate::bench::{Bench, STOP, error, file, id, options, snapshot};

#[test]
fn a_checkpoint_is_announced_only_after_its_record_is_in_the_log() {
    let mut bench = Bench::running();
    bench.fire(Timer::Periodic).trigger(1).ack_all(1);
    let manifest = bench.manifest().unwrap();
    assert_eq!((manifest.checkpoint, manifest.operators.len()), (id(1), 2));
    assert_eq!(manifest.operators[0].coordinator, Some(vec![7]));
    assert_eq!(bench.completes(), 0);
    bench.metadata(1, Stored::Done);
    assert_eq!(bench.completion().unwrap().checkpoint.id, id(1));
    assert_eq!(bench.completes(), 0);
    bench.publish(1);
    assert_eq!(bench.completes(), 4);
}

#[test]
fn the_manifest_waits_for_every_task_and_counts_nobody_twice() {
    let mut bench = Bench::running();
    bench.fire(Timer::Periodic).trigger(1);
    let attempts = bench.attempts();
    for attempt in [attempts[0], attempts[0], attempts[1], attempts[1], attempts[2]] {
        bench.ack(attempt, 1, SubtaskSnapshot::default());
        assert!(bench.manifest().is_none());
    }
    bench.ack(attempts[3], 1, SubtaskSnapshot::default());
    assert!(bench.manifest().is_some());
}

#[test]
fn r25_acknowledgements_of_old_attempts_and_other_generations_are_not_counted() {
    let mut bench = Bench::running();
    bench.fire(Timer::Periodic).trigger(1);
    let attempts = bench.attempts();
    for attempt in &attempts[..3] {
        bench.ack(*attempt, 1, SubtaskSnapshot::default());
    }
    bench.ack(AttemptId { number: 77, ..attempts[3] }, 1, SubtaskSnapshot::default());
    assert!(bench.manifest().is_none());
    bench.ack(AttemptId { generation: Generation(2), ..attempts[3] }, 1, SubtaskSnapshot::default());
    assert!(bench.manifest().is_none());
}

#[test]
fn r18_an_intermediate_savepoint_is_recorded_and_commits_nothing() {
    let mut bench = Bench::running();
    bench.complete(1);
    bench.request(CheckpointKind::Savepoint, 9).trigger(2).ack_all(2).metadata(2, Stored::Done);
    assert_eq!(bench.completion().unwrap().subsumes, [], "R27");
    bench.publish(2);
    assert_eq!(bench.completes(), 0);
    assert!(matches!(bench.answer(), Some((9, Ok(savepoint))) if savepoint.manifest == "savepoints/a/_metadata"));
}

#[test]
fn a_stop_savepoint_commits_and_replaces_nothing() {
    let mut bench = Bench::running();
    bench.complete(1);
    bench.request(STOP, 9).trigger(2).ack_all(2).metadata(2, Stored::Done);
    assert_eq!(bench.completion().unwrap().subsumes, []);
    bench.publish(2);
    assert_eq!(bench.completes(), 4);
}

#[test]
fn r20_files_go_only_when_the_checkpoint_that_replaces_them_is_published() {
    let shared = |path: &str| file(path, FileScope::Shared);
    let mut bench = Bench::running();
    let sink = bench.attempt(1, 1);
    bench.fire(Timer::Periodic).trigger(1).ack(sink, 1, snapshot(&[shared("shared/old"), shared("shared/both")]));
    bench.ack_all(1).metadata(1, Stored::Done).publish(1);
    bench.now += 20_000;
    bench.fire(Timer::Periodic).trigger(2).ack(sink, 2, snapshot(&[shared("shared/both"), shared("shared/new")]));
    bench.ack_all(2).metadata(2, Stored::Done);
    assert_eq!(bench.completion().unwrap().subsumes, [id(1)]);
    assert_eq!(bench.deletes(), Vec::<String>::new());
    bench.publish(2);
    assert_eq!(bench.deletes(), ["shared/old", "chk-1/_metadata"], "the manifest last");
}

#[test]
fn a_replaced_checkpoint_leaves_the_log_after_its_files() {
    let mut bench = Bench::running();
    bench.complete(1).complete(2);
    bench.now += 20_000;
    bench.fire(Timer::Periodic).trigger(3).ack_all(3).metadata(3, Stored::Done);
    assert_eq!(bench.completion().unwrap().collected, [], "not deleted yet");
    bench.publish(3).on(Event::Deleted { discard: id(1) });
    bench.now += 20_000;
    bench.fire(Timer::Periodic).trigger(4).ack_all(4).metadata(4, Stored::Done);
    assert_eq!(bench.completion().unwrap().collected, [id(1)]);
}

#[test]
fn r23_r26_a_late_acknowledgement_after_the_timeout_loses_its_private_files_only() {
    let mut bench = Bench::running();
    bench.fire(Timer::Periodic).trigger(1).fire(Timer::Timeout(id(1)));
    let files = [file("chk-1/private", FileScope::Private), file("shared/late", FileScope::Shared)];
    let sink = bench.attempt(1, 0);
    bench.ack(sink, 1, snapshot(&files));
    assert_eq!(bench.deletes(), ["chk-1/private"]);
}

#[test]
fn a_doubled_acknowledgement_of_a_completed_checkpoint_deletes_nothing() {
    let mut bench = Bench::running();
    let private = [file("chk-1/private", FileScope::Private)];
    let sink = bench.attempt(1, 0);
    bench.fire(Timer::Periodic).trigger(1).ack(sink, 1, snapshot(&private)).ack_all(1);
    bench.metadata(1, Stored::Done).publish(1).ack(sink, 1, snapshot(&private));
    assert_eq!(bench.commands, []);
}

#[test]
fn r26_shared_files_of_an_aborted_checkpoint_stay_until_a_later_one_completed() {
    let mut bench = Bench::running();
    let sink = bench.attempt(1, 0);
    bench.fire(Timer::Periodic).trigger(1).ack(sink, 1, snapshot(&[file("shared/a", FileScope::Shared)]));
    bench.fire(Timer::Timeout(id(1)));
    assert_eq!(bench.deletes(), Vec::<String>::new());
    bench.complete(2);
    assert_eq!(bench.deletes(), ["shared/a"]);
}

#[test]
fn r24_after_a_record_of_unknown_outcome_every_file_stays_and_the_log_decides() {
    let mut bench = Bench::running_with(CheckpointOptions { tolerable_failures: 9, ..options() });
    let sink = bench.attempt(1, 0);
    bench.complete(1);
    bench.now += 20_000;
    bench.fire(Timer::Periodic).trigger(2).ack(sink, 2, snapshot(&[file("chk-2/p", FileScope::Private)])).ack_all(2);
    bench.metadata(2, Stored::Done);
    bench.on(Event::Published { id: id(2), outcome: Stored::Unknown(error("no answer")) });
    assert_eq!((bench.deletes(), bench.aborts(), bench.completes()), (vec![], 0, 0));
    assert_eq!(bench.job.coordinator().history().entries().last().unwrap().outcome, CheckpointOutcome::InDoubt);
    bench.on(Event::Published { id: id(2), outcome: Stored::Done });
    assert_eq!(bench.completes(), 4);
    assert!(bench.deletes().contains(&"chk-1/_metadata".to_owned()));
}

#[test]
fn r24_after_a_manifest_of_unknown_outcome_every_file_stays() {
    let mut bench = Bench::running();
    let sink = bench.attempt(1, 0);
    bench.fire(Timer::Periodic).trigger(1).ack(sink, 1, snapshot(&[file("chk-1/p", FileScope::Private)])).ack_all(1);
    bench.metadata(1, Stored::Unknown(error("no answer")));
    assert_eq!((bench.deletes(), bench.aborts()), (vec![], 4));
    bench.ack(sink, 1, snapshot(&[file("chk-1/p", FileScope::Private)]));
    assert_eq!(bench.deletes(), Vec::<String>::new());
}

#[test]
fn from_the_manifest_on_only_the_store_decides() {
    let mut bench = Bench::running();
    bench.fire(Timer::Periodic).trigger(1).ack_all(1);
    assert!(bench.commands.contains(&Command::CancelTimer { timer: Timer::Timeout(id(1)) }));
    bench.fire(Timer::Timeout(id(1)));
    assert_eq!(bench.aborts(), 0);
    bench.metadata(1, Stored::Done).publish(1);
    assert_eq!(bench.completes(), 4);
}

#[test]
fn r16_a_notification_names_the_checkpoint_and_the_last_one_it_replaced() {
    let mut bench = Bench::running();
    bench.complete(1).complete(2);
    let notified = ToTask::NotifyComplete { id: id(2), last_subsumed: Some(id(1)) };
    assert!(bench.messages().iter().all(|(_, message)| *message == notified));
}

#[test]
fn figures_of_a_checkpoint_are_recorded() {
    let mut bench = Bench::running();
    bench.complete(1);
    let history = bench.job.coordinator().history();
    let last = history.entries().last().unwrap();
    assert_eq!((last.id, last.tasks, last.acknowledged, last.ended), (id(1), 4, 4, Some(bench.now)));
    assert_eq!((history.completed, history.failed), (1, 0));
    assert_ne!(bench.log, JobState::default());
    assert_eq!(&bench.log, bench.job.coordinator().state(), "the engine and the log agree");
}
