//! One stateful operator of a job at any parallelism, its state beside the model's.

use std::{collections::BTreeMap, sync::Arc};

use arrow::{
    array::{Array, ArrayRef, AsArray, Int64Array, StringArray, TimestampMillisecondArray},
    datatypes::{DataType, Field, Int64Type, TimeUnit, TimestampMillisecondType},
};
use streamkeeper_state::{
    Backend, DroppedState, Extent, FrozenState, KeyPrefix, KeyRows, KeySchema, KeyedOptions, KeyedState, Missing,
    ScanOrder, Slot, SnapshotFormat, SnapshotKind, SnapshotRequest, TableSpec, ValueField,
};
use streamkeeper_storage::MemoryStorage;
use streamkeeper_types::{CheckpointId, KeyGroup, key_group, snapshot::KeyedHandle};

use super::{
    Fixture,
    model::{Group, Model},
};

pub const MAX_PARALLELISM: u32 = 128;
pub const GROUPS: usize = 0;
pub const WINDOWS: usize = 1;
pub const VALUES: usize = 2;

pub fn field(name: &str, data_type: DataType) -> Arc<Field> {
    Arc::new(Field::new(name, data_type, true))
}

pub fn specs() -> Vec<TableSpec> {
    let key = |name: &str| field(name, DataType::Int64);
    let end = field("window_end", DataType::Timestamp(TimeUnit::Millisecond, None));
    vec![
        TableSpec::new(
            "groups",
            KeySchema::new(vec![key("k")]).unwrap(),
            vec![
                ValueField::zero("count", DataType::Int64),
                ValueField::nullable("sum", DataType::Float64),
                ValueField::nullable("text", DataType::Utf8),
            ],
        )
        .unwrap(),
        TableSpec::new(
            "windows",
            KeySchema::with_layout(vec![end, key("k")], 1..2, 1).unwrap(),
            vec![ValueField::zero("total", DataType::Decimal128(38, 2))],
        )
        .unwrap(),
        TableSpec::new(
            "values",
            KeySchema::with_layout(vec![key("k"), field("v", DataType::Utf8)], 0..1, 1).unwrap(),
            vec![ValueField::zero("n", DataType::Int64)],
        )
        .unwrap(),
    ]
}

/// Subtasks with their state, and what the state should be.
pub struct Job {
    pub storage: MemoryStorage,
    pub backend: Arc<dyn Backend>,
    pub subtasks: Vec<KeyedState>,
    pub model: Model,
    pub fold_every: u32,
    dir: tempfile::TempDir,
    attempt: u64,
    next_id: u64,
}

/// Handles of a completed snapshot, and the model at its cut.
#[derive(Clone)]
pub struct Completed {
    pub id: CheckpointId,
    pub handles: Vec<KeyedHandle>,
    pub model: Model,
}

/// A snapshot between cut and upload.
pub struct Frozen {
    pub id: CheckpointId,
    pub parts: Vec<FrozenState>,
    pub model: Model,
}

impl Job {
    pub fn new(fixture: &dyn Fixture, budget: usize, parallelism: u32) -> Self {
        let mut job = Self {
            storage: MemoryStorage::new(),
            backend: fixture.backend(budget),
            subtasks: Vec::new(),
            model: Model::default(),
            fold_every: 3,
            dir: tempfile::tempdir().unwrap(),
            attempt: 0,
            next_id: 1,
        };
        job.start(parallelism, &[]);
        job
    }

    /// Starts all subtasks anew; what ran before is as if killed.
    pub fn start(&mut self, parallelism: u32, handles: &[KeyedHandle]) {
        self.subtasks.clear();
        self.attempt += 1;
        let open = |index| {
            let options = self.options(index, parallelism);
            KeyedState::open(self.backend.as_ref(), options, specs(), handles, &self.storage).unwrap()
        };
        self.subtasks = (0..parallelism).map(open).collect();
    }

    pub fn options(&self, index: u32, parallelism: u32) -> KeyedOptions {
        KeyedOptions {
            range: key_group::range_of(index, parallelism, MAX_PARALLELISM),
            max_parallelism: MAX_PARALLELISM,
            work_dir: self.dir.path().join(format!("{}-{index}", self.attempt)),
            fold_every: self.fold_every,
            now: 0,
            dropped: DroppedState::Refuse,
        }
    }

    pub fn restore(&mut self, parallelism: u32, completed: &Completed) {
        self.start(parallelism, &completed.handles);
        self.model = completed.model.clone();
    }

    pub fn request(&self, id: CheckpointId, kind: SnapshotKind, format: SnapshotFormat) -> SnapshotRequest {
        let folder = if kind == SnapshotKind::Savepoint { "savepoints/s" } else { "chk-" };
        SnapshotRequest {
            id,
            kind,
            format,
            extent: Extent::Incremental,
            target: format!("{folder}{id}"),
            unique: format!("op-{}", self.attempt),
        }
    }

    pub fn freeze(&mut self, kind: SnapshotKind, format: SnapshotFormat, extent: Extent) -> Frozen {
        let id = CheckpointId(self.next_id);
        self.next_id += 1;
        let request = SnapshotRequest { extent, ..self.request(id, kind, format) };
        let parts = self.subtasks.iter_mut().map(|state| state.freeze(&request).unwrap()).collect();
        Frozen { id, parts, model: self.model.clone() }
    }

    pub fn upload(&self, frozen: Frozen) -> Completed {
        let handles = frozen.parts.into_iter().map(|part| part.upload(&self.storage).unwrap()).collect();
        Completed { id: frozen.id, handles, model: frozen.model }
    }

    pub fn confirm(&mut self, id: CheckpointId) {
        self.subtasks.iter_mut().for_each(|state| state.confirmed(id).unwrap());
    }

    pub fn abort(&mut self, id: CheckpointId) {
        self.subtasks.iter_mut().for_each(|state| state.aborted(id));
    }

    pub fn checkpoint(&mut self) -> Completed {
        let frozen = self.freeze(SnapshotKind::Checkpoint, SnapshotFormat::Native, Extent::Incremental);
        let completed = self.upload(frozen);
        self.confirm(completed.id);
        completed
    }

    pub fn savepoint(&mut self, format: SnapshotFormat) -> Completed {
        let frozen = self.freeze(SnapshotKind::Savepoint, format, Extent::Full);
        self.upload(frozen)
    }

    pub fn maintain(&mut self) {
        self.subtasks.iter_mut().for_each(|state| state.maintain().unwrap());
    }

    /// Rows by subtask, in order.
    fn route(&self, table: usize, columns: &[ArrayRef]) -> Vec<Vec<u32>> {
        let mut groups = Vec::new();
        let rows = columns[0].len();
        let mut encoder = self.subtasks[0].key_encoder(table);
        let mut keys = KeyRows::new();
        encoder.encode(columns, rows, &mut keys).unwrap();
        groups.extend_from_slice(keys.groups());
        let p = self.subtasks.len() as u32;
        let mut routed = vec![Vec::new(); p as usize];
        for (row, group) in groups.into_iter().enumerate() {
            routed[key_group::subtask_of(group, p, MAX_PARALLELISM) as usize].push(row as u32);
        }
        routed
    }

    /// Looks up the rows' keys at their subtasks and calls `visit` with subtask, batch rows and slots.
    fn with_slots(
        &mut self,
        table: usize,
        columns: &[ArrayRef],
        missing: Missing,
        mut visit: impl FnMut(&mut KeyedState, &mut Model, &[u32], &[Slot]),
    ) {
        let routed = self.route(table, columns);
        for (subtask, rows) in routed.into_iter().enumerate() {
            let take = |column: &ArrayRef| {
                arrow::compute::take(column, &arrow::array::UInt32Array::from(rows.clone()), None).unwrap()
            };
            let columns: Vec<ArrayRef> = columns.iter().map(take).collect();
            let state = &mut self.subtasks[subtask];
            let mut keys = KeyRows::new();
            state.key_encoder(table).encode(&columns, rows.len(), &mut keys).unwrap();
            let mut slots = Vec::new();
            state.table_mut(table).lookup(&keys, missing, &mut slots).unwrap();
            assert_eq!(slots.len(), rows.len());
            visit(state, &mut self.model, &rows, &slots);
        }
    }

    /// Counts each key once more, and checks what was there before.
    pub fn count(&mut self, keys: &[i64]) {
        let columns: Vec<ArrayRef> = vec![Arc::new(Int64Array::from(keys.to_vec()))];
        self.with_slots(GROUPS, &columns, Missing::Insert, |state, model, rows, slots| {
            let table = state.table_mut(GROUPS);
            for (row, slot) in rows.iter().zip(slots) {
                let key = keys[*row as usize];
                let before = model.groups.get(&key).cloned();
                assert_eq!(table.exists(*slot), before.is_some(), "key {key}");
                let mut group = before.unwrap_or(Group { count: 0, sum: None, text: None });
                let columns = table.columns();
                assert_eq!(columns[0].as_i64().unwrap().values[slot.index()], group.count, "key {key}");
                let sum = columns[1].as_f64().unwrap();
                assert_eq!(sum.valid[slot.index()].then(|| sum.values[slot.index()]), group.sum, "key {key}");
                let text = columns[2].as_bytes().unwrap().get(*slot);
                assert_eq!(text, group.text.as_deref().map(str::as_bytes), "key {key}");

                group.count += 1;
                group.sum = (group.count % 3 != 0).then_some(group.count as f64 / 4.0);
                group.text = (group.count % 4 != 0).then(|| "x".repeat((group.count % 9) as usize + key as usize % 5));
                let [count, sum, text] = table.columns_mut() else { panic!("three columns") };
                count.as_i64_mut().unwrap().values[slot.index()] = group.count;
                let sum = sum.as_f64_mut().unwrap();
                sum.valid[slot.index()] = group.sum.is_some();
                sum.values[slot.index()] = group.sum.unwrap_or(0.0);
                text.as_bytes_mut().unwrap().set(*slot, group.text.as_deref().map(str::as_bytes));
                table.mark_dirty(*slot);
                model.groups.insert(key, group);
            }
        });
    }

    /// Removes the keys that exist.
    pub fn forget(&mut self, keys: &[i64]) {
        let columns: Vec<ArrayRef> = vec![Arc::new(Int64Array::from(keys.to_vec()))];
        self.with_slots(GROUPS, &columns, Missing::Skip, |state, model, rows, slots| {
            for (row, slot) in rows.iter().zip(slots) {
                let key = keys[*row as usize];
                let existed = !slot.is_none() && state.table(GROUPS).exists(*slot);
                assert_eq!(existed, model.groups.remove(&key).is_some(), "key {key}");
                if existed {
                    state.table_mut(GROUPS).remove(*slot);
                }
            }
        });
    }

    /// Adds to windows.
    pub fn add_to_windows(&mut self, rows_in: &[(i64, i64)]) {
        let columns: Vec<ArrayRef> = vec![
            Arc::new(TimestampMillisecondArray::from_iter_values(rows_in.iter().map(|r| r.0))),
            Arc::new(Int64Array::from_iter_values(rows_in.iter().map(|r| r.1))),
        ];
        self.with_slots(WINDOWS, &columns, Missing::Insert, |state, model, rows, slots| {
            let table = state.table_mut(WINDOWS);
            for (row, slot) in rows.iter().zip(slots) {
                let key = rows_in[*row as usize];
                assert_eq!(table.exists(*slot), model.windows.contains_key(&key), "window {key:?}");
                let total = model.windows.entry(key).or_default();
                let value = &mut table.columns_mut()[0].as_i128_mut().unwrap().values[slot.index()];
                assert_eq!(value, total);
                *total += i128::from(key.1) + 1;
                *value = *total;
                table.mark_dirty(*slot);
            }
        });
    }

    /// Reads and removes all rows of a window.
    pub fn fire(&mut self, end: i64, order: ScanOrder) {
        let columns: Vec<ArrayRef> = vec![Arc::new(TimestampMillisecondArray::from(vec![end]))];
        let mut found = BTreeMap::new();
        for state in &mut self.subtasks {
            let prefix = state.key_encoder(WINDOWS).prefix(&columns, 0).unwrap();
            let table = state.table_mut(WINDOWS);
            let mut scan = table.scan(prefix, order);
            let mut slots = Vec::new();
            while table.next_chunk(&mut scan, 100, &mut slots).unwrap() {
                for (key, slot) in window_keys(table, &slots).into_iter().zip(&slots) {
                    let value = table.columns()[0].as_i128().unwrap().values[slot.index()];
                    assert_eq!(found.insert(key, value), None, "window row {key:?} came twice");
                    table.remove(*slot);
                }
            }
        }
        let expected: BTreeMap<_, _> =
            self.model.windows.iter().filter(|(key, _)| key.0 == end).map(|(key, v)| (*key, *v)).collect();
        assert_eq!(found, expected, "window {end}");
        self.model.windows.retain(|key, _| key.0 != end);
    }

    /// Adds values to the multisets of keys.
    pub fn add_values(&mut self, rows_in: &[(i64, String)]) {
        let columns: Vec<ArrayRef> = vec![
            Arc::new(Int64Array::from_iter_values(rows_in.iter().map(|r| r.0))),
            Arc::new(StringArray::from_iter_values(rows_in.iter().map(|r| &r.1))),
        ];
        self.with_slots(VALUES, &columns, Missing::Insert, |state, model, rows, slots| {
            let table = state.table_mut(VALUES);
            for (row, slot) in rows.iter().zip(slots) {
                let n = model.values.entry(rows_in[*row as usize].clone()).or_default();
                let value = &mut table.columns_mut()[0].as_i64_mut().unwrap().values[slot.index()];
                assert_eq!(value, n);
                *n += 1;
                *value = *n;
                table.mark_dirty(*slot);
            }
        });
    }

    /// Reads the values of a key in order and removes the first.
    pub fn pop_value(&mut self, key: i64) {
        let columns: Vec<ArrayRef> = vec![Arc::new(Int64Array::from(vec![key]))];
        let routed = {
            let mut encoder = streamkeeper_state::KeyEncoder::new(
                KeySchema::new(vec![field("k", DataType::Int64)]).unwrap(),
                MAX_PARALLELISM,
            );
            let mut groups: Vec<KeyGroup> = Vec::new();
            encoder.groups(&columns, 1, &mut groups).unwrap();
            key_group::subtask_of(groups[0], self.subtasks.len() as u32, MAX_PARALLELISM)
        };
        let state = &mut self.subtasks[routed as usize];
        let prefix = state.key_encoder(VALUES).prefix(&columns, 0).unwrap();
        let table = state.table_mut(VALUES);
        let mut scan = table.scan(prefix.clone(), ScanOrder::Key);
        let (mut slots, mut found) = (Vec::new(), Vec::new());
        while table.next_chunk(&mut scan, 2, &mut slots).unwrap() {
            for (key, slot) in value_keys(table, &slots).into_iter().zip(&slots) {
                found.push((key, table.columns()[0].as_i64().unwrap().values[slot.index()]));
            }
        }
        let expected: Vec<_> =
            self.model.values.iter().filter(|(k, _)| k.0 == key).map(|(k, n)| (k.clone(), *n)).collect();
        assert_eq!(found, expected, "values of {key}");
        let mut scan = table.scan(prefix, ScanOrder::Key);
        if table.next_chunk(&mut scan, 1, &mut slots).unwrap() {
            table.remove(slots[0]);
            self.model.values.remove(&expected[0].0);
        }
    }

    /// Reads everything and compares.
    pub fn check(&mut self) {
        let mut found = Model::default();
        let mut ends = Vec::new();
        for state in &mut self.subtasks {
            let range = state.range();
            for number in [GROUPS, WINDOWS, VALUES] {
                let table = state.table_mut(number);
                let mut scan = table.scan(KeyPrefix::all(), ScanOrder::Any);
                let mut slots = Vec::new();
                while table.next_chunk(&mut scan, 500, &mut slots).unwrap() {
                    for slot in &slots {
                        let key = table.key_bytes(*slot);
                        assert!(range.contains(KeyGroup(u16::from_be_bytes([key[0], key[1]]))));
                    }
                    collect(table, number, &slots, &mut found);
                }
            }
            let table = state.table_mut(WINDOWS);
            let prefixes = table.prefixes().unwrap();
            let columns = table.spec().key().decode_prefixes(prefixes.iter()).unwrap();
            ends.extend(columns[0].as_primitive::<TimestampMillisecondType>().values().iter().copied());
        }
        assert_eq!(found, self.model);
        ends.sort_unstable();
        ends.dedup();
        let mut expected: Vec<i64> = self.model.windows.keys().map(|key| key.0).collect();
        expected.dedup();
        assert_eq!(ends, expected, "open windows");
    }
}

fn collect(table: &streamkeeper_state::Table, number: usize, slots: &[Slot], found: &mut Model) {
    match number {
        GROUPS => {
            let keys = table.gather_keys(slots).unwrap();
            let keys = keys[0].as_primitive::<Int64Type>().clone();
            let (count, sum, text) =
                (table.gather(0, slots).unwrap(), table.gather(1, slots).unwrap(), table.gather(2, slots).unwrap());
            for row in 0..slots.len() {
                let group = Group {
                    count: count.as_primitive::<Int64Type>().value(row),
                    sum: sum.is_valid(row).then(|| sum.as_primitive::<arrow::datatypes::Float64Type>().value(row)),
                    text: text.is_valid(row).then(|| text.as_string::<i32>().value(row).to_owned()),
                };
                assert_eq!(found.groups.insert(keys.value(row), group), None, "a group came twice");
            }
        }
        WINDOWS => {
            let totals = table.gather(0, slots).unwrap();
            let totals = totals.as_primitive::<arrow::datatypes::Decimal128Type>();
            for (row, key) in window_keys(table, slots).into_iter().enumerate() {
                assert_eq!(found.windows.insert(key, totals.value(row)), None, "a window row came twice");
            }
        }
        _ => {
            let ns = table.gather(0, slots).unwrap();
            for (row, key) in value_keys(table, slots).into_iter().enumerate() {
                let n = ns.as_primitive::<Int64Type>().value(row);
                assert_eq!(found.values.insert(key, n), None, "a value came twice");
            }
        }
    }
}

fn window_keys(table: &streamkeeper_state::Table, slots: &[Slot]) -> Vec<(i64, i64)> {
    let columns = table.gather_keys(slots).unwrap();
    let ends = columns[0].as_primitive::<TimestampMillisecondType>().values().to_vec();
    ends.into_iter().zip(columns[1].as_primitive::<Int64Type>().values().iter().copied()).collect()
}

fn value_keys(table: &streamkeeper_state::Table, slots: &[Slot]) -> Vec<(i64, String)> {
    let columns = table.gather_keys(slots).unwrap();
    let keys = columns[0].as_primitive::<Int64Type>();
    let values = columns[1].as_string::<i32>();
    (0..slots.len()).map(|row| (keys.value(row), values.value(row).to_owned())).collect()
}
