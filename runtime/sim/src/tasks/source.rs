//! A source task: reads its splits one record a step.

use std::collections::BTreeMap;

use streamkeeper_checkpoint::restore::SubtaskRestore;
use streamkeeper_protocol::{Barrier, CheckpointMetrics, CoordinatorEvent, TaskReport, TaskState, ToTask};
use streamkeeper_types::{
    AttemptId, KeyGroup, key_group,
    snapshot::{ListMode, ListState, OperatorSnapshot, SubtaskSnapshot},
};

use super::{
    KEYS, RECORDS_PER_SPLIT,
    dataflow::{Dataflow, Element},
    graph::{MAX_PARALLELISM, SOURCE},
    link::{Phase, TaskLink},
};

#[derive(Debug)]
pub(crate) struct Source {
    pub(crate) link: TaskLink,
    index: usize,
    counters: u32,
    /// Splits and the next position in each.
    splits: BTreeMap<u32, u32>,
    requested: bool,
    no_more: bool,
    last_barrier: u64,
}

impl Source {
    pub(crate) fn new(attempt: AttemptId, counters: u32, restore: &SubtaskRestore) -> Self {
        let items = restore.operators.iter().flat_map(|operator| operator.lists.values()).flatten();
        let splits =
            items.map(|item| serde_json::from_slice::<(u32, u32)>(item).expect("written by snapshot")).collect();
        let index = attempt.subtask.index as usize;
        let link = TaskLink::new(attempt);
        Self { link, index, counters, splits, requested: false, no_more: restore.finished, last_barrier: 0 }
    }

    pub(crate) fn step(&mut self, dataflow: &mut Dataflow) {
        if let Some(message) = self.link.mailbox.pop_front() {
            self.on(message, dataflow);
        } else if self.link.phase == Phase::Running && dataflow.has_room(self.index) {
            self.read(dataflow);
        }
    }

    fn read(&mut self, dataflow: &mut Dataflow) {
        if let Some((split, position)) = self.splits.iter().next().map(|(s, p)| (*s, *p)) {
            if position == RECORDS_PER_SPLIT {
                self.splits.remove(&split);
                return;
            }
            let key = (split * 5 + position) % KEYS;
            let counter = key_group::subtask_of(group_of(key), self.counters, MAX_PARALLELISM);
            dataflow.send(self.index, counter as usize, Element::Record { split, position, key });
            self.splits.insert(split, position + 1);
        } else if self.no_more {
            dataflow.broadcast(self.index, &Element::EndOfData);
            self.link.await_final_checkpoint();
        } else if !self.requested {
            self.requested = true;
            self.link.report(TaskReport::Coordinator(CoordinatorEvent { operator: SOURCE, payload: Vec::new() }));
        }
    }

    fn on(&mut self, message: ToTask, dataflow: &mut Dataflow) {
        match message {
            ToTask::TriggerCheckpoint(barrier) => self.cut(barrier, dataflow),
            ToTask::NotifyComplete { id, .. } if self.link.is_freed_by(id) => {
                dataflow.broadcast(self.index, &Element::EndOfPartition);
                self.link.end(TaskState::Finished);
            }
            ToTask::NotifyComplete { .. } => {}
            ToTask::NotifyAborted { id, .. } => self.link.aborted(id),
            ToTask::Coordinator(event) => {
                self.requested = false;
                match serde_json::from_slice::<Option<u32>>(&event.payload).expect("written by the coordinator") {
                    Some(split) => {
                        self.splits.insert(split, 0);
                    }
                    None => self.no_more = true,
                }
            }
            ToTask::Cancel => self.link.end(TaskState::Cancelled),
        }
    }

    fn cut(&mut self, barrier: Barrier, dataflow: &mut Dataflow) {
        if barrier.id.0 <= self.last_barrier {
            return;
        }
        self.last_barrier = barrier.id.0;
        self.link.cut(barrier.id);
        if barrier.kind.is_stop() {
            self.link.stop_at(barrier.id);
        }
        let items = self.splits.iter().map(|split| serde_json::to_vec(&split).expect("numbers are JSON")).collect();
        let lists = BTreeMap::from([("splits".to_owned(), ListState { mode: ListMode::Split, items })]);
        let operators = vec![OperatorSnapshot { operator: SOURCE, keyed: None, lists }];
        dataflow.broadcast(self.index, &Element::Barrier(barrier.clone()));
        let snapshot = SubtaskSnapshot { operators, finished: false };
        self.link.report(TaskReport::Ack { id: barrier.id, snapshot, metrics: CheckpointMetrics::default() });
    }
}

pub(crate) fn group_of(key: u32) -> KeyGroup {
    key_group::of_hash(key_group::hash(&key.to_be_bytes()), MAX_PARALLELISM)
}
