//! What changes a job.

use streamkeeper_jobmanager::shell::{JobOutcome, JobStatus, Phase};
use streamkeeper_protocol::rest::{
    Accepted, BoundsView, JobView, OperationKind, OperationState, OperationView, RescaleList, RescaleReason,
    RescaleState, SavepointResult,
};
use streamkeeper_storage::Storage;

use super::{Api, JOB, LOCATION};
use crate::{
    http::send,
    world::{LONG, World},
};

fn savepoints(world: &World) -> Vec<String> {
    let storage: &dyn Storage = world.storage.as_ref();
    storage.list("savepoints").unwrap().into_iter().map(|object| object.path).collect()
}

#[test]
fn a_savepoint_is_taken_under_its_name_which_is_taken_then() {
    let (world, api) = Api::standing();
    let path = format!("{JOB}/savepoints");
    let view = api.outcome(&path, r#"{"name":"friday"}"#);
    assert_eq!((view.kind, view.state), (OperationKind::Savepoint, OperationState::Completed), "{view:?}");
    let SavepointResult { location, .. } = view.savepoint.unwrap();
    assert_eq!(location, format!("{LOCATION}/savepoints/friday"));
    assert!(savepoints(&world).contains(&"savepoints/friday/_metadata".to_owned()));
    assert_eq!(api.post(&path, r#"{"name":"friday"}"#).failure(409).code, "CONFLICT");
    let unnamed = api.outcome(&path, "").savepoint.unwrap();
    assert!(unnamed.location.starts_with(&format!("{LOCATION}/savepoints/savepoint-20")), "{unnamed:?}");
}

#[test]
fn a_repeated_post_is_the_same_request_and_takes_one_savepoint() {
    let (world, api) = Api::standing();
    let path = format!("{JOB}/savepoints");
    let post = |key: &str, body: &str| send(api.address(), "POST", &path, &[("Idempotency-Key", key)], body);
    let first: Accepted = post("k-1", r#"{"name":"once"}"#).json();
    let again: Accepted = post("k-1", r#"{"name":"once"}"#).json();
    assert_eq!(first, again);
    assert_eq!(api.end_of(&first.request).state, OperationState::Completed);
    let later: Accepted = post("k-1", r#"{"name":"once"}"#).json();
    assert_eq!(first, later, "also when its name is taken by itself");
    assert_eq!(post("k-1", r#"{"name":"other"}"#).failure(409).code, "CONFLICT");
    let manifests = savepoints(&world).into_iter().filter(|path| path.ends_with("_metadata"));
    assert_eq!(manifests.collect::<Vec<_>>(), ["savepoints/once/_metadata"]);
}

#[test]
fn b99_a_savepoint_goes_with_all_its_files_unless_something_needs_it() {
    let (world, api) = Api::standing();
    api.outcome(&format!("{JOB}/savepoints"), r#"{"name":"old"}"#);
    let dispose = |savepoint: &str| api.outcome("/savepoint-disposal", &format!(r#"{{"savepoint":"{savepoint}"}}"#));
    assert_eq!(dispose("none").failure.unwrap().code, "NOT_FOUND");
    let location = format!("{LOCATION}/savepoints/old");
    let view = dispose(&location);
    assert_eq!((view.kind, view.state), (OperationKind::Disposal, OperationState::Completed), "{view:?}");
    assert_eq!(savepoints(&world), Vec::<String>::new());
    // The job goes on from what it has, and its later snapshots are whole.
    assert_eq!(api.outcome(&format!("{JOB}/checkpoints"), "").state, OperationState::Completed);
    world.numbers.gate.open();
    assert_eq!(api.job.join().unwrap(), JobOutcome::Finished);
    world.check_exactly_once();
}

#[test]
fn b99_the_savepoint_that_a_job_began_with_stays_until_a_checkpoint_completed() {
    let (world, api) = Api::standing();
    let stopped = api.outcome(&format!("{JOB}/stop"), r#"{"name":"base"}"#);
    assert_eq!(stopped.state, OperationState::Completed, "{stopped:?}");
    assert!(matches!(api.job.join().unwrap(), JobOutcome::Stopped(_)));
    let api = Api::of(&world, None);
    api.job.wait_until(LONG, |status| status.deployment_ms.is_some());
    let dispose = || api.outcome("/savepoint-disposal", r#"{"savepoint":"base"}"#);
    assert_eq!(dispose().failure.unwrap().code, "CONFLICT");
    assert_eq!(api.outcome(&format!("{JOB}/checkpoints"), "").state, OperationState::Completed);
    assert_eq!(dispose().state, OperationState::Completed);
    world.numbers.gate.open();
    assert_eq!(api.job.join().unwrap(), JobOutcome::Finished);
    world.check_exactly_once();
}

#[test]
fn a_stop_ends_the_job_by_a_savepoint_and_its_outcome_can_still_be_fetched() {
    let (world, api) = Api::standing();
    let begun: Accepted = api.post(&format!("{JOB}/stop"), r#"{"name":"s"}"#).json();
    let Api { server, job, _managers } = api;
    let JobOutcome::Stopped(savepoint) = job.join().unwrap() else { panic!("it must end by a savepoint") };
    let view: OperationView =
        send(server.address(), "GET", &format!("/requests/{}?wait=30s", begun.request), &[], "").json();
    assert_eq!(view.savepoint.map(|result| result.id), Some(savepoint.id.0));
    // Nobody has to come any more, so the end of the process is not held up.
    server.let_outcomes_be_fetched(LONG);
    world.numbers.gate.open();
    assert_eq!(world.start(3).unwrap().join().unwrap(), JobOutcome::Finished);
    world.check_exactly_once();
}

#[test]
fn a_cancel_completes_when_the_tasks_have_ended() {
    let (world, api) = Api::standing();
    let view = api.outcome(&format!("{JOB}/cancel"), "");
    assert_eq!((view.kind, view.state), (OperationKind::Cancel, OperationState::Completed));
    assert_eq!(api.job.join().unwrap(), JobOutcome::Cancelled);
    world.numbers.gate.open();
    assert_eq!(world.start(2).unwrap().join().unwrap(), JobOutcome::Finished);
    world.check_exactly_once();
}

#[test]
fn a_job_that_ended_refuses_what_needs_it_and_says_why() {
    let (_world, api) = Api::standing();
    api.outcome(&format!("{JOB}/cancel"), "");
    let view = api.outcome(&format!("{JOB}/savepoints"), r#"{"name":"late"}"#);
    assert_eq!(view.failure.unwrap().code, "CANCELLED");
    let resources = format!("{JOB}/resources");
    assert_eq!(send(api.address(), "PUT", &resources, &[], r#"{"parallelism":3}"#).failure(409).code, "CONFLICT");
    // A second cancel has nothing left to do.
    assert_eq!(api.outcome(&format!("{JOB}/cancel"), "").state, OperationState::Completed);
}

#[test]
fn another_parallelism_is_taken_on_and_remembered() {
    let (world, api) = Api::standing();
    let resources = format!("{JOB}/resources");
    let put = |body: &str| send(api.address(), "PUT", &resources, &[], body);
    for wrong in [r#"{"parallelism":0}"#, r#"{"parallelism":2,"least":3}"#, r#"{"parallelism":4000000}"#] {
        assert_eq!(put(wrong).failure(400).code, "PARALLELISM_INVALID", "{wrong}");
    }
    let bounds: BoundsView = put(r#"{"parallelism":4,"least":1}"#).json();
    assert_eq!((bounds.least, bounds.target), (1, 4));
    let is_up = |status: &JobStatus| {
        status.vertices.first().is_some_and(|source| source.parallelism == 4) && status.phase == Phase::Running
    };
    assert!(is_up(&api.job.wait_until(LONG, is_up)));
    let RescaleList { rescales } = api.get(&format!("{JOB}/rescales"));
    let [rescale] = &rescales[..] else { panic!("{rescales:?}") };
    assert_eq!((rescale.from, rescale.to, rescale.reason), (2, 4, RescaleReason::Requested));
    assert!(rescale.state == RescaleState::Done && rescale.pause_ms.is_some(), "{rescale:?}");
    let view: JobView = api.get(JOB);
    assert_eq!((view.parallelism, view.bounds), (4, bounds));
    world.numbers.gate.open();
    assert_eq!(api.job.join().unwrap(), JobOutcome::Finished);
    world.check_exactly_once();
}
