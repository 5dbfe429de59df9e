//! The checkpoint coordinator: from a wish for a snapshot to its record in the log (runtime-rules.md §3).
//!
//! ```text
//!  request ─► queue ─► id ─► cut coordinators ─► trigger tasks ─► all acknowledged ─► manifest ─► log ─► notify
//!                      └──────────── may be aborted ────────────┘ └─ only the store's answer decides ─┘
//! ```
//! Here: state and dispatch. `trigger` has the left half, `complete` the right one, `abort` the ways out.

mod abort;
mod complete;
mod failures;
mod pending;
mod queue;
mod tasks;
mod trigger;

use std::collections::{BTreeMap, BTreeSet};

use failures::FailureCounter;
use pending::Pending;
use queue::RequestQueue;
use streamkeeper_checkpoint::{CompletedCheckpoint, JobState, SharedRegistry};
use streamkeeper_protocol::{DeclineReason, FromTask, TaskReport, TaskState};
use streamkeeper_types::{AttemptId, CheckpointId, Code, Error, FileRef, Generation, Millis, Result};
pub use tasks::{TaskPhase, Tasks};

use super::{
    CheckpointHistory, CheckpointOptions, CheckpointRequest, CheckpointStatistics, Command, Event, JobTopology,
    Restored, Timer, options::millis,
};
use abort::Reason;

/// What a reign takes over from the earlier ones.
#[derive(Debug, Clone, Default)]
pub struct Inherited {
    pub state: JobState,
    /// Files of every snapshot in `state`, discards included as far as their manifests can be read.
    pub files: Vec<(CheckpointId, Vec<FileRef>)>,
}

/// Pure state machine of all snapshots of one job in one reign.
#[derive(Debug)]
pub struct CheckpointCoordinator {
    generation: Generation,
    options: CheckpointOptions,
    /// Of the newest deployment.
    topology: JobTopology,
    /// Delay of the first periodic trigger after a deployment, in milliseconds.
    first_delay: Millis,
    tasks: Tasks,
    queue: RequestQueue,
    /// The request whose id is being taken from the log.
    numbering: Option<CheckpointRequest>,
    pending: BTreeMap<CheckpointId, Pending>,
    /// What the log says, as far as we were told.
    state: JobState,
    registry: SharedRegistry,
    /// Private files of completed checkpoints, for when they are replaced.
    private_files: BTreeMap<CheckpointId, Vec<String>>,
    /// Replaced ones whose deletion is under way, and those whose files are gone.
    deleting: BTreeSet<CheckpointId>,
    collected: Vec<CheckpointId>,
    /// Ids of this reign that will not complete; what a late acknowledgement of one brings is removed (R26).
    aborted: BTreeSet<CheckpointId>,
    failures: FailureCounter,
    history: CheckpointHistory,
    /// The next checkpoint must refer to no file of a snapshot that is not ours (R28).
    must_be_full: bool,
    last_completion: Option<Millis>,
    /// The stop savepoint after which the tasks end.
    stopped_by: Option<CompletedCheckpoint>,
    /// Nothing is triggered any more.
    shut: bool,
    /// Why the job cannot go on as it is; taken by the job.
    failure: Option<Error>,
    commands: Vec<Command>,
}

impl CheckpointCoordinator {
    /// `first_delay` is [`CheckpointOptions::first_delay`], whose random part the caller rolls.
    ///
    /// # Errors
    /// Two inherited snapshots contradict each other.
    pub fn new(
        generation: Generation,
        options: CheckpointOptions,
        inherited: Inherited,
        first_delay: Millis,
    ) -> Result<Self> {
        let mut registry = SharedRegistry::default();
        let mut private_files = BTreeMap::new();
        for (id, files) in &inherited.files {
            registry.register(*id, files)?;
            private_files.insert(*id, pending::private_files(files.iter()));
        }
        Ok(Self {
            generation,
            queue: RequestQueue::new(options.max_queued),
            failures: FailureCounter::new(options.tolerable_failures),
            history: CheckpointHistory::new(options.history),
            options,
            topology: JobTopology::default(),
            first_delay,
            tasks: Tasks::default(),
            numbering: None,
            pending: BTreeMap::new(),
            state: inherited.state,
            registry,
            private_files,
            deleting: BTreeSet::new(),
            collected: Vec::new(),
            aborted: BTreeSet::new(),
            must_be_full: false,
            last_completion: None,
            stopped_by: None,
            shut: false,
            failure: None,
            commands: Vec::new(),
        })
    }

    /// Takes in an event; events that do not concern snapshots change nothing.
    #[must_use]
    pub fn on(&mut self, event: Event, now: Millis) -> Vec<Command> {
        match event {
            Event::Deployed { attempts, topology, restored } => {
                self.topology = *topology;
                self.deployed(&attempts, *restored, now);
            }
            Event::FromTask(report) => self.on_report(report, now),
            Event::TimerFired(Timer::Periodic) => self.on_periodic(now),
            Event::TimerFired(Timer::Timeout(id)) => self.abort(id, Reason::Timeout, now),
            Event::Requested(request) => self.request(request),
            Event::IdAllocated(id) => self.numbered(id, now),
            Event::IdFailed(error) => self.not_numbered(error),
            Event::CoordinatorCut { id, operator, state: Ok(bytes) } => self.coordinator_cut(id, operator, bytes),
            Event::CoordinatorCut { id, state: Err(error), .. } => self.abort(id, Reason::Failed(error), now),
            Event::TriggerFailed { id, error, .. } => self.abort(id, Reason::Failed(error), now),
            Event::MetadataStored { id, outcome } => self.metadata_stored(id, outcome, now),
            Event::Published { id, outcome } => self.published(id, outcome, now),
            Event::Deleted { discard } => self.deleted(discard),
            Event::LeadershipLost => self.shut_down(),
            Event::TaskLost { attempt, error } => {
                self.tasks.report(attempt, &TaskState::Failed(error));
            }
            Event::Start
            | Event::DeployFailed(_)
            | Event::TimerFired(Timer::Restart | Timer::Slots)
            | Event::Slots(_)
            | Event::Rescale(_)
            | Event::ResultPublished { .. }
            | Event::Cancel => {}
        }
        self.advance(now);
        std::mem::take(&mut self.commands)
    }

    /// The tasks are being stopped: what can be aborted is. Periodic triggers come back with the next deployment (R34).
    #[must_use]
    pub fn stop_tasks(&mut self, cause: &Error, now: Millis) -> Vec<Command> {
        self.numbering = None;
        for id in self.abortable() {
            self.abort(id, Reason::TasksStopped(cause.clone()), now);
        }
        for request in self.queue.drain().collect::<Vec<_>>() {
            self.refuse(&request, &format!("the job restarts: {}", cause.cause));
        }
        self.tasks.deployed(&[]);
        self.failure = None;
        self.commands.push(Command::CancelTimer { timer: Timer::Periodic });
        std::mem::take(&mut self.commands)
    }

    /// Whether a checkpoint's fate is in the hands of storage: what to restore from is not known before.
    #[must_use]
    pub fn is_storing(&self) -> bool {
        use pending::Stage::{Publishing, WritingMetadata};
        self.pending.values().any(|pending| matches!(pending.stage, WritingMetadata | Publishing))
    }

    /// Whether a savepoint is under way.
    #[must_use]
    pub fn is_taking_savepoint(&self) -> bool {
        self.pending.values().any(|pending| pending.barrier.kind.is_savepoint())
    }

    /// Whether a snapshot is being taken into this folder.
    #[must_use]
    pub fn is_writing_to(&self, folder: &str) -> bool {
        self.pending.values().any(|pending| pending.barrier.target == folder)
    }

    /// Checkpoints under way, lowest id first. One in doubt is in the history.
    pub fn in_progress(&self) -> impl Iterator<Item = &CheckpointStatistics> {
        let is_open = |pending: &&Pending| pending.stage != pending::Stage::InDoubt;
        self.pending.values().filter(is_open).map(|pending| &pending.statistics)
    }

    /// The job cannot go on as it is, because of its checkpoints.
    pub fn take_failure(&mut self) -> Option<Error> {
        self.failure.take()
    }

    #[must_use]
    pub fn tasks(&self) -> &Tasks {
        &self.tasks
    }

    #[must_use]
    pub fn history(&self) -> &CheckpointHistory {
        &self.history
    }

    /// What the log says, as far as it was told.
    #[must_use]
    pub fn state(&self) -> &JobState {
        &self.state
    }

    /// The stop savepoint that completed, after which the tasks end.
    #[must_use]
    pub fn stopped_by(&self) -> Option<&CompletedCheckpoint> {
        self.stopped_by.as_ref()
    }

    fn deployed(&mut self, attempts: &[AttemptId], restored: Restored, now: Millis) {
        self.tasks.deployed(attempts);
        self.failures.reset();
        self.stopped_by = None;
        self.must_be_full |= !restored.not_claimed.is_empty();
        self.registry.not_claimed(&restored.not_claimed);
        // The log was settled before the deployment, so what was in doubt is in its state or nowhere.
        for pending in std::mem::take(&mut self.pending).into_values() {
            if restored.state.completed.iter().any(|completed| completed.id == pending.id()) {
                self.private_files.insert(pending.id(), pending.private_files());
            }
        }
        self.state = restored.state;
        self.collect();
        if let Some(interval) = self.options.interval {
            let delay = self.first_delay.min(millis(interval));
            self.arm(Timer::Periodic, now.saturating_add(delay));
        }
    }

    fn on_report(&mut self, from: FromTask, now: Millis) {
        let FromTask { attempt, report } = from;
        if attempt.generation != self.generation {
            return;
        }
        match report {
            TaskReport::State(state) => {
                if self.tasks.report(attempt, &state) == Some(TaskPhase::Finished) {
                    self.abort_without(attempt, now);
                }
            }
            TaskReport::Ack { id, snapshot, metrics } => self.acknowledge(attempt, id, snapshot, &metrics, now),
            TaskReport::Decline { id, reason } => {
                let is_expected = |p: &Pending| p.expected.get(&attempt.subtask) == Some(&attempt);
                if self.pending.get(&id).is_some_and(is_expected) {
                    self.abort(id, decline(reason, attempt), now);
                }
            }
            TaskReport::Coordinator(_) | TaskReport::Metrics(_) => {}
        }
    }

    fn shut_down(&mut self) {
        self.shut = true;
        self.numbering = None;
        for request in self.queue.drain().collect::<Vec<_>>() {
            self.refuse(&request, "another process takes the job over");
        }
    }

    fn arm(&mut self, timer: Timer, at: Millis) {
        self.commands.push(Command::ArmTimer { timer, at });
    }

    /// Tells whoever asked that there will be no snapshot. The engine's own wishes end silently.
    fn refuse(&mut self, request: &CheckpointRequest, why: &str) {
        let Some(id) = request.request else { return };
        let error = Error::new(Code::SavepointFailed, format!("the snapshot was not taken: {why}"))
            .way_out("ask again once the job runs");
        self.commands.push(Command::Answer { request: id, result: Err(error) });
    }

    fn latest_completed(&self) -> Option<CheckpointId> {
        self.state.completed.iter().filter(|c| c.kind.is_recovery_point()).map(|c| c.id).max()
    }
}

fn decline(reason: DeclineReason, attempt: AttemptId) -> Reason {
    match reason {
        DeclineReason::Subsumed { by } => Reason::NotNow(format!("{attempt} saw checkpoint {by} first")),
        DeclineReason::NotReady => Reason::NotNow(format!("{attempt} was not running")),
        DeclineReason::Failed(error) => Reason::Failed(error.at(attempt.to_string())),
    }
}
