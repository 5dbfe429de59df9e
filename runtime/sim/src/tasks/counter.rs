//! A task with two chained operators: a keyed counter whose state lies in files, and a sink that commits in two phases.

use std::collections::{BTreeMap, BTreeSet};

use rand::Rng;
use serde::{Deserialize, Serialize};
use streamkeeper_checkpoint::restore::SubtaskRestore;
use streamkeeper_protocol::{Barrier, CheckpointMetrics, DeclineReason, TaskReport, TaskState, ToTask};
use streamkeeper_storage::{PutMode, Storage, StorageResult};
use streamkeeper_types::{
    AttemptId, CheckpointId, FileRef, FileScope, KeyGroupRange, key_group,
    snapshot::{
        BaseFile, KeyedHandle, ListMode, ListState, OperatorSnapshot, StateFormat, SubtaskSnapshot, TableHandle,
        TableSchema,
    },
};

use super::{
    Row,
    dataflow::{Dataflow, Element},
    graph::{COUNTER, MAX_PARALLELISM, SINK},
    link::TaskLink,
    source::group_of,
};
use crate::{Omission, shared::Shared};

/// Deltas before a new base is written.
const DELTAS_PER_BASE: usize = 3;

#[derive(Debug)]
pub(crate) struct Counter {
    pub(crate) link: TaskLink,
    index: usize,
    range: KeyGroupRange,
    counts: BTreeMap<u32, u32>,
    /// Keys changed since each cut that is not confirmed yet, the running interval last.
    changed: Vec<(CheckpointId, BTreeSet<u32>)>,
    changing: BTreeSet<u32>,
    /// Files of each cut, and the one that a later cut may refer to (R21).
    uploads: BTreeMap<CheckpointId, KeyedHandle>,
    confirmed: Option<(CheckpointId, KeyedHandle)>,
    /// Rows of the open transaction, and the transactions that wait for their commit.
    rows: Vec<Row>,
    prepared: Vec<Transaction>,
    alignment: Option<(Barrier, BTreeSet<usize>)>,
    end_of_data: BTreeSet<usize>,
    ended: BTreeSet<usize>,
    /// A completed snapshot covers the end; the task finishes after its inputs.
    is_freed: bool,
    last_barrier: CheckpointId,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct Transaction {
    id: CheckpointId,
    name: String,
    rows: Vec<Row>,
}

impl Counter {
    /// Restores; `None` if a file of the snapshot cannot be read.
    pub(crate) fn new(
        attempt: AttemptId,
        parallelism: u32,
        restore: &SubtaskRestore,
        storage: &dyn Storage,
        shared: &mut Shared,
    ) -> Option<Self> {
        let index = attempt.subtask.index;
        let mut counter = Self {
            link: TaskLink::new(attempt),
            index: index as usize,
            range: key_group::range_of(index, parallelism, MAX_PARALLELISM),
            counts: BTreeMap::new(),
            changed: Vec::new(),
            changing: BTreeSet::new(),
            uploads: BTreeMap::new(),
            confirmed: None,
            rows: Vec::new(),
            prepared: Vec::new(),
            alignment: None,
            end_of_data: BTreeSet::new(),
            ended: BTreeSet::new(),
            is_freed: false,
            last_barrier: CheckpointId(0),
        };
        for operator in &restore.operators {
            for handle in &operator.keyed {
                counter.load(handle, storage)?;
            }
            // Unchanged key groups: go on from those files.
            if let [handle] = operator.keyed.as_slice()
                && handle.range == counter.range
                && handle.files().all(|file| file.scope == FileScope::Shared)
            {
                counter.confirmed = Some((CheckpointId(0), handle.clone()));
            }
            for item in operator.lists.values().flatten() {
                let transaction: Transaction = serde_json::from_slice(item).expect("written by snapshot");
                if shared.omission != Omission::RecommitOnRestore {
                    let committed = shared.outside.commit(&transaction.name, &transaction.rows);
                    shared.check(committed);
                }
            }
        }
        Some(counter)
    }

    fn load(&mut self, handle: &KeyedHandle, storage: &dyn Storage) -> Option<()> {
        for file in handle.files() {
            let content = storage.get(&file.path).ok()?;
            let counts: BTreeMap<u32, u32> = serde_json::from_slice(&content).expect("written by upload");
            self.counts.extend(counts.into_iter().filter(|(key, _)| handle.range.contains(group_of(*key))));
        }
        Some(())
    }

    pub(crate) fn step(&mut self, dataflow: &mut Dataflow, storage: &dyn Storage, shared: &mut Shared) {
        if let Some(message) = self.link.mailbox.pop_front() {
            self.on(message, storage, shared);
            return;
        }
        if self.is_freed && self.ended.len() == dataflow.sources() {
            self.link.end(TaskState::Finished);
            return;
        }
        let blocked = |source: &usize| self.alignment.as_ref().is_some_and(|(_, arrived)| arrived.contains(source));
        let readable: Vec<usize> =
            (0..dataflow.sources()).filter(|s| !blocked(s) && dataflow.has_element(*s, self.index)).collect();
        if readable.is_empty() {
            return;
        }
        let source = readable[shared.rng.random_range(0..readable.len())];
        let Some(element) = dataflow.receive(source, self.index) else { return };
        self.take(source, element, dataflow.sources(), storage, shared);
    }

    fn take(&mut self, source: usize, element: Element, sources: usize, storage: &dyn Storage, shared: &mut Shared) {
        match element {
            Element::Record { split, position, key } => {
                let count = self.counts.entry(key).or_default();
                *count += 1;
                self.rows.push(Row { split, position, key, count: *count });
                self.changing.insert(key);
            }
            Element::Barrier(barrier) => {
                // A newer barrier ends an older alignment (R4); an older one is passed over.
                let current = self.alignment.as_ref().map_or(self.last_barrier, |(current, _)| current.id);
                if barrier.id > current {
                    if let Some((older, _)) = self.alignment.take() {
                        let reason = DeclineReason::Subsumed { by: barrier.id };
                        self.link.report(TaskReport::Decline { id: older.id, reason });
                    }
                    self.alignment = Some((barrier, BTreeSet::from([source])));
                } else if let Some((current, arrived)) = &mut self.alignment
                    && current.id == barrier.id
                {
                    arrived.insert(source);
                }
            }
            Element::EndOfData => {
                self.end_of_data.insert(source);
                if self.end_of_data.len() == sources {
                    self.link.await_final_checkpoint();
                }
            }
            Element::EndOfPartition => {
                self.ended.insert(source);
            }
        }
        // An ended channel counts as one whose barrier came (R5).
        let complete =
            |arrived: &BTreeSet<usize>| (0..sources).all(|s| arrived.contains(&s) || self.ended.contains(&s));
        if self.alignment.as_ref().is_some_and(|(_, arrived)| complete(arrived))
            && let Some((barrier, _)) = self.alignment.take()
        {
            self.cut(&barrier, storage, shared);
        }
    }

    fn on(&mut self, message: ToTask, storage: &dyn Storage, shared: &mut Shared) {
        match message {
            ToTask::TriggerCheckpoint(barrier) if barrier.id > self.last_barrier => self.cut(&barrier, storage, shared),
            ToTask::TriggerCheckpoint(_) | ToTask::Coordinator(_) => {}
            ToTask::NotifyComplete { id, .. } => self.completed(id, shared),
            ToTask::NotifyAborted { id, .. } => {
                self.link.aborted(id);
                if self.alignment.as_ref().is_some_and(|(barrier, _)| barrier.id == id) {
                    self.alignment = None;
                    self.last_barrier = self.last_barrier.max(id);
                }
            }
            ToTask::Cancel => self.link.end(TaskState::Cancelled),
        }
    }

    fn completed(&mut self, id: CheckpointId, shared: &mut Shared) {
        let is_due = |transaction: &Transaction| match shared.omission {
            Omission::CommitAllBelow => transaction.id == id,
            _ => transaction.id <= id,
        };
        let (due, later): (Vec<_>, Vec<_>) = self.prepared.drain(..).partition(is_due);
        self.prepared = later;
        for transaction in due {
            let committed = shared.outside.commit(&transaction.name, &transaction.rows);
            shared.check(committed);
        }
        let newer = self.confirmed.as_ref().is_none_or(|(confirmed, _)| *confirmed < id);
        if let Some(handle) = self.uploads.get(&id).filter(|_| newer) {
            self.confirmed = Some((id, handle.clone()));
            self.changed.retain(|(cut, _)| *cut > id);
        }
        self.is_freed |= self.link.is_freed_by(id);
    }

    fn cut(&mut self, barrier: &Barrier, storage: &dyn Storage, shared: &mut Shared) {
        let id = barrier.id;
        self.last_barrier = id;
        self.link.cut(id);
        if barrier.kind.is_stop() {
            self.link.stop_at(id);
        }
        if !self.rows.is_empty() {
            let name = format!("{}-{id}", self.link.attempt);
            self.prepared.push(Transaction { id, name, rows: std::mem::take(&mut self.rows) });
        }
        self.changed.push((id, std::mem::take(&mut self.changing)));
        let keyed = match self.upload(barrier, storage, shared) {
            Ok(keyed) => keyed,
            Err(error) => {
                let reason = DeclineReason::Failed(error.into());
                self.link.report(TaskReport::Decline { id, reason });
                return;
            }
        };
        if !barrier.kind.is_savepoint() {
            self.uploads.insert(id, keyed.clone());
        }
        let items = self.prepared.iter().map(|t| serde_json::to_vec(t).expect("a transaction is JSON")).collect();
        let lists = BTreeMap::from([("committables".to_owned(), ListState { mode: ListMode::Split, items })]);
        let operators = vec![
            OperatorSnapshot { operator: COUNTER, keyed: Some(keyed), lists: BTreeMap::new() },
            OperatorSnapshot { operator: SINK, keyed: None, lists },
        ];
        let snapshot = SubtaskSnapshot { operators, finished: false };
        self.link.report(TaskReport::Ack { id, snapshot, metrics: CheckpointMetrics::default() });
    }

    /// One delta over the confirmed files, or a base of everything.
    fn upload(&self, barrier: &Barrier, storage: &dyn Storage, shared: &mut Shared) -> StorageResult<KeyedHandle> {
        let confirmed = self.confirmed.as_ref().filter(|(_, h)| !barrier.full && h.deltas.len() < DELTAS_PER_BASE);
        if let Some((_, handle)) = confirmed {
            let changed: BTreeSet<u32> = self.changed.iter().flat_map(|(_, keys)| keys.iter().copied()).collect();
            let counts = self.counts.iter().filter(|(key, _)| changed.contains(key)).map(|(k, c)| (*k, *c)).collect();
            let mut handle = handle.clone();
            handle.deltas.push(self.write(barrier, &counts, storage, shared)?);
            return Ok(handle);
        }
        let file = self.write(barrier, &self.counts, storage, shared)?;
        let base = BaseFile {
            file,
            level: 0,
            smallest: String::new(),
            largest: String::new(),
            smallest_seq: 0,
            largest_seq: 0,
            visible: self.range,
        };
        let table = TableHandle {
            name: "counts".into(),
            alias: String::new(),
            schema: TableSchema::default(),
            base: vec![base],
            rows: self.counts.len() as u64,
        };
        Ok(KeyedHandle { range: self.range, format: StateFormat::Columns, tables: vec![table], deltas: Vec::new() })
    }

    fn write(
        &self,
        barrier: &Barrier,
        counts: &BTreeMap<u32, u32>,
        storage: &dyn Storage,
        shared: &mut Shared,
    ) -> StorageResult<FileRef> {
        let bytes = serde_json::to_vec(counts).expect("numbers are JSON");
        let (folder, scope) = match barrier.kind.is_savepoint() {
            true => (barrier.target.as_str(), FileScope::Private),
            false => ("shared", FileScope::Shared),
        };
        // Unique for all time, whoever writes (R22).
        let path = format!("{folder}/{:016x}", shared.rng.random::<u64>());
        let file = FileRef { path, size: bytes.len() as u64, checksum: key_group::hash(&bytes), scope };
        let _ = storage.put(&file.path, bytes.into(), PutMode::Create)?;
        Ok(file)
    }
}
