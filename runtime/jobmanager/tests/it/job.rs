//! The job's life.

use std::time::Duration;

use streamkeeper_checkpoint::JobResult;
use streamkeeper_jobmanager::engine::{
    Command, Event, Exception, JobEnd, JobPhase, Stored, Timer, failover::RestartStrategy,
};
use streamkeeper_protocol::{
    CheckpointKind, TaskReport,
    TaskState::{Cancelled, Failed, Running},
    ToTask,
};
use streamkeeper_types::{AttemptId, Error};

use crate::bench::{Bench, error, id, options};

#[test]
fn a_failed_task_restarts_all_tasks_after_the_pause_and_only_when_all_have_ended() {
    let mut bench = Bench::running();
    bench.state(1, 0, Failed(error("boom")));
    let cancelled = bench.messages().iter().filter(|(_, message)| *message == ToTask::Cancel).count();
    assert_eq!((cancelled, bench.armed(Timer::Restart)), (3, Some(bench.now + 1_000)));
    bench.fire(Timer::Restart);
    assert!(!bench.is_deploying());
    bench.state(0, 0, Cancelled).state(0, 1, Cancelled);
    assert!(!bench.is_deploying());
    bench.state(1, 1, Cancelled);
    assert!(bench.is_deploying());
    bench.deploy().all(Running);
    assert!(bench.job.is_up());
    assert_eq!(bench.job.restarts(), 1);
}

#[test]
fn the_pause_holds_the_restart_back() {
    let mut bench = Bench::running();
    bench.state(1, 0, Failed(error("boom"))).all(Cancelled);
    assert!(!bench.is_deploying());
    bench.fire(Timer::Restart);
    assert!(bench.is_deploying());
}

#[test]
fn a_restart_waits_until_storage_has_decided_about_a_checkpoint() {
    let mut bench = Bench::running();
    bench.fire(Timer::Periodic).trigger(1).ack_all(1);
    bench.state(1, 0, Failed(error("boom"))).all(Cancelled).fire(Timer::Restart);
    assert!(!bench.is_deploying());
    bench.metadata(1, Stored::Done);
    assert!(!bench.is_deploying());
    bench.publish(1);
    assert!(bench.is_deploying(), "from checkpoint 1");
    assert_eq!(bench.completes(), 0, "the tasks are gone; the restore commits (R17)");
}

#[test]
fn r1_a_restart_aborts_the_checkpoint_under_way_and_its_id_stays_spent() {
    let mut bench = Bench::running();
    bench.fire(Timer::Periodic).trigger(1);
    bench.state(1, 0, Failed(error("boom"))).all(Cancelled).fire(Timer::Restart).deploy().all(Running);
    bench.fire(Timer::Periodic);
    assert_eq!(bench.commands.iter().filter(|c| **c == Command::AllocateId).count(), 1);
    bench.on(Event::IdAllocated(id(2)));
    assert!(bench.commands.iter().any(|c| matches!(c, Command::CutCoordinator { id, .. } if id.0 == 2)));
}

#[test]
fn an_id_that_arrives_after_the_restart_is_not_used() {
    let mut bench = Bench::running();
    bench.fire(Timer::Periodic).state(1, 0, Failed(error("boom")));
    bench.on(Event::IdAllocated(id(1)));
    assert_eq!(bench.commands, []);
}

#[test]
fn b7_reports_of_earlier_attempts_do_not_fail_the_job() {
    let mut bench = Bench::running();
    let old = AttemptId { number: 9, ..bench.attempt(0, 0) };
    bench.report(old, TaskReport::State(Failed(error("old"))));
    assert_eq!((bench.job.phase(), bench.restarts()), (&JobPhase::Running, false));
}

#[test]
fn a_lost_task_fails_the_job_and_is_not_waited_for() {
    let mut bench = Bench::running();
    let attempt = bench.attempt(0, 0);
    bench.on(Event::TaskLost { attempt, error: error("connection lost") });
    bench.state(0, 1, Cancelled).state(1, 0, Cancelled).state(1, 1, Cancelled).fire(Timer::Restart);
    assert!(bench.is_deploying());
}

#[test]
fn without_a_restart_strategy_the_first_failure_ends_the_job() {
    let mut bench = Bench::created(options(), RestartStrategy::None);
    bench.on(Event::Start).deploy().all(Running).state(0, 0, Failed(error("boom"))).all(Cancelled);
    assert_eq!(bench.job.phase(), &JobPhase::Ended(JobEnd::Failed(error("boom"))));
    bench.on(Event::Start);
    assert_eq!(bench.commands, [], "nothing follows the end");
}

#[test]
fn a_full_disk_ends_the_job_since_no_restart_makes_space() {
    let full = Error::disk_full("no space left while writing /out/part-1");
    let mut bench = Bench::running();
    bench.state(0, 0, Failed(full.clone())).all(Cancelled);
    assert_eq!(bench.job.phase(), &JobPhase::Ended(JobEnd::Failed(full)));
}

#[test]
fn a_deployment_that_fails_is_tried_again() {
    let mut bench = Bench::running();
    bench.state(0, 0, Failed(error("boom"))).all(Cancelled).fire(Timer::Restart);
    bench.on(Event::DeployFailed(error("storage away (R33: never an older checkpoint)")));
    assert!(bench.restarts());
    bench.fire(Timer::Restart);
    assert!(bench.is_deploying());
}

#[test]
fn b95_cancel_is_defined_in_every_phase() {
    // The log says so, for standbys; if it cannot, the job ends all the same.
    let ends_cancelled = |bench: &mut Bench, outcome: Stored| {
        let cancelled = Command::PublishResult(JobResult::Cancelled { time: bench.now });
        assert_eq!(bench.commands.last(), Some(&cancelled));
        bench.on(Event::ResultPublished { outcome });
        assert_eq!(bench.job.phase(), &JobPhase::Ended(JobEnd::Cancelled));
    };
    let mut bench = Bench::created(options(), RestartStrategy::None);
    ends_cancelled(bench.on(Event::Cancel), Stored::Done);

    let mut bench = Bench::created(options(), RestartStrategy::None);
    bench.on(Event::Start);
    let deploy = bench.commands.clone();
    bench.on(Event::Cancel);
    bench.commands = deploy;
    ends_cancelled(bench.deploy().all(Cancelled), Stored::Done);

    let mut bench = Bench::running();
    ends_cancelled(bench.on(Event::Cancel).all(Cancelled), Stored::Failed(error("storage away")));

    let mut bench = Bench::running();
    ends_cancelled(bench.state(0, 0, Failed(error("boom"))).on(Event::Cancel).all(Cancelled), Stored::Done);
}

#[test]
fn b95_requests_during_a_restart_are_answered() {
    let mut bench = Bench::running();
    bench.state(0, 0, Failed(error("boom"))).request(CheckpointKind::Savepoint, 4);
    assert!(matches!(bench.answer(), Some((4, Err(_)))));
}

#[test]
fn b94_lost_leadership_suspends_and_deletes_nothing() {
    let mut bench = Bench::running();
    bench.fire(Timer::Periodic).trigger(1).ack_all(1).on(Event::LeadershipLost);
    assert_eq!(bench.commands.last(), Some(&Command::End(JobEnd::Suspended)));
    assert_eq!(bench.deletes(), Vec::<String>::new());
    assert!(bench.commands.iter().all(|c| !matches!(c, Command::PublishResult(_))));
}

#[test]
fn a_failure_is_remembered_with_the_task_that_failed_first_and_what_followed() {
    let mut bench = Bench::created(options(), RestartStrategy::FixedDelay { attempts: 1, delay: Duration::ZERO });
    bench.on(Event::Start);
    bench.deploy().all(Running);
    let first = bench.attempt(1, 0);
    // What fails behind it fails because of it.
    bench.state(1, 0, Failed(error("boom"))).state(1, 1, Failed(error("no consumer"))).all(Cancelled);
    bench.fire(Timer::Restart).deploy().all(Running);
    bench.on(Event::TaskLost { attempt: bench.attempt(0, 1), error: error("gone") });
    let told = |exception: &Exception| (exception.error.cause.clone(), exception.task, exception.restarted);
    let exceptions: Vec<_> = bench.job.exceptions().entries().map(told).collect();
    let second = bench.attempt(0, 1);
    assert_eq!(exceptions, [("boom".into(), Some(first), true), ("gone".into(), Some(second), false)]);
}

#[test]
fn r25_a_job_that_waits_for_slots_asks_again_and_again_whether_it_still_leads() {
    let mut bench = Bench::created(options(), RestartStrategy::None);
    bench.on(Event::Slots(0));
    bench.on(Event::Start);
    assert_eq!(bench.armed(Timer::Slots), Some(bench.now + 1_000));
    bench.now += 1_000;
    bench.fire(Timer::Slots);
    assert_eq!(bench.commands.first(), Some(&Command::CheckReign));
    assert_eq!(bench.armed(Timer::Slots), Some(bench.now + 1_000));
    assert_eq!(bench.on(Event::LeadershipLost).job.phase(), &JobPhase::Ended(JobEnd::Suspended));
}

#[test]
fn r25_a_job_that_restarts_asks_whether_it_still_leads() {
    let mut bench = Bench::running();
    bench.state(1, 0, Failed(error("generation 2 runs")));
    assert!(bench.commands.contains(&Command::CheckReign));
    assert_eq!(bench.on(Event::LeadershipLost).job.phase(), &JobPhase::Ended(JobEnd::Suspended));
}
