//! The running attempts of one deployment, and the way from and to them.

use rand::Rng;
use streamkeeper_checkpoint::restore::{RestorePlan, SubtaskRestore};
use streamkeeper_jobmanager::engine::{Event, JobTopology};
use streamkeeper_protocol::{FromTask, TaskState, ToTask};
use streamkeeper_storage::Storage;
use streamkeeper_types::{AttemptId, Result};

use super::lost;
use crate::{
    shared::Shared,
    tasks::{Counter, Dataflow, Source, TaskLink},
};

/// Tasks and channels. A new deployment replaces all of it; what an old one still had to say goes with it.
#[derive(Default)]
pub(super) struct Deployment {
    dataflow: Dataflow,
    sources: Vec<Source>,
    counters: Vec<Counter>,
    /// Attempts that nobody can reach any more, though they run.
    unreachable: Vec<AttemptId>,
}

impl Deployment {
    /// # Errors
    /// A file of the snapshot cannot be read.
    pub(super) fn new(
        attempts: &[AttemptId],
        plan: &RestorePlan,
        topology: &JobTopology,
        storage: &dyn Storage,
        shared: &mut Shared,
    ) -> Result<Self> {
        let [sources, counters] = [0, 1].map(|vertex| topology.vertices[vertex].parallelism);
        let nothing = SubtaskRestore::default();
        let mut deployment = Self {
            dataflow: Dataflow::new(sources as usize, counters as usize),
            sources: Vec::new(),
            counters: Vec::new(),
            unreachable: Vec::new(),
        };
        for attempt in attempts {
            let restore = plan.subtasks.get(&attempt.subtask).unwrap_or(&nothing);
            if attempt.subtask.vertex.0 == 0 {
                deployment.sources.push(Source::new(*attempt, counters, restore));
                continue;
            }
            let counter = Counter::new(*attempt, counters, restore, storage, shared);
            deployment.counters.push(counter.ok_or_else(|| lost("a file of the snapshot cannot be read"))?);
        }
        Ok(deployment)
    }

    pub(super) fn attempts(&self) -> Vec<AttemptId> {
        self.links().map(|link| link.attempt).collect()
    }

    pub(super) fn is_current(&self, attempt: AttemptId) -> bool {
        self.links().any(|link| link.attempt == attempt)
    }

    fn links(&self) -> impl Iterator<Item = &TaskLink> {
        self.sources.iter().map(|source| &source.link).chain(self.counters.iter().map(|counter| &counter.link))
    }

    fn link(&mut self, attempt: AttemptId) -> Option<&mut TaskLink> {
        let sources = self.sources.iter_mut().map(|source| &mut source.link);
        let counters = self.counters.iter_mut().map(|counter| &mut counter.link);
        sources.chain(counters).find(|link| link.attempt == attempt)
    }

    /// Delivers a message; notifications may get lost, come twice, or overtake.
    pub(super) fn send(&mut self, attempt: AttemptId, message: ToTask, shared: &mut Shared) {
        if self.unreachable.contains(&attempt) {
            return;
        }
        let is_notification = matches!(message, ToTask::NotifyComplete { .. } | ToTask::NotifyAborted { .. });
        let (is_lost, is_doubled, overtakes) = match is_notification {
            true => (shared.mishap(0.1), shared.mishap(0.1), shared.mishap(0.1)),
            false => (false, false, false),
        };
        // What a stopped task waits for gets lost only with its connection, which is another mishap.
        let Some(link) = self.link(attempt).filter(|link| !is_lost || link.is_stopped) else { return };
        if is_doubled {
            link.mailbox.push_back(message.clone());
        }
        if overtakes {
            link.mailbox.push_front(message);
        } else {
            link.mailbox.push_back(message);
        }
    }

    /// A task fails, or cannot be reached any more while it goes on.
    pub(super) fn mishap(&mut self, shared: &mut Shared) -> Option<Event> {
        let attempts = self.attempts();
        let attempt = *attempts.get(shared.rng.random_range(0..attempts.len().max(1)))?;
        if shared.rng.random_bool(0.5) {
            self.unreachable.push(attempt);
            return Some(Event::TaskLost { attempt, error: lost("the connection is gone") });
        }
        self.link(attempt)?.end(TaskState::Failed(lost("the task fails")));
        None
    }

    /// One task does one thing; returns what it reports. An unreachable one's reports still arrive.
    pub(super) fn step(&mut self, storage: &dyn Storage, shared: &mut Shared) -> Vec<FromTask> {
        let tasks = self.sources.len() + self.counters.len();
        if tasks == 0 {
            return Vec::new();
        }
        let chosen = shared.rng.random_range(0..tasks);
        let link = match self.sources.get_mut(chosen) {
            Some(source) => {
                if !source.link.is_over() {
                    source.step(&mut self.dataflow);
                }
                &mut source.link
            }
            None => {
                let counter = &mut self.counters[chosen - self.sources.len()];
                if !counter.link.is_over() {
                    counter.step(&mut self.dataflow, storage, shared);
                }
                &mut counter.link
            }
        };
        link.outbox.drain(..).collect()
    }
}
