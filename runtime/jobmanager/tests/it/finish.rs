//! Finished tasks and the end of the job (F1–F4, stop savepoints).

use std::collections::BTreeMap;

use streamkeeper_checkpoint::JobResult;
use streamkeeper_jobmanager::engine::{CheckpointOptions, Command, Event, JobEnd, JobPhase, Stored, Timer};
use streamkeeper_protocol::TaskState::{AwaitingFinalCheckpoint, Failed, Finished};
use streamkeeper_types::{
    OperatorId,
    snapshot::{ListMode, ListState, OperatorSnapshot, SubtaskSnapshot},
};

use crate::bench::{Bench, STOP, error, id, options};

#[test]
fn f1_the_final_checkpoint_comes_at_once_when_all_tasks_wait_for_it() {
    let mut bench = Bench::running_with(CheckpointOptions { interval: None, ..options() });
    for (vertex, index) in [(0, 0), (0, 1), (1, 0)] {
        bench.state(vertex, index, AwaitingFinalCheckpoint);
        assert!(!bench.asks_for_an_id());
    }
    bench.state(1, 1, AwaitingFinalCheckpoint);
    assert!(bench.asks_for_an_id());
    bench.trigger(1).ack_all(1).metadata(1, Stored::Done).publish(1);
    assert_eq!(bench.completes(), 4);
    assert!(!bench.asks_for_an_id(), "they are about to finish");
    bench.all(Finished);
    let finished = JobResult::Finished { time: bench.now };
    assert_eq!(bench.commands.last(), Some(&Command::PublishResult(finished)));
    bench.on(Event::ResultPublished { outcome: Stored::Done });
    assert_eq!(bench.commands, [Command::End(JobEnd::Finished)]);
}

#[test]
fn f1_a_checkpoint_that_was_cut_before_the_end_of_data_is_not_the_final_one() {
    let mut bench = Bench::running_with(CheckpointOptions { interval: None, ..options() });
    bench.request(streamkeeper_protocol::CheckpointKind::Checkpoint, 1).trigger(1).ack_all(1);
    let write = std::mem::take(&mut bench.commands);
    bench.all(AwaitingFinalCheckpoint);
    bench.commands = write;
    bench.metadata(1, Stored::Done).publish(1);
    assert!(bench.asks_for_an_id(), "another one follows at once");
}

#[test]
fn f1_a_task_that_waits_is_freed_by_a_periodic_checkpoint_while_others_run_on() {
    let mut bench = Bench::running();
    bench.state(0, 0, AwaitingFinalCheckpoint).state(1, 0, AwaitingFinalCheckpoint);
    bench.complete(1);
    bench.state(0, 0, Finished).state(1, 0, Finished);
    assert_eq!(bench.job.phase(), &JobPhase::Running);
    bench.now += 20_000;
    bench.fire(Timer::Periodic).trigger(2);
    assert_eq!(bench.triggered(), [(0, 1)]);
    for (vertex, index) in [(0, 1), (1, 1)] {
        let attempt = bench.attempt(vertex, index);
        bench.ack(attempt, 2, SubtaskSnapshot::default());
    }
    let manifest = bench.manifest().unwrap();
    let finished: Vec<bool> = manifest.operators.iter().flat_map(|o| &o.subtasks).map(|s| s.finished).collect();
    assert_eq!(finished, [true, false, true, false], "F3");
}

#[test]
fn r16_a_task_whose_notification_got_lost_is_freed_by_the_next_checkpoint_even_if_a_savepoint_waits() {
    let mut bench = Bench::running();
    bench.state(0, 0, AwaitingFinalCheckpoint);
    bench.complete(1);
    bench.request(streamkeeper_protocol::CheckpointKind::Savepoint, 5);
    assert!(!bench.asks_for_an_id(), "0/0 is about to finish");
    bench.complete(2);
    assert_eq!(bench.completes(), 4);
}

#[test]
fn a_task_that_finishes_without_acknowledging_ends_the_checkpoint_and_not_the_job() {
    let mut bench = Bench::running();
    bench.fire(Timer::Periodic).trigger(1);
    bench.state(0, 0, Finished);
    assert_eq!(bench.aborts(), 4);
    assert!(!bench.restarts());
}

#[test]
fn f2_b23_union_state_is_checkpointed_by_none_or_all_of_its_subtasks() {
    let union = ListState { mode: ListMode::Union, items: vec![vec![1]] };
    let lists = BTreeMap::from([("offsets".to_owned(), union)]);
    let operator = OperatorSnapshot { operator: OperatorId(2), keyed: None, lists };
    let with_union = SubtaskSnapshot { operators: vec![operator], finished: false };
    for (finishes, completes) in [(true, false), (false, true)] {
        let mut bench = Bench::running();
        if finishes {
            bench.state(1, 0, Finished);
        }
        bench.fire(Timer::Periodic).trigger(1);
        let attempts = bench.attempts();
        for attempt in attempts.into_iter().filter(|a| !finishes || (a.subtask.vertex.0, a.subtask.index) != (1, 0)) {
            let is_sink = attempt.subtask.vertex.0 == 1;
            bench.ack(attempt, 1, if is_sink { with_union.clone() } else { SubtaskSnapshot::default() });
        }
        assert_eq!(bench.manifest().is_some(), completes);
        assert!(!bench.restarts());
    }
}

#[test]
fn b25_a_stop_savepoint_is_refused_while_a_task_waits_for_its_final_checkpoint() {
    let mut bench = Bench::running();
    bench.state(0, 0, AwaitingFinalCheckpoint);
    bench.request(STOP, 3);
    assert!(matches!(bench.answer(), Some((3, Err(_)))));
    assert!(!bench.asks_for_an_id());
}

#[test]
fn b24_a_source_that_ends_by_itself_during_a_stop_ends_the_job_once() {
    let mut bench = Bench::running();
    bench.request(STOP, 3).trigger(1);
    bench.state(0, 0, AwaitingFinalCheckpoint).ack_all(1).metadata(1, Stored::Done).publish(1);
    assert!(matches!(bench.answer(), Some((3, Ok(_)))));
    bench.all(Finished).on(Event::ResultPublished { outcome: Stored::Done });
    assert!(matches!(&bench.commands[..], [Command::End(JobEnd::Stopped(_))]), "{:?}", bench.commands);
}

#[test]
fn a_stopped_job_says_so_in_the_log_and_nothing_is_triggered_any_more() {
    let mut bench = Bench::running();
    bench.request(STOP, 3).trigger(1).ack_all(1).metadata(1, Stored::Done).publish(1);
    bench.now += 60_000;
    bench.fire(Timer::Periodic);
    assert!(!bench.asks_for_an_id());
    bench.all(Finished);
    let stopped = Command::PublishResult(JobResult::Stopped { time: bench.now, savepoint: id(1) });
    assert_eq!(bench.commands.last(), Some(&stopped), "else a standby would go on with the job");
    bench.on(Event::ResultPublished { outcome: Stored::Failed(error("storage away")) });
    bench.fire(Timer::Restart);
    assert!(matches!(&bench.commands[..], [Command::PublishResult(JobResult::Stopped { .. })]), "again and again");
    bench.on(Event::ResultPublished { outcome: Stored::Done });
    assert!(matches!(bench.job.phase(), JobPhase::Ended(JobEnd::Stopped(s)) if s.id == id(1)));
}

#[test]
fn r36_a_failure_after_a_completed_stop_savepoint_restarts_the_job_and_names_the_savepoint() {
    let mut bench = Bench::running();
    bench.request(STOP, 3).trigger(1).ack_all(1).metadata(1, Stored::Done).publish(1);
    bench.state(1, 1, Failed(error("commit failed")));
    assert!(bench.restarts());
    assert!(bench.job.last_failure().unwrap().to_string().contains("savepoints/a"));
}

#[test]
fn a_result_that_was_not_written_is_written_again() {
    let mut bench = Bench::running();
    bench.all(AwaitingFinalCheckpoint).trigger(1).ack_all(1).metadata(1, Stored::Done).publish(1).all(Finished);
    bench.on(Event::ResultPublished { outcome: Stored::Failed(error("no storage")) });
    assert!(bench.armed(Timer::Restart).is_some());
    bench.fire(Timer::Restart);
    assert!(matches!(bench.commands[..], [Command::PublishResult(_)]));
}
