//! What only RocksDB does.

use std::{collections::BTreeSet, sync::Arc};

use arrow::{
    array::{ArrayRef, Int64Array},
    datatypes::DataType,
};
use streamkeeper_state::{
    DroppedState, Extent, KeyRows, KeySchema, KeyedOptions, KeyedState, MemoryBackend, MemoryBudget, Missing,
    RestoreStep, Slot, SnapshotFormat, SnapshotKind, SnapshotRequest, TableSpec, ValueField,
};
use streamkeeper_state_rocksdb::RocksdbBackend;
use streamkeeper_storage::{FileStorage, MemoryStorage};
use streamkeeper_types::{CheckpointId, Code, KeyGroupRange, snapshot::KeyedHandle};

use crate::{
    Rocksdb,
    contract::job::{Job, field, specs},
};

/// A job whose checkpoint is a base of SST files.
fn folded(parallelism: u32) -> (Job, crate::contract::job::Completed) {
    let mut job = Job::new(&Rocksdb, 64 << 20, parallelism);
    job.fold_every = 0;
    job.start(parallelism, &[]);
    job.count(&(0..500).collect::<Vec<_>>());
    job.add_to_windows(&(0..100).map(|i| (i % 3, i)).collect::<Vec<_>>());
    job.add_values(&(0..50).map(|i| (i % 4, format!("{i}"))).collect::<Vec<_>>());
    let completed = job.checkpoint();
    (job, completed)
}

fn steps(job: &Job) -> BTreeSet<RestoreStep> {
    let steps = job.subtasks.iter().flat_map(|state| state.restored_by().iter().copied());
    steps.filter(|step| *step != RestoreStep::Empty).collect()
}

#[test]
fn x7_each_step_of_the_ladder_is_taken_and_gives_the_same_state() {
    let (mut job, completed) = folded(2);
    let check = |job: &mut Job, parallelism, completed: &_, expected: &[RestoreStep]| {
        job.restore(parallelism, completed);
        assert_eq!(steps(job), expected.iter().copied().collect(), "p = {parallelism}");
        job.check();
    };
    check(&mut job, 2, &completed, &[RestoreStep::Reopen]);
    check(&mut job, 4, &completed, &[RestoreStep::Reopen]);
    check(&mut job, 1, &completed, &[RestoreStep::Import]);
    // Files that still hold rows of groups that went elsewhere must not bring them back.
    check(&mut job, 4, &completed, &[RestoreStep::Reopen]);
    job.forget(&(0..250).collect::<Vec<_>>());
    job.count(&(100..300).collect::<Vec<_>>());
    let later = job.checkpoint();
    check(&mut job, 1, &later, &[RestoreStep::Import, RestoreStep::Rewrite]);
    let last = job.checkpoint();
    check(&mut job, 3, &last, &[RestoreStep::Reopen]);
}

#[test]
fn x6_files_taken_over_as_they_are_are_not_uploaded_again() {
    let (mut job, completed) = folded(2);
    let paths = |handles: &[KeyedHandle]| -> BTreeSet<String> {
        handles.iter().flat_map(KeyedHandle::files).map(|file| file.path.clone()).collect()
    };
    let before = paths(&completed.handles);
    for parallelism in [2, 1] {
        job.restore(parallelism, &completed);
        job.count(&[1, 2, 3]);
        let next = job.checkpoint();
        assert!(before.is_subset(&paths(&next.handles)), "p = {parallelism}");
        job.restore(3, &next);
        job.check();
    }
}

#[test]
fn a_canonical_savepoint_moves_state_between_backends() {
    let mut job = Job::new(&Rocksdb, 256 << 10, 2);
    job.count(&(0..2000).collect::<Vec<_>>());
    job.add_to_windows(&(0..300).map(|i| (i % 3, i)).collect::<Vec<_>>());
    job.maintain();
    let savepoint = job.savepoint(SnapshotFormat::Canonical);
    job.backend = Arc::new(MemoryBackend::new(MemoryBudget::new(1 << 30)));
    job.restore(3, &savepoint);
    job.check();
    job.count(&(1000..1100).collect::<Vec<_>>());
    let back = job.savepoint(SnapshotFormat::Canonical);
    job.backend = Arc::new(RocksdbBackend::new(MemoryBudget::new(256 << 10)));
    job.restore(1, &back);
    job.check();
}

#[test]
fn the_memory_backend_refuses_files_of_rocksdb() {
    let (job, completed) = folded(1);
    let memory = MemoryBackend::new(MemoryBudget::new(1 << 30));
    let error = KeyedState::open(&memory, job.options(7, 8), specs(), &completed.handles, &job.storage).unwrap_err();
    assert_eq!(error.code, Code::StateIncompatible);
    assert!(error.to_string().contains("canonical savepoint"), "{error}");
}

#[test]
fn rocksdb_takes_column_files_of_the_memory_backend() {
    let mut job = Job::new(&Rocksdb, 64 << 20, 2);
    job.backend = Arc::new(MemoryBackend::new(MemoryBudget::new(1 << 30)));
    job.start(2, &[]);
    job.count(&(0..500).collect::<Vec<_>>());
    let native = job.savepoint(SnapshotFormat::Native);
    job.backend = Arc::new(RocksdbBackend::new(MemoryBudget::new(64 << 20)));
    job.restore(3, &native);
    job.check();
}

/// State ten times the budget: accounted bytes stay within it between batches, and every answer is right.
#[test]
fn state_of_ten_times_the_budget_holds_it() {
    const BUDGET: usize = 512 << 10;
    const KEYS: i64 = 100_000;
    let budget = MemoryBudget::new(BUDGET);
    let backend = RocksdbBackend::new(budget.clone());
    let dir = tempfile::tempdir().unwrap();
    let storage = FileStorage::new(dir.path().join("storage")).unwrap();
    let options = KeyedOptions {
        range: KeyGroupRange::all(128),
        max_parallelism: 128,
        work_dir: dir.path().join("work"),
        fold_every: 2,
        now: 0,
        dropped: DroppedState::Refuse,
    };
    let key = KeySchema::new(vec![field("k", DataType::Int64)]).unwrap();
    let specs = vec![TableSpec::new("t", key, vec![ValueField::zero("n", DataType::Int64)]).unwrap()];
    let mut state = KeyedState::open(&backend, options, specs, &[], &storage).unwrap();
    let mut encoder = state.key_encoder(0);
    let (mut keys, mut slots) = (KeyRows::new(), Vec::<Slot>::new());
    for round in 0..2_i64 {
        for (batch, first) in (0..KEYS).step_by(4000).enumerate() {
            // Scattered, so that every batch touches the whole key space.
            let numbers: Vec<i64> = (first..first + 4000).map(|i| i * 7919 % KEYS).collect();
            let columns: Vec<ArrayRef> = vec![Arc::new(Int64Array::from(numbers.clone()))];
            encoder.encode(&columns, numbers.len(), &mut keys).unwrap();
            let table = state.table_mut(0);
            table.lookup(&keys, Missing::Insert, &mut slots).unwrap();
            for (number, slot) in numbers.iter().zip(&slots) {
                let value = &mut table.columns_mut()[0].as_i64_mut().unwrap().values[slot.index()];
                assert_eq!(*value, round * (number + 1));
                *value += number + 1;
                table.mark_dirty(*slot);
            }
            state.maintain().unwrap();
            assert!(budget.used() <= BUDGET, "{} bytes of {BUDGET}", budget.used());
            if batch % 8 == 7 {
                let request = base(round as u64 * 100 + batch as u64 + 1);
                state.freeze(&request).unwrap().upload(&storage).unwrap();
                state.confirmed(request.id).unwrap();
            }
        }
    }
    assert!(backend.cache_bytes() <= BUDGET, "RocksDB's cache has {} bytes", backend.cache_bytes());
    assert!(state.bytes() > BUDGET as u64, "the state is larger than the budget");
}

/// One subtask with a table whose keys are times of one key group.
fn open_times(backend: &RocksdbBackend, dir: &std::path::Path, handles: &[KeyedHandle]) -> KeyedState {
    let options = KeyedOptions {
        range: KeyGroupRange::all(1),
        max_parallelism: 1,
        work_dir: dir.join("work"),
        fold_every: 0,
        now: 0,
        dropped: DroppedState::Refuse,
    };
    let key = KeySchema::new(vec![field("t", DataType::Int64)]).unwrap();
    let specs = vec![TableSpec::new("t", key, vec![ValueField::zero("n", DataType::Int64)]).unwrap()];
    let storage = FileStorage::new(dir.join("storage")).unwrap();
    KeyedState::open(backend, options, specs, handles, &storage).unwrap()
}

/// Adds one to the rows of `times` and gives what they have then.
fn add_one(state: &mut KeyedState, times: &[i64]) -> Vec<i64> {
    let columns: Vec<ArrayRef> = vec![Arc::new(Int64Array::from(times.to_vec()))];
    let (mut keys, mut slots) = (KeyRows::new(), Vec::<Slot>::new());
    state.key_encoder(0).encode(&columns, times.len(), &mut keys).unwrap();
    let table = state.table_mut(0);
    table.lookup(&keys, Missing::Insert, &mut slots).unwrap();
    let add = |slot: &Slot| {
        let value = &mut table.columns_mut()[0].as_i64_mut().unwrap().values[slot.index()];
        *value += 1;
        let value = *value;
        table.mark_dirty(*slot);
        value
    };
    let values = slots.iter().map(add).collect();
    state.maintain().unwrap();
    values
}

fn base(id: u64) -> SnapshotRequest {
    SnapshotRequest {
        id: CheckpointId(id),
        kind: SnapshotKind::Checkpoint,
        format: SnapshotFormat::Native,
        extent: Extent::Incremental,
        target: "chk".into(),
        unique: "u".into(),
    }
}

/// Keys that only grow make files that overlap nothing, which compaction by itself leaves alone.
#[test]
fn b18_the_files_of_a_snapshot_stay_bounded_over_many_tiny_folds() {
    const FOLDS: i64 = 150;
    const MOST_FILES: usize = 20;
    for advance in [0, 1] {
        let dir = tempfile::tempdir().unwrap();
        let storage = FileStorage::new(dir.path().join("storage")).unwrap();
        let backend = RocksdbBackend::new(MemoryBudget::new(16 << 20)).with_most_files(MOST_FILES as u64);
        let mut state = open_times(&backend, dir.path(), &[]);
        let mut last = None;
        for round in 0..FOLDS {
            add_one(&mut state, &[round * advance]);
            let request = base(round as u64 + 1);
            let handle = state.freeze(&request).unwrap().upload(&storage).unwrap();
            state.confirmed(request.id).unwrap();
            let files = handle.files().count();
            assert!(files <= MOST_FILES, "{files} files after {round} folds");
            last = Some(handle);
        }
        drop(state);
        let mut state = open_times(&backend, dir.path(), &[last.unwrap()]);
        let expected = if advance == 0 { vec![FOLDS + 1] } else { vec![2; FOLDS as usize] };
        let times: Vec<i64> = (0..FOLDS).map(|round| round * advance).take(expected.len()).collect();
        assert_eq!(add_one(&mut state, &times), expected);
    }
}

#[test]
fn rows_on_their_way_into_a_base_count_against_the_budget_until_they_are_there() {
    const ROWS: i64 = 10_000;
    let dir = tempfile::tempdir().unwrap();
    let storage = FileStorage::new(dir.path().join("storage")).unwrap();
    let budget = MemoryBudget::new(64 << 20);
    let backend = RocksdbBackend::new(budget.clone());
    let mut state = open_times(&backend, dir.path(), &[]);
    add_one(&mut state, &(0..ROWS).collect::<Vec<_>>());
    let before = budget.used();
    let frozen = state.freeze(&base(1)).unwrap();
    let key_and_value = 2 + 9 + 9;
    assert!(budget.used() >= before + ROWS as usize * key_and_value, "{} bytes before, {before}", budget.used());
    frozen.upload(&storage).unwrap();
    assert_eq!(budget.used(), before);
}

#[test]
fn a_torn_manifest_entry_is_an_error() {
    let (job, completed) = folded(1);
    let mut handle = completed.handles[0].clone();
    for base in handle.tables.iter_mut().flat_map(|table| &mut table.base) {
        base.largest = "xy".into();
    }
    let error = KeyedState::open(
        job.backend.as_ref(),
        job.options(7, 8),
        specs(),
        &[handle],
        &MemoryStorage::clone(&job.storage),
    );
    assert_eq!(error.unwrap_err().code, Code::SnapshotCorrupt);
}
