//! From a wish to triggered tasks.

use std::time::Duration;

use streamkeeper_jobmanager::engine::{CheckpointOptions, Command, Event, Timer};
use streamkeeper_protocol::{CheckpointKind, TaskState, ToTask};
use streamkeeper_types::FileScope;

use crate::bench::{Bench, SOURCE, STOP, error, file, id, options};

#[test]
fn b8_a_trigger_is_refused_until_all_tasks_run_and_tried_again_soon() {
    let mut bench = Bench::running();
    bench.state(0, 1, TaskState::Initializing);
    bench.fire(Timer::Periodic);
    assert!(!bench.asks_for_an_id());
    assert_eq!(bench.armed(Timer::Periodic), Some(bench.now + 200));
    bench.request(CheckpointKind::Savepoint, 1);
    assert!(bench.answer().unwrap().1.is_err());
    bench.state(0, 1, TaskState::Running).fire(Timer::Periodic);
    assert!(bench.asks_for_an_id());
}

#[test]
fn b3_a_task_that_fell_back_while_the_id_was_fetched_stops_the_trigger() {
    let mut bench = Bench::running();
    bench.fire(Timer::Periodic);
    bench.state(1, 0, TaskState::Initializing);
    bench.on(Event::IdAllocated(id(1)));
    assert!(bench.commands.iter().all(|c| !matches!(c, Command::CutCoordinator { .. })), "{:?}", bench.commands);
}

#[test]
fn b3_a_lost_leadership_while_the_id_was_fetched_stops_the_trigger() {
    let mut bench = Bench::running();
    bench.fire(Timer::Periodic).on(Event::LeadershipLost).on(Event::IdAllocated(id(1)));
    assert_eq!(bench.commands, []);
}

#[test]
fn r29_coordinators_are_held_and_cut_before_any_task_and_released_after_the_last_trigger() {
    let mut bench = Bench::running();
    bench.fire(Timer::Periodic).on(Event::IdAllocated(id(1)));
    assert_eq!(bench.triggered(), []);
    let hold = bench.commands.iter().position(|c| *c == Command::HoldEvents { operator: SOURCE });
    let cut = bench.commands.iter().position(|c| *c == Command::CutCoordinator { id: id(1), operator: SOURCE });
    assert!(hold.unwrap() < cut.unwrap());
    bench.on(Event::CoordinatorCut { id: id(1), operator: SOURCE, state: Ok(vec![7]) });
    assert_eq!(bench.triggered(), [(0, 0), (0, 1)], "sources only; barriers reach the others");
    assert_eq!(bench.commands.last(), Some(&Command::ReleaseEvents { operator: SOURCE }));
}

#[test]
fn r29_an_abort_during_the_cut_releases_the_events() {
    let mut bench = Bench::running();
    bench.fire(Timer::Periodic).on(Event::IdAllocated(id(1)));
    bench.on(Event::CoordinatorCut { id: id(1), operator: SOURCE, state: Err(error("no listing")) });
    assert!(bench.commands.contains(&Command::ReleaseEvents { operator: SOURCE }));
    assert_eq!(bench.messages(), [], "no task knows of it");
}

#[test]
fn t7_one_failed_delivery_aborts_the_checkpoint() {
    let mut bench = Bench::running();
    bench.fire(Timer::Periodic).trigger(1);
    let attempt = bench.attempt(0, 1);
    bench.on(Event::TriggerFailed { id: id(1), attempt, error: error("gone") });
    assert_eq!(bench.aborts(), 4);
    bench.ack_all(1);
    assert!(bench.manifest().is_none());
}

#[test]
fn t2_tasks_behind_finished_ones_are_triggered_themselves() {
    let mut bench = Bench::running();
    bench.state(0, 0, TaskState::Finished);
    bench.fire(Timer::Periodic).trigger(1);
    assert_eq!(bench.triggered(), [(0, 1), (1, 0)], "1/0 is fed by 0/0 alone");
}

#[test]
fn a_periodic_trigger_keeps_its_pause_and_a_requested_one_does_not_wait() {
    let mut bench = Bench::running();
    bench.complete(1);
    bench.now += 100;
    bench.fire(Timer::Periodic);
    assert!(!bench.asks_for_an_id());
    assert_eq!(bench.armed(Timer::Periodic), Some(bench.now + 400), "min-pause from the completion");
    bench.request(CheckpointKind::Checkpoint, 1);
    assert!(bench.asks_for_an_id());
}

#[test]
fn one_at_a_time_and_savepoints_go_first() {
    let mut bench = Bench::running();
    bench.fire(Timer::Periodic).trigger(1);
    bench.request(CheckpointKind::Checkpoint, 1).request(CheckpointKind::Savepoint, 2);
    assert!(!bench.asks_for_an_id());
    bench.fire(Timer::Timeout(id(1))).trigger(2);
    assert_eq!(bench.barrier().unwrap().kind, CheckpointKind::Savepoint);
}

#[test]
fn more_requests_than_may_wait_are_refused() {
    let mut bench = Bench::running_with(CheckpointOptions { max_queued: 1, ..options() });
    bench.fire(Timer::Periodic).request(CheckpointKind::Checkpoint, 1).request(CheckpointKind::Checkpoint, 2);
    assert!(matches!(bench.answer(), Some((2, Err(_)))));
}

#[test]
fn r34_the_periodic_timer_is_armed_whatever_becomes_of_the_trigger() {
    let mut bench = Bench::running();
    for _ in 0..3 {
        bench.now += 20_000;
        bench.fire(Timer::Periodic);
        assert_eq!(bench.armed(Timer::Periodic), Some(bench.now + 10_000));
    }
    bench.on(Event::IdFailed(error("no storage")));
    bench.fire(Timer::Periodic);
    assert!(bench.armed(Timer::Periodic).is_some());
}

#[test]
fn without_an_interval_nothing_is_periodic() {
    let mut bench = Bench::running_with(CheckpointOptions { interval: None, ..options() });
    bench.fire(Timer::Periodic);
    assert_eq!(bench.commands, []);
    bench.request(CheckpointKind::Checkpoint, 1);
    assert!(bench.asks_for_an_id());
}

#[test]
fn r28_the_first_checkpoint_after_a_restore_without_claim_is_full() {
    let restart = streamkeeper_jobmanager::engine::failover::RestartStrategy::None;
    let mut bench = Bench::created(options(), restart);
    bench.on(Event::Start).deploy_with(vec![file("savepoints/x/a", FileScope::Private)]).all(TaskState::Running);
    bench.fire(Timer::Periodic).trigger(1);
    assert!(bench.barrier().unwrap().full);
    bench.fire(Timer::Timeout(id(1)));
    bench.fire(Timer::Periodic).trigger(2);
    assert!(bench.barrier().unwrap().full, "until one completes");
    bench.ack_all(2).metadata(2, streamkeeper_jobmanager::engine::Stored::Done).publish(2);
    bench.now += 20_000;
    bench.fire(Timer::Periodic).trigger(3);
    assert!(!bench.barrier().unwrap().full);
}

#[test]
fn a_barrier_says_where_its_private_files_go() {
    let mut bench = Bench::running();
    bench.fire(Timer::Periodic).trigger(5);
    let barrier = bench.barrier().unwrap();
    assert_eq!((barrier.target.as_str(), barrier.timestamp, barrier.full), ("chk-5", bench.now, false));
    bench.fire(Timer::Timeout(id(5))).request(STOP, 1).trigger(6);
    let barrier = bench.barrier().unwrap();
    assert_eq!((barrier.target.as_str(), barrier.full), ("savepoints/a", true));
}

#[test]
fn a_replaced_checkpoint_that_is_not_removed_yet_holds_back_the_next_ones() {
    let mut bench = Bench::running();
    bench.complete(1).complete(2).complete(3);
    bench.now += 20_000;
    bench.fire(Timer::Periodic);
    assert!(!bench.asks_for_an_id(), "1 and 2 wait for their deletion");
    bench.on(Event::Deleted { discard: id(1) }).fire(Timer::Periodic);
    assert!(bench.asks_for_an_id());
}

#[test]
fn the_first_trigger_comes_between_min_pause_and_interval() {
    let restart = streamkeeper_jobmanager::engine::failover::RestartStrategy::None;
    let mut bench = Bench::created(CheckpointOptions { min_pause: Duration::from_secs(4), ..options() }, restart);
    bench.on(Event::Start).deploy();
    let delay = bench.armed(Timer::Periodic).unwrap() - bench.now;
    assert!((4_000..=10_000).contains(&delay), "{delay}");
    assert!(bench.messages().iter().all(|(_, message)| !matches!(message, ToTask::TriggerCheckpoint(_))));
}
