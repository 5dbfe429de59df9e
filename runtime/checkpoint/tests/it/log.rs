//! The blocking log over real and faulty storage. Interleavings of several claimants are the simulator's.

use std::{sync::Arc, time::Duration};

use streamkeeper_checkpoint::{
    CompletedCheckpoint, JobResult, StartFrom, files,
    log::{AppendError, Completion, JobLog, Record, RetryPolicy, StartError},
    recovery, retention,
};
use streamkeeper_protocol::{CheckpointKind, SnapshotFormat};
use streamkeeper_storage::{Faults, FaultyStorage, MemoryStorage, Storage};
use streamkeeper_types::{CheckpointId, Code, Error, Generation};

use crate::snapshots::{keyed_operator, manifest};

const RETRY: RetryPolicy = RetryPolicy { attempts: 40, delay: Duration::ZERO };

fn open(storage: &Arc<dyn Storage>, launch: u64, instance: &str) -> Result<JobLog, StartError> {
    JobLog::open(Arc::clone(storage), launch, instance, RETRY).map(|(log, _)| log)
}

fn memory() -> Arc<dyn Storage> {
    Arc::new(MemoryStorage::new())
}

fn completion(log: &JobLog, id: CheckpointId, retained: usize) -> Record {
    let checkpoint = CompletedCheckpoint {
        id,
        kind: CheckpointKind::Checkpoint,
        format: SnapshotFormat::Native,
        manifest: format!("chk-{id}/_metadata"),
        checksum: 0,
        size: 0,
        time: 0,
    };
    let subsumes = retention::subsumed(&log.state().completed, checkpoint.kind, retained);
    Record::Completed(Completion { checkpoint, subsumes, collected: Vec::new() })
}

fn complete(log: &mut JobLog) -> Result<CheckpointId, AppendError> {
    let id = log.allocate_id()?;
    log.append(&completion(log, id, 2))?;
    Ok(id)
}

#[test]
fn a_later_reign_starts_from_what_the_earlier_one_published() {
    let storage = memory();
    let mut first = open(&storage, 1, "a").unwrap();
    assert_eq!(recovery::choose(first.state()), StartFrom::Empty);
    complete(&mut first).unwrap();
    let newest = complete(&mut first).unwrap();
    let second = open(&storage, 1, "b").unwrap();
    assert_eq!(second.generation(), Generation(2));
    let StartFrom::RecoveryPoint(point) = recovery::choose(second.state()) else { panic!() };
    assert_eq!(point.id, newest);
}

#[test]
fn r25_a_reign_that_was_taken_over_publishes_nothing_more() {
    let storage = memory();
    let mut zombie = open(&storage, 1, "a").unwrap();
    complete(&mut zombie).unwrap();
    assert_eq!(zombie.check_reign(), Ok(()));
    let mut leader = open(&storage, 1, "b").unwrap();
    assert_eq!(zombie.check_reign(), Err(AppendError::Fenced { by: Generation(2) }));
    assert_eq!(complete(&mut zombie), Err(AppendError::Fenced { by: Generation(2) }));
    assert_eq!(Error::from(complete(&mut zombie).unwrap_err()).code, Code::Fenced);
    let state = leader.state().clone();
    complete(&mut leader).unwrap();
    assert_eq!(open(&storage, 1, "c").unwrap().state().completed.len(), state.completed.len() + 1);
}

#[test]
fn r1_ids_grow_over_reigns_even_if_none_completes() {
    let storage = memory();
    let mut last = CheckpointId(0);
    for reign in 0..4 {
        let mut log = open(&storage, 1, &reign.to_string()).unwrap();
        for _ in 0..3 {
            let id = log.allocate_id().unwrap();
            assert!(id > last);
            last = id;
        }
    }
}

#[test]
fn an_older_launch_is_refused_and_told_the_highest() {
    let storage = memory();
    open(&storage, 5, "a").unwrap();
    assert_eq!(open(&storage, 4, "b").unwrap_err(), StartError::LaunchTooOld { highest: 5 });
    assert!(open(&storage, 5, "c").is_ok());
    assert!(open(&storage, 6, "d").is_ok());
}

#[test]
fn collection_bounds_the_log_and_leaves_every_claim_and_seal() {
    let storage = memory();
    for reign in 1..=3 {
        let mut log = open(&storage, 1, &reign.to_string()).unwrap();
        for _ in 0..200 {
            complete(&mut log).unwrap();
            log.collect().unwrap();
        }
        let listed: Vec<String> = storage.list("log").unwrap().into_iter().map(|o| o.path).collect();
        let old = |g: &u64| listed.iter().filter(|p| p.starts_with(&format!("log/{g}/"))).count();
        assert!((1..reign).all(|g| old(&g) == 2 && listed.contains(&format!("log/{g}/0"))), "{listed:?}");
        assert!(old(&reign) < 70, "{} entries", old(&reign));
        assert!(log.state().discards.len() > 100, "nothing said that they are collected");
    }
}

#[test]
fn r24_unknown_outcomes_are_settled_and_nothing_is_lost_or_doubled() {
    for seed in 0..40 {
        let inner = MemoryStorage::new();
        let faults = Faults { refused: 0.1, lost: 0.1, answer_lost: 0.1 };
        let storage: Arc<dyn Storage> = Arc::new(FaultyStorage::new(Arc::new(inner.clone()), faults, seed));
        let mut ids = Vec::new();
        for reign in 0..3 {
            let mut log = open(&storage, 1, &format!("{reign}")).unwrap();
            ids.extend((0..5).map(|_| complete(&mut log).unwrap()));
        }
        let inner: Arc<dyn Storage> = Arc::new(inner);
        let state = open(&inner, 1, "last").unwrap().state().clone();
        let kept: Vec<_> = state.completed.iter().map(|c| c.id).collect();
        assert_eq!(kept, ids[ids.len() - 2..], "seed {seed}");
        assert_eq!(state.discards.len(), ids.len() - 2, "seed {seed}");
    }
}

#[test]
fn r24_an_append_in_doubt_is_settled_by_the_next_one() {
    let inner = MemoryStorage::new();
    for (lost, answer_lost) in [(1.0, 0.0), (0.0, 1.0)] {
        let faulty = Arc::new(FaultyStorage::new(Arc::new(inner.clone()), Faults::NONE, 1));
        let storage: Arc<dyn Storage> = Arc::clone(&faulty) as _;
        let retry = RetryPolicy { attempts: 1, delay: Duration::ZERO };
        let (mut log, _) = JobLog::open(storage, 1, "a", retry).unwrap();
        let id = log.allocate_id().unwrap();
        let record = completion(&log, id, 2);
        let before = log.state().completed.len();
        // No answer, and no read either: all calls fail from here on.
        faulty.set_faults(Faults { refused: 0.0, lost, answer_lost });
        assert!(matches!(log.append(&record), Err(AppendError::InDoubt(_))));
        assert_eq!(log.state().completed.len(), before);
        faulty.set_faults(Faults::NONE);
        assert!(log.append(&record).is_err(), "not before the doubt is settled");
        assert_eq!(log.settle().unwrap(), Some(record));
        assert_eq!(log.settle().unwrap(), None);
        assert_eq!(log.state().completed.last().map(|c| c.id), Some(id));
    }
}

#[test]
fn a_write_that_surely_failed_leaves_its_number_free() {
    let faulty = Arc::new(FaultyStorage::new(Arc::new(MemoryStorage::new()), Faults::NONE, 1));
    let (mut log, _) = JobLog::open(Arc::clone(&faulty) as _, 1, "a", RETRY).unwrap();
    let id = log.allocate_id().unwrap();
    faulty.set_faults(Faults { refused: 1.0, lost: 0.0, answer_lost: 0.0 });
    assert!(matches!(log.append(&completion(&log, id, 2)), Err(AppendError::Failed(e)) if e.code == Code::Storage));
    faulty.set_faults(Faults::NONE);
    complete(&mut log).unwrap();
    assert_eq!(log.state().completed.len(), 1);
}

#[test]
fn a_finished_job_says_so_at_the_next_start() {
    let storage = memory();
    let mut log = open(&storage, 1, "a").unwrap();
    complete(&mut log).unwrap();
    let result = JobResult::Finished { time: 9 };
    log.append(&Record::Result(result.clone())).unwrap();
    let log = open(&storage, 1, "b").unwrap();
    assert_eq!(recovery::choose(log.state()), StartFrom::Ended(result));
}

#[test]
fn r33_an_unreadable_newest_checkpoint_is_an_error_and_not_an_older_one() {
    let storage = memory();
    let mut log = open(&storage, 1, "a").unwrap();
    complete(&mut log).unwrap();
    complete(&mut log).unwrap();
    let StartFrom::RecoveryPoint(point) = recovery::choose(log.state()) else { panic!() };
    let error = files::read_completed(&*storage, &point).unwrap_err();
    assert_eq!(error.code, Code::SnapshotCorrupt);
    let other = manifest(vec![keyed_operator(1, 1)]).encode();
    files::write_manifest(&*storage, &point.manifest, other).unwrap();
    assert!(files::read_completed(&*storage, &point).unwrap_err().cause.contains("not the manifest"));
}

#[test]
fn orphans_are_what_no_snapshot_names() {
    let snapshot = manifest(vec![keyed_operator(1, 1)]);
    let storage = memory();
    let mut log = open(&storage, 1, "a").unwrap();
    complete(&mut log).unwrap();
    let listed =
        ["log/1/0", "owner", "savepoints/a/x", "chk-1/_metadata", "chk-2/half", "shared/1-0.sst", "shared/lost.sst"]
            .map(str::to_owned);
    assert_eq!(files::orphans(&listed, log.state(), &[snapshot]), ["chk-2/half", "shared/lost.sst"]);
}

#[test]
fn a_manifest_of_unknown_outcome_is_read_back() {
    let bytes = manifest(vec![]).encode();
    let inner = MemoryStorage::new();
    let storage = FaultyStorage::new(Arc::new(inner.clone()), Faults { refused: 0.0, lost: 0.0, answer_lost: 0.5 }, 3);
    for i in 0..20 {
        let path = format!("chk-{i}/_metadata");
        if files::write_manifest(&storage, &path, bytes.clone()).is_ok() {
            assert_eq!(inner.get(&path).unwrap(), bytes);
        }
    }
    files::write_manifest(&inner, "chk-100/_metadata", bytes.clone()).unwrap();
    files::write_manifest(&inner, "chk-100/_metadata", bytes).unwrap();
    let other = manifest(vec![keyed_operator(1, 1)]).encode();
    assert!(files::write_manifest(&inner, "chk-100/_metadata", other).is_err(), "create never replaces");
}

#[test]
fn a_stopped_job_says_so_to_standbys_until_somebody_starts_it_again() {
    let storage = memory();
    let mut log = open(&storage, 1, "a").unwrap();
    complete(&mut log).unwrap();
    let stopped = log.state().completed[0].clone();
    let result = JobResult::Stopped { time: 9, savepoint: stopped.id };
    log.append(&Record::Result(result.clone())).unwrap();
    assert_eq!(log.state().result, Some(result));
    let log = open(&storage, 1, "b").unwrap();
    assert_eq!(log.state().result, None);
    assert_eq!(recovery::choose(log.state()), StartFrom::RecoveryPoint(stopped));
}
