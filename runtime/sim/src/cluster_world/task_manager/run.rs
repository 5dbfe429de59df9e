//! The tasks of one deployment on one TaskManager.

use std::collections::BTreeMap;

use rand::Rng;
use streamkeeper_checkpoint::restore::SubtaskRestore;
use streamkeeper_protocol::{FromTask, TaskReport, TaskState};
use streamkeeper_storage::Storage;
use streamkeeper_types::{AttemptId, Code, Error, SubtaskId, VertexId};

use crate::{
    cluster_world::{
        ProcessId,
        wire::{Frame, Part, RunId},
    },
    shared::Shared,
    tasks::{Counter, Dataflow, Source, TaskLink},
};

pub(super) struct Run {
    pub(super) id: RunId,
    /// Channels of the whole run; of those to elsewhere it holds what has not left yet.
    dataflow: Dataflow,
    parallelism: u32,
    sources: Vec<Source>,
    counters: Vec<Counter>,
    /// Reports of tasks that could not be started.
    failed: Vec<FromTask>,
    hosts: BTreeMap<SubtaskId, ProcessId>,
}

impl Run {
    pub(super) fn new(part: Part, storage: &dyn Storage, shared: &mut Shared) -> Self {
        let mut run = Self {
            id: part.run,
            dataflow: Dataflow::new(part.sources as usize, part.counters as usize),
            parallelism: part.counters,
            sources: Vec::new(),
            counters: Vec::new(),
            failed: Vec::new(),
            hosts: part.hosts,
        };
        for (attempt, restore) in part.tasks {
            run.start(attempt, &restore, storage, shared);
        }
        run
    }

    fn start(&mut self, attempt: AttemptId, restore: &SubtaskRestore, storage: &dyn Storage, shared: &mut Shared) {
        if attempt.subtask.vertex.0 == 0 {
            self.sources.push(Source::new(attempt, self.parallelism, restore));
        } else if let Some(counter) = Counter::new(attempt, self.parallelism, restore, storage, shared) {
            self.counters.push(counter);
        } else {
            let error = Error::new(Code::Storage, "a file of the snapshot cannot be read");
            self.failed.push(FromTask { attempt, report: TaskReport::State(TaskState::Failed(error)) });
        }
    }

    fn links(&self) -> impl Iterator<Item = &TaskLink> {
        self.sources.iter().map(|source| &source.link).chain(self.counters.iter().map(|counter| &counter.link))
    }

    fn links_mut(&mut self) -> impl Iterator<Item = &mut TaskLink> {
        let sources = self.sources.iter_mut().map(|source| &mut source.link);
        sources.chain(self.counters.iter_mut().map(|counter| &mut counter.link))
    }

    pub(super) fn link(&mut self, attempt: AttemptId) -> Option<&mut TaskLink> {
        self.links_mut().find(|link| link.attempt == attempt)
    }

    pub(super) fn attempts(&self) -> Vec<AttemptId> {
        self.links().map(|link| link.attempt).collect()
    }

    /// Attempts that have not ended.
    pub(super) fn live(&self) -> impl Iterator<Item = AttemptId> {
        self.links().filter(|link| !link.is_over()).map(|link| link.attempt)
    }

    pub(super) fn is_live(&self) -> bool {
        self.live().next().is_some()
    }

    /// The connection to this TaskManager is gone.
    pub(super) fn lose(&mut self, peer: ProcessId) {
        if !self.hosts.values().any(|host| *host == peer) {
            return;
        }
        for link in self.links_mut() {
            link.end(TaskState::Failed(Error::new(Code::ConnectionLost, format!("TaskManager {peer}"))));
        }
    }

    /// One task does one thing.
    pub(super) fn step(&mut self, storage: &dyn Storage, shared: &mut Shared) {
        let tasks = self.sources.len() + self.counters.len();
        if tasks == 0 {
            return;
        }
        let chosen = shared.rng.random_range(0..tasks);
        if let Some(source) = self.sources.get_mut(chosen) {
            if !source.link.is_over() {
                source.step(&mut self.dataflow);
            }
            return;
        }
        let counter = &mut self.counters[chosen - self.sources.len()];
        if !counter.link.is_over() {
            counter.step(&mut self.dataflow, storage, shared);
        }
    }

    /// Takes out what is for counters elsewhere.
    pub(super) fn leaving(&mut self, here: ProcessId) -> Vec<(ProcessId, Frame)> {
        let mut leaving = Vec::new();
        for source in &self.sources {
            let from = source.link.attempt;
            for index in 0..self.parallelism {
                let to = self.id.attempt(SubtaskId { vertex: VertexId(1), index });
                let Some(host) = self.hosts.get(&to.subtask).filter(|host| **host != here) else { continue };
                while let Some(element) = self.dataflow.receive(from.subtask.index as usize, index as usize) {
                    leaving.push((*host, Frame { from, to, element }));
                }
            }
        }
        leaving
    }

    pub(super) fn arrived(&mut self, frame: Frame) {
        let (from, to) = (frame.from.subtask.index as usize, frame.to.subtask.index);
        // What an omission lets in may be of another shape.
        if to < self.parallelism && from < self.dataflow.sources() {
            self.dataflow.send(from, to as usize, frame.element);
        }
    }

    pub(super) fn reports(&mut self) -> Vec<FromTask> {
        let mut reports = std::mem::take(&mut self.failed);
        reports.extend(self.links_mut().flat_map(|link| link.outbox.drain(..)));
        reports
    }
}
