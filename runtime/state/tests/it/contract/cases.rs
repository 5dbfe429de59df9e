//! Single rules of the contract.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use arrow::{
    array::{
        Array, ArrayRef, AsArray, BooleanArray, Date32Array, Decimal128Array, Float32Array, Int8Array, Int64Array,
        ListArray, MapArray, StringArray, StructArray, TimestampNanosecondArray, UInt64Array,
    },
    buffer::{NullBuffer, OffsetBuffer},
    datatypes::{DataType, Field, Fields, Int32Type, Int64Type},
};
use streamkeeper_state::{
    Backend, DroppedState, Extent, KeyRows, KeySchema, KeyedOptions, KeyedState, Migration, Missing, ScanOrder, Slot,
    SnapshotFormat, SnapshotKind, SnapshotRequest, TableSpec, Ttl, TtlRefresh, ValueField, migrations,
};
use streamkeeper_storage::{MemoryStorage, Storage};
use streamkeeper_types::{
    CheckpointId, Code, FileScope, KeyGroupRange,
    snapshot::{KeyedHandle, StateFormat},
};

use super::{
    Fixture,
    job::{GROUPS, Job, MAX_PARALLELISM, field},
};

const BUDGET: usize = 64 << 20;

/// One subtask with all key groups and tables of its own.
struct Single {
    storage: MemoryStorage,
    backend: Arc<dyn Backend>,
    specs: Vec<TableSpec>,
    state: KeyedState,
    dir: tempfile::TempDir,
    dropped: DroppedState,
    restores: u32,
}

impl Single {
    fn new(fixture: &dyn Fixture, specs: Vec<TableSpec>) -> Self {
        let (storage, backend, dir) = (MemoryStorage::new(), fixture.backend(BUDGET), tempfile::tempdir().unwrap());
        let options = options(dir.path(), DroppedState::Refuse);
        let state = KeyedState::open(backend.as_ref(), options, specs.clone(), &[], &storage).unwrap();
        Self { storage, backend, specs, state, dir, dropped: DroppedState::Refuse, restores: 0 }
    }

    fn snapshot(&mut self, kind: SnapshotKind, format: SnapshotFormat) -> KeyedHandle {
        let request = SnapshotRequest {
            id: CheckpointId(1),
            kind,
            format,
            extent: Extent::Incremental,
            target: "savepoints/s".into(),
            unique: "u".into(),
        };
        self.state.freeze(&request).unwrap().upload(&self.storage).unwrap()
    }

    fn restore(&mut self, handle: &KeyedHandle) -> streamkeeper_types::Result<()> {
        self.restores += 1;
        let options = options(&self.dir.path().join(self.restores.to_string()), self.dropped);
        let handles = std::slice::from_ref(handle);
        self.state = KeyedState::open(self.backend.as_ref(), options, self.specs.clone(), handles, &self.storage)?;
        Ok(())
    }

    fn lookup(&mut self, columns: &[ArrayRef], missing: Missing) -> Vec<Slot> {
        let (mut keys, mut slots) = (KeyRows::new(), Vec::new());
        self.state.key_encoder(0).encode(columns, columns[0].len(), &mut keys).unwrap();
        self.state.table_mut(0).lookup(&keys, missing, &mut slots).unwrap();
        slots
    }

    /// Counts a key as written at `now`.
    fn touch(&mut self, key: i64, now: i64) {
        self.state.set_now(now);
        let slot = self.lookup(&ints(&[key]), Missing::Insert)[0];
        let table = self.state.table_mut(0);
        table.columns_mut()[0].as_i64_mut().unwrap().values[slot.index()] += 1;
        table.mark_dirty(slot);
        self.state.maintain().unwrap();
    }

    /// The count of a key that exists at `now`.
    fn read(&mut self, key: i64, now: i64) -> Option<i64> {
        self.state.set_now(now);
        let slot = self.lookup(&ints(&[key]), Missing::Skip)[0];
        let value = (!slot.is_none()).then(|| self.state.table(0).columns()[0].as_i64().unwrap().values[slot.index()]);
        self.state.maintain().unwrap();
        value
    }
}

fn options(dir: &std::path::Path, dropped: DroppedState) -> KeyedOptions {
    KeyedOptions {
        range: KeyGroupRange::all(MAX_PARALLELISM),
        max_parallelism: MAX_PARALLELISM,
        work_dir: dir.join("work"),
        fold_every: 3,
        now: 0,
        dropped,
    }
}

fn ints(values: &[i64]) -> Vec<ArrayRef> {
    vec![Arc::new(Int64Array::from(values.to_vec()))]
}

fn counts(ttl: Option<Ttl>) -> Vec<TableSpec> {
    let key = KeySchema::new(vec![field("k", DataType::Int64)]).unwrap();
    vec![TableSpec::new("counts", key, vec![ValueField::zero("n", DataType::Int64)]).unwrap().with_ttl(ttl)]
}

fn ttl(millis: u64, refresh: TtlRefresh) -> Option<Ttl> {
    Some(Ttl { duration: Duration::from_millis(millis), refresh })
}

pub fn an_inserted_row_exists_only_once_written(fixture: &dyn Fixture) {
    let mut job = Single::new(fixture, counts(None));
    let slot = job.lookup(&ints(&[7]), Missing::Insert)[0];
    assert!(!job.state.table(0).exists(slot));
    job.state.maintain().unwrap();
    assert_eq!(job.read(7, 0), None);
    job.touch(7, 0);
    assert_eq!(job.read(7, 0), Some(1));
}

pub fn a_removed_row_is_gone_and_can_begin_anew(fixture: &dyn Fixture) {
    let mut job = Single::new(fixture, counts(None));
    job.touch(7, 0);
    job.touch(7, 0);
    let slot = job.lookup(&ints(&[7]), Missing::Skip)[0];
    job.state.table_mut(0).remove(slot);
    assert!(!job.state.table(0).exists(slot));
    assert_eq!(job.read(7, 0), None);
    job.touch(7, 0);
    assert_eq!(job.read(7, 0), Some(1));
}

pub fn equal_keys_of_one_batch_share_a_slot(fixture: &dyn Fixture) {
    let mut job = Single::new(fixture, counts(None));
    let slots = job.lookup(&ints(&[1, 2, 1, 2]), Missing::Insert);
    assert_eq!((slots[0], slots[1]), (slots[2], slots[3]));
    assert_ne!(slots[0], slots[1]);
}

pub fn scans_give_the_rows_of_a_prefix_in_key_order(fixture: &dyn Fixture) {
    let mut job = Job::new(fixture, BUDGET, 2);
    let rows: Vec<_> = (0..200).map(|i| (i % 3, format!("{}", (i * 7) % 100))).collect();
    job.add_values(&rows);
    job.maintain();
    let completed = job.checkpoint();
    job.restore(3, &completed);
    for key in 0..4 {
        job.pop_value(key);
        job.pop_value(key);
    }
    job.check();
}

pub fn prefixes_are_those_with_rows_also_after_a_restore(fixture: &dyn Fixture) {
    let mut job = Job::new(fixture, BUDGET, 2);
    job.add_to_windows(&(0..100).map(|i| (i % 5 * 1000 - 2000, i)).collect::<Vec<_>>());
    job.fire(0, ScanOrder::Any);
    job.check();
    for format in [SnapshotFormat::Native, SnapshotFormat::Canonical] {
        let savepoint = job.savepoint(format);
        job.restore(3, &savepoint);
        job.check();
        job.fire(if format == SnapshotFormat::Native { 1000 } else { -2000 }, ScanOrder::Key);
        job.check();
    }
}

/// Columns of every kind of type, with NULLs and extreme values.
fn all_types() -> Vec<(&'static str, ArrayRef)> {
    let tags = Fields::from(vec![Field::new("name", DataType::Utf8, true), Field::new("n", DataType::Int64, true)]);
    let rows: ArrayRef = Arc::new(StructArray::new(
        tags,
        vec![
            Arc::new(StringArray::from(vec![Some("a\0b"), None, Some("")])),
            Arc::new(Int64Array::from(vec![Some(i64::MIN), Some(0), None])),
        ],
        Some(NullBuffer::from(vec![true, false, true])),
    ));
    let list = ListArray::from_iter_primitive::<Int32Type, _, _>(vec![Some(vec![Some(1), None]), Some(vec![]), None]);
    let entries = StructArray::from(vec![
        (Arc::new(Field::new("keys", DataType::Utf8, false)), Arc::new(StringArray::from(vec!["x", "y"])) as ArrayRef),
        (Arc::new(Field::new("values", DataType::Int64, true)), Arc::new(Int64Array::from(vec![Some(1), None]))),
    ]);
    let map_field = Arc::new(Field::new("entries", entries.data_type().clone(), false));
    let map = MapArray::new(map_field, OffsetBuffer::from_lengths([1, 0, 1]), entries, None, false);
    vec![
        ("bool", Arc::new(BooleanArray::from(vec![Some(true), Some(false), None]))),
        ("tiny", Arc::new(Int8Array::from(vec![Some(-128), Some(127), None]))),
        ("unsigned", Arc::new(UInt64Array::from(vec![Some(u64::MAX), Some(0), None]))),
        ("float", Arc::new(Float32Array::from(vec![Some(-0.0), Some(f32::INFINITY), None]))),
        (
            "price",
            Arc::new(
                Decimal128Array::from(vec![Some(-12_345), Some(i128::from(u64::MAX)), None])
                    .with_precision_and_scale(30, 2)
                    .unwrap(),
            ),
        ),
        ("day", Arc::new(Date32Array::from(vec![Some(-1), Some(20_000), None]))),
        ("at", Arc::new(TimestampNanosecondArray::from(vec![Some(i64::MAX), Some(-1), None]).with_timezone("UTC"))),
        ("text", Arc::new(StringArray::from(vec![Some("é\0"), Some(""), None]))),
        ("row", rows),
        ("list", Arc::new(list)),
        ("map", Arc::new(map)),
    ]
}

pub fn every_type_comes_back_from_every_format(fixture: &dyn Fixture) {
    let columns = all_types();
    let values = columns.iter().map(|(name, array)| ValueField::nullable(*name, array.data_type().clone())).collect();
    let key_columns: Vec<_> = columns.iter().filter(|(name, _)| *name != "map").collect();
    let key_fields = key_columns.iter().map(|(name, array)| field(&format!("k_{name}"), array.data_type().clone()));
    let spec = TableSpec::new("all", KeySchema::new(key_fields.collect()).unwrap(), values).unwrap();
    let keys: Vec<ArrayRef> = key_columns.iter().map(|(_, array)| array.clone()).collect();

    let mut job = Single::new(fixture, vec![spec]);
    let slots = job.lookup(&keys, Missing::Insert);
    let table = job.state.table_mut(0);
    for (i, (_, array)) in columns.iter().enumerate() {
        table.scatter(i, array, &[0, 1, 2], &slots).unwrap();
    }
    slots.iter().for_each(|slot| table.mark_dirty(*slot));
    let check = |job: &mut Single, what: &str| {
        let slots = job.lookup(&keys, Missing::Skip);
        let table = job.state.table(0);
        for (i, (name, array)) in columns.iter().enumerate() {
            assert_eq!(&table.gather(i, &slots).unwrap(), array, "{what}: {name}");
        }
        for (key, (name, array)) in table.gather_keys(&slots).unwrap().iter().zip(&key_columns) {
            // Keys have one zero.
            if *name != "float" {
                assert_eq!(key, array, "{what}: key {name}");
            }
        }
    };
    check(&mut job, "cache");
    for format in [SnapshotFormat::Native, SnapshotFormat::Canonical] {
        let handle = job.snapshot(SnapshotKind::Savepoint, format);
        job.restore(&handle).unwrap();
        check(&mut job, &format!("{format:?}"));
    }
    let handle = job.snapshot(SnapshotKind::Checkpoint, SnapshotFormat::Native);
    job.restore(&handle).unwrap();
    check(&mut job, "checkpoint");
}

pub fn expired_rows_are_never_returned(fixture: &dyn Fixture) {
    let mut job = Single::new(fixture, counts(ttl(100, TtlRefresh::OnWrite)));
    job.touch(1, 0);
    job.touch(2, 50);
    assert_eq!((job.read(1, 99), job.read(2, 99)), (Some(1), Some(1)));
    assert_eq!((job.read(1, 100), job.read(2, 100)), (None, Some(1)));
    let handle = job.snapshot(SnapshotKind::Savepoint, SnapshotFormat::Native);
    job.restore(&handle).unwrap();
    assert_eq!((job.read(1, 120), job.read(2, 149)), (None, Some(1)));
    assert_eq!(job.read(2, 150), None);
    job.touch(2, 151);
    assert_eq!(job.read(2, 152), Some(1));
}

pub fn reads_refresh_ttl_only_if_declared(fixture: &dyn Fixture) {
    for (refresh, expected) in [(TtlRefresh::OnWrite, None), (TtlRefresh::OnReadAndWrite, Some(1))] {
        let mut job = Single::new(fixture, counts(ttl(100, refresh)));
        job.touch(1, 0);
        assert_eq!(job.read(1, 60), Some(1));
        assert_eq!(job.read(1, 120), expected, "{refresh:?}");
    }
}

pub fn b58_ttl_switched_on_at_a_restore_counts_from_then(fixture: &dyn Fixture) {
    let mut job = Single::new(fixture, counts(None));
    job.touch(1, 0);
    let handle = job.snapshot(SnapshotKind::Savepoint, SnapshotFormat::Canonical);
    job.specs = counts(ttl(100, TtlRefresh::OnWrite));
    job.restore(&handle).unwrap();
    assert_eq!((job.read(1, 99), job.read(1, 100)), (Some(1), None));
    let handle = job.snapshot(SnapshotKind::Savepoint, SnapshotFormat::Canonical);
    job.specs = counts(None);
    job.restore(&handle).unwrap();
}

fn paths(handles: &[KeyedHandle]) -> BTreeSet<String> {
    handles.iter().flat_map(KeyedHandle::files).map(|file| file.path.clone()).collect()
}

pub fn r21_refers_only_to_confirmed_uploads(fixture: &dyn Fixture) {
    let mut job = Job::new(fixture, BUDGET, 2);
    let mut confirmed = BTreeSet::new();
    let mut aborted = BTreeSet::new();
    let mut used_again = false;
    for round in 0..20 {
        job.count(&(0..50).map(|i| i * (round % 3 + 1)).collect::<Vec<_>>());
        let frozen = job.freeze(SnapshotKind::Checkpoint, SnapshotFormat::Native, Extent::Incremental);
        let completed = job.upload(frozen);
        let files = paths(&completed.handles);
        assert!(files.is_disjoint(&aborted), "round {round}");
        used_again |= !files.is_disjoint(&confirmed);
        if round % 4 == 3 {
            job.abort(completed.id);
            aborted.extend(files.difference(&confirmed).cloned());
        } else {
            job.confirm(completed.id);
            confirmed.extend(files);
        }
    }
    let last = job.checkpoint();
    assert!(used_again, "earlier files are used again");
    job.restore(2, &last);
    job.check();
}

pub fn r22_no_two_snapshots_write_the_same_file(fixture: &dyn Fixture) {
    let mut job = Job::new(fixture, BUDGET, 3);
    job.count(&(0..100).collect::<Vec<_>>());
    // Two snapshots of the same cut, of all subtasks, under the same `unique` part.
    let first = job.savepoint(SnapshotFormat::Native);
    let second = job.savepoint(SnapshotFormat::Native);
    assert!(paths(&first.handles).is_disjoint(&paths(&second.handles)));
    let total: usize = first.handles.iter().map(|handle| handle.files().count()).sum();
    assert_eq!(paths(&first.handles).len(), total);
}

pub fn r28_a_full_checkpoint_refers_to_no_earlier_file(fixture: &dyn Fixture) {
    let mut job = Job::new(fixture, BUDGET, 2);
    let mut earlier = BTreeSet::new();
    for round in 0..6 {
        job.count(&(0..100).map(|i| i + round).collect::<Vec<_>>());
        earlier.extend(paths(&job.checkpoint().handles));
    }
    let frozen = job.freeze(SnapshotKind::Checkpoint, SnapshotFormat::Native, Extent::Full);
    let full = job.upload(frozen);
    assert!(paths(&full.handles).is_disjoint(&earlier));
    earlier.iter().for_each(|path| job.storage.delete(path).unwrap());
    job.restore(3, &full);
    job.check();
}

pub fn r39_a_frozen_state_does_not_see_later_changes(fixture: &dyn Fixture) {
    for format in [SnapshotFormat::Native, SnapshotFormat::Canonical] {
        let mut job = Job::new(fixture, BUDGET, 2);
        job.count(&(0..100).collect::<Vec<_>>());
        job.add_to_windows(&(0..50).map(|i| (1000, i)).collect::<Vec<_>>());
        let frozen = job.freeze(SnapshotKind::Savepoint, format, Extent::Full);
        job.count(&(50..150).collect::<Vec<_>>());
        job.forget(&(0..30).collect::<Vec<_>>());
        job.fire(1000, ScanOrder::Any);
        job.maintain();
        let savepoint = job.upload(frozen);
        job.check();
        job.restore(1, &savepoint);
        job.check();
    }
}

pub fn b14_an_aborted_checkpoints_changes_are_in_the_next(fixture: &dyn Fixture) {
    let mut job = Job::new(fixture, BUDGET, 2);
    job.count(&(0..100).collect::<Vec<_>>());
    job.checkpoint();
    job.count(&(100..200).collect::<Vec<_>>());
    job.forget(&(0..10).collect::<Vec<_>>());
    let frozen = job.freeze(SnapshotKind::Checkpoint, SnapshotFormat::Native, Extent::Incremental);
    let lost = job.upload(frozen);
    job.count(&(150..250).collect::<Vec<_>>());
    job.abort(lost.id);
    let next = job.checkpoint();
    job.restore(2, &next);
    job.check();
}

pub fn b41_a_second_rescale_keeps_one_table_a_name(fixture: &dyn Fixture) {
    let mut job = Job::new(fixture, BUDGET, 2);
    for (round, parallelism) in [3, 5, 2, 1].into_iter().enumerate() {
        job.count(&(0..100).map(|i| i + round as i64 * 20).collect::<Vec<_>>());
        let completed = job.checkpoint();
        for handle in &completed.handles {
            let names: Vec<_> = handle.tables.iter().map(|table| table.name.as_str()).collect();
            assert_eq!(names, ["groups", "windows", "values"]);
        }
        job.restore(parallelism, &completed);
        job.check();
    }
}

pub fn b43_groups_of_others_are_not_restored(fixture: &dyn Fixture) {
    let mut job = Job::new(fixture, BUDGET, 1);
    job.count(&(0..500).collect::<Vec<_>>());
    let whole = job.checkpoint();
    job.restore(4, &whole);
    let rows: Vec<usize> = job.subtasks.iter_mut().map(count_rows).collect();
    assert_eq!(rows.iter().sum::<usize>(), 500);
    assert!(rows.iter().all(|rows| *rows > 0 && *rows < 500), "{rows:?}");
}

fn count_rows(state: &mut KeyedState) -> usize {
    let table = state.table_mut(GROUPS);
    let mut scan = table.scan(streamkeeper_state::KeyPrefix::all(), ScanOrder::Any);
    let (mut slots, mut rows) = (Vec::new(), 0);
    while table.next_chunk(&mut scan, 64, &mut slots).unwrap() {
        rows += slots.len();
    }
    rows
}

pub fn a_savepoint_stands_alone_and_changes_nothing_for_later_checkpoints(fixture: &dyn Fixture) {
    for format in [SnapshotFormat::Native, SnapshotFormat::Canonical] {
        let mut job = Job::new(fixture, BUDGET, 2);
        job.count(&(0..100).collect::<Vec<_>>());
        job.checkpoint();
        job.count(&(50..120).collect::<Vec<_>>());
        let savepoint = job.savepoint(format);
        for file in savepoint.handles.iter().flat_map(KeyedHandle::files) {
            assert_eq!(file.scope, FileScope::Private);
            assert!(file.path.starts_with("savepoints/s"), "{}", file.path);
        }
        job.count(&(0..10).collect::<Vec<_>>());
        let checkpoint = job.checkpoint();
        for file in checkpoint.handles.iter().flat_map(KeyedHandle::files) {
            assert_eq!(file.scope, FileScope::Shared);
        }
        // Neither needs the other's files.
        job.restore(2, &checkpoint);
        job.check();
        job.storage.list("shared").unwrap().iter().for_each(|file| job.storage.delete(&file.path).unwrap());
        job.restore(3, &savepoint);
        job.check();
    }
}

pub fn deltas_are_folded_into_a_base(fixture: &dyn Fixture) {
    let mut job = Job::new(fixture, BUDGET, 1);
    let mut folds = 0;
    for round in 0..13 {
        job.count(&(0..40).map(|i| i * 3 + round).collect::<Vec<_>>());
        let completed = job.checkpoint();
        let handle = &completed.handles[0];
        assert!(handle.deltas.len() <= 3, "at most fold-every deltas");
        assert_ne!(handle.format, StateFormat::Parquet);
        folds += usize::from(handle.deltas.is_empty());
    }
    assert_eq!(folds, 3, "every fourth checkpoint is a base");
    // Nothing changed: nothing is written.
    let before = job.storage.list("").unwrap().len();
    job.checkpoint();
    assert_eq!(job.storage.list("").unwrap().len(), before);
}

pub fn dropped_tables_and_changed_columns_are_refused_by_name(fixture: &dyn Fixture) {
    let mut job = Single::new(fixture, counts(None));
    job.touch(1, 0);
    let handle = job.snapshot(SnapshotKind::Checkpoint, SnapshotFormat::Native);
    let key = |name: &str, t| KeySchema::new(vec![field(name, t)]).unwrap();
    let n = |name: &str, t| ValueField::zero(name, t);
    let table = |name: &str, key, values| vec![TableSpec::new(name, key, values).unwrap()];
    let cases = [
        (table("other", key("k", DataType::Int64), vec![n("n", DataType::Int64)]), "counts"),
        (table("counts", key("k", DataType::Utf8), vec![n("n", DataType::Int64)]), "k int64"),
        (table("counts", key("k", DataType::Int64), vec![n("n", DataType::Float64)]), "column n was int64"),
        (
            table("counts", key("k", DataType::Int64), vec![n("n", DataType::Int64), n("m", DataType::Int64)]),
            "new columns: m int64",
        ),
        (table("counts", key("k", DataType::Int64), vec![]), "columns that are gone: n int64"),
    ];
    for (specs, named) in cases {
        job.specs = specs;
        let error = job.restore(&handle).unwrap_err();
        assert_eq!(error.code, Code::StateIncompatible, "{error}");
        assert!(error.to_string().contains(named), "{error}");
    }
    job.specs = counts(None);
    job.restore(&handle).unwrap();
    assert_eq!(job.read(1, 0), Some(1));
}

pub fn a_canonical_savepoint_takes_added_and_dropped_columns(fixture: &dyn Fixture) {
    let mut job = Single::new(fixture, counts(None));
    job.touch(1, 0);
    let handle = job.snapshot(SnapshotKind::Savepoint, SnapshotFormat::Canonical);
    let key = || KeySchema::new(vec![field("k", DataType::Int64)]).unwrap();
    let n = |name: &str| ValueField::zero(name, DataType::Int64);
    job.specs = vec![TableSpec::new("counts", key(), vec![n("m"), n("n")]).unwrap()];
    let added = Migration { table: "counts".to_owned(), added: vec!["m".to_owned()], removed: Vec::new() };
    assert_eq!(migrations(&handle, &job.specs, DroppedState::Refuse).unwrap(), [added]);
    job.restore(&handle).unwrap();
    let slot = job.lookup(&ints(&[1]), Missing::Skip)[0];
    assert_eq!(job.state.table(0).gather(0, &[slot]).unwrap().as_primitive::<Int64Type>().value(0), 0);
    assert_eq!(job.state.table(0).gather(1, &[slot]).unwrap().as_primitive::<Int64Type>().value(0), 1);

    job.specs = vec![TableSpec::new("counts", key(), vec![n("m")]).unwrap()];
    assert_eq!(job.restore(&handle).unwrap_err().code, Code::StateIncompatible);
    assert!(migrations(&handle, &job.specs, DroppedState::Refuse).unwrap_err().to_string().contains("n int64"));
    assert_eq!(migrations(&handle, &job.specs, DroppedState::Allow).unwrap()[0].removed, ["n"]);
    assert!(migrations(&handle, &[], DroppedState::Refuse).is_err(), "an operator without state any more");
    job.dropped = DroppedState::Allow;
    job.restore(&handle).unwrap();
    assert_eq!(job.read(1, 0), None, "a row of which nothing is kept begins anew");
}

pub fn a_missing_or_torn_file_is_named(fixture: &dyn Fixture) {
    let mut job = Job::new(fixture, BUDGET, 1);
    for round in 0..6 {
        job.count(&(0..100).map(|i| i + round).collect::<Vec<_>>());
        job.checkpoint();
    }
    let completed = job.checkpoint();
    let savepoint = job.savepoint(SnapshotFormat::Canonical);
    for handle in [&completed.handles[0], &savepoint.handles[0]] {
        for file in handle.files() {
            let good = job.storage.get(&file.path).unwrap();
            let mut flipped = good.to_vec();
            let middle = flipped.len() / 2;
            flipped[middle] ^= 0x10;
            for bad in [None, Some(good.slice(..good.len() - 1)), Some(flipped.into())] {
                job.storage.delete(&file.path).unwrap();
                if let Some(bad) = bad {
                    let _ = job.storage.put(&file.path, bad, streamkeeper_storage::PutMode::Overwrite).unwrap();
                }
                job.subtasks.clear();
                let error = KeyedState::open(
                    job.backend.as_ref(),
                    job.options(0, 1),
                    super::job::specs(),
                    std::slice::from_ref(handle),
                    &job.storage,
                )
                .unwrap_err();
                assert_eq!(error.code, Code::SnapshotCorrupt, "{error}");
                assert!(error.to_string().contains(&file.path), "{error}");
            }
            let _ = job.storage.put(&file.path, good, streamkeeper_storage::PutMode::Overwrite).unwrap();
        }
    }
    job.restore(1, &completed);
    job.check();
}
