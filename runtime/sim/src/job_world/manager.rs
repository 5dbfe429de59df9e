//! One JobManager process with its tasks: executes the engine's commands over faulty storage, with late answers.

mod deployment;
mod log_access;

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use rand::Rng;
use streamkeeper_checkpoint::{
    Inventory, JobResult, JobState, StartFrom, files,
    log::{JobLog, RetryPolicy},
    recovery,
};
use streamkeeper_jobmanager::engine::{
    Bounds, CheckpointOptions, CheckpointRequest, Command, Event, Inherited, Job, JobEnd, JobTopology, Origin,
    RequestId, Scheduler, SchedulerOptions, Sharing, Stored, Timer,
    failover::{ExponentialDelay, RestartStrategy},
};
use streamkeeper_protocol::{CheckpointKind, FromTask, SnapshotFormat, TaskReport, ToTask};
use streamkeeper_storage::{Faults, FaultyStorage, Storage, StorageError};
use streamkeeper_types::{AttemptId, CheckpointId, Code, Error, FileScope, Millis};

use crate::{
    Omission,
    shared::Shared,
    tasks::{
        SplitCoordinator,
        graph::{self, SOURCE, topology},
    },
};
use deployment::Deployment;

/// The most slots that there are.
const SLOTS: u32 = 3;

pub(super) struct Manager {
    job: Job,
    log: JobLog,
    storage: Arc<FaultyStorage>,
    /// Subtasks of the source; the counters follow the scheduler.
    sources: u32,
    topology: JobTopology,
    /// Answers and reports on their way, with the time of their arrival.
    inbox: Vec<(Millis, Event)>,
    timers: BTreeMap<Timer, Millis>,
    deletes: Vec<(Option<CheckpointId>, Vec<String>)>,
    splits: SplitCoordinator,
    deployment: Deployment,
    /// Deployments so far.
    number: u32,
    requests: u64,
    end: Option<JobEnd>,
}

impl Manager {
    /// Begins a reign. `None` if storage fails too often or another reign is at work.
    pub(super) fn start(shared: &mut Shared, instance: u64) -> Option<Self> {
        let storage = FaultyStorage::new(Arc::new(shared.storage.clone()), shared.faults, shared.rng.random());
        let storage = Arc::new(storage);
        let retry = RetryPolicy { attempts: 3, delay: Duration::ZERO };
        let (log, listed) = JobLog::open(Arc::clone(&storage) as _, 1, instance.to_string(), retry).ok()?;
        shared.reigns.began(log.generation());
        let inherited = inherit(&*storage, log.state(), &listed)?;
        let sources = shared.rng.random_range(1..=2);
        let scheduler =
            Scheduler::new(scheduler_options(), Bounds { least: 1, target: shared.rng.random_range(1..=SLOTS) });
        let restart = RestartStrategy::ExponentialDelay(ExponentialDelay {
            max: Duration::from_millis(200),
            ..ExponentialDelay::default()
        });
        let seed = shared.rng.random();
        let job = Job::new(log.generation(), options(), restart, scheduler, inherited, seed);
        let job = match job {
            Ok(job) => job,
            Err(error) => {
                shared.check(Err(error.to_string()));
                return None;
            }
        };
        let mut manager = Self {
            job,
            log,
            storage,
            sources,
            topology: JobTopology::default(),
            inbox: Vec::new(),
            timers: BTreeMap::new(),
            deletes: Vec::new(),
            splits: SplitCoordinator::fresh(),
            deployment: Deployment::default(),
            number: 0,
            requests: 0,
            end: None,
        };
        let slots = shared.rng.random_range(0..=SLOTS);
        manager.on(Event::Slots(slots), shared);
        manager.on(Event::Start, shared);
        Some(manager)
    }

    pub(super) fn heal(&mut self, shared: &mut Shared) {
        self.storage.set_faults(Faults::NONE);
        self.on(Event::Slots(SLOTS), shared);
    }

    /// TaskManagers come and go; their tasks are lost one by one, as mishaps.
    pub(super) fn change_slots(&mut self, shared: &mut Shared) {
        let slots = shared.rng.random_range(0..=SLOTS);
        self.on(Event::Slots(slots), shared);
    }

    pub(super) fn rescale(&mut self, shared: &mut Shared) {
        let target = shared.rng.random_range(1..=SLOTS);
        self.on(Event::Rescale(Bounds { least: 1, target }), shared);
    }

    pub(super) fn end(&self) -> Option<JobEnd> {
        self.end.clone()
    }

    pub(super) fn log_state(&self) -> &JobState {
        self.log.state()
    }

    pub(super) fn is_ended_in_log(&self) -> bool {
        matches!(self.log.state().result, Some(JobResult::Finished { .. }))
    }

    pub(super) fn describe(&self, now: Millis) -> String {
        let (phase, failure) = (self.job.phase(), self.job.last_failure());
        let tasks = self.job.coordinator().tasks();
        format!("{phase:?}; last failure {failure:?}; {tasks:?}; timers {:?} at {now}", self.timers)
    }

    pub(super) fn request_savepoint(&mut self, shared: &mut Shared, kind: CheckpointKind) {
        self.requests += 1;
        let request = CheckpointRequest {
            request: Some(RequestId(self.requests)),
            origin: Origin::Savepoint,
            kind,
            format: SnapshotFormat::Native,
            target: Some(format!("savepoints/{:016x}", shared.rng.random::<u64>())),
            sharing: Sharing::Full,
        };
        self.on(Event::Requested(request), shared);
    }

    /// One thing happens: a timer, an arrival, a deletion, a mishap, or a step of some task.
    pub(super) fn step(&mut self, shared: &mut Shared) {
        let due = self.timers.iter().find(|(_, at)| **at <= shared.now).map(|(timer, _)| *timer);
        if let Some(timer) = due {
            self.timers.remove(&timer);
            return self.on(Event::TimerFired(timer), shared);
        }
        if let Some(at) = self.inbox.iter().position(|(arrival, _)| *arrival <= shared.now) {
            let (_, event) = self.inbox.remove(at);
            return self.arrived(event, shared);
        }
        if shared.rng.random_bool(0.2) && self.delete_one() {
            return;
        }
        if shared.mishap(0.002)
            && let Some(event) = self.deployment.mishap(shared)
        {
            return self.on(event, shared);
        }
        for report in self.deployment.step(&*self.storage, shared) {
            // In order for each task: a report never overtakes an earlier one of the same task.
            let earliest = self.inbox.iter().filter(|(_, e)| is_from(e, report.attempt)).map(|(at, _)| *at).max();
            let arrival = (shared.now + shared.rng.random_range(0..20)).max(earliest.unwrap_or(0));
            self.inbox.push((arrival, Event::FromTask(report)));
        }
    }

    fn arrived(&mut self, mut event: Event, shared: &mut Shared) {
        if shared.omission == Omission::Registration {
            make_private(&mut event);
        }
        if let Event::FromTask(FromTask { attempt, report: TaskReport::Coordinator(_) }) = &event {
            let answer = self.deployment.is_current(*attempt).then(|| self.splits.on_request(*attempt)).flatten();
            if let Some((attempt, message)) = answer {
                self.deployment.send(attempt, message, shared);
            }
            return;
        }
        // Acknowledgements come twice now and then.
        if matches!(event, Event::FromTask(FromTask { report: TaskReport::Ack { .. }, .. })) && shared.mishap(0.05) {
            self.inbox.push((shared.now + shared.rng.random_range(0..500), event.clone()));
        }
        self.on(event, shared);
    }

    fn on(&mut self, event: Event, shared: &mut Shared) {
        for command in self.job.on(event, shared.now) {
            self.execute(command, shared);
        }
    }

    fn answer_later(&mut self, event: Event, shared: &mut Shared) {
        self.inbox.push((shared.now + shared.rng.random_range(0..15), event));
    }

    fn execute(&mut self, command: Command, shared: &mut Shared) {
        match command {
            Command::AllocateId => self.allocate_id(shared),
            Command::HoldEvents { .. } if shared.omission == Omission::HoldingEvents => {}
            Command::HoldEvents { .. } => self.splits.hold(),
            Command::CutCoordinator { id, operator } => {
                let state = Ok(self.splits.snapshot());
                self.answer_later(Event::CoordinatorCut { id, operator, state }, shared);
            }
            Command::ReleaseEvents { .. } => {
                for (attempt, message) in self.splits.release() {
                    self.deployment.send(attempt, message, shared);
                }
            }
            Command::SendToTask { attempt, message } => self.deployment.send(attempt, message, shared),
            Command::WriteMetadata { id, path, manifest } => {
                let outcome = stored(files::write_manifest(&*self.storage, &path, manifest));
                if outcome == Stored::Done && shared.omission == Omission::PublishBeforeNotify {
                    self.notify_all(id, shared);
                }
                self.answer_later(Event::MetadataStored { id, outcome }, shared);
            }
            Command::Publish { completion } => self.publish(*completion, shared),
            Command::Delete { discard, files } => self.deletes.push((discard, files)),
            Command::ArmTimer { timer, at } => {
                self.timers.insert(timer, at);
            }
            Command::CancelTimer { timer } => {
                self.timers.remove(&timer);
            }
            Command::Answer { .. } | Command::RecordStatistics(_) => {}
            Command::Deploy { parallelism } => {
                self.topology = topology(self.sources, parallelism);
                self.deploy(shared);
            }
            Command::CheckReign => self.check_reign(shared),
            Command::PublishResult(result) => self.publish_result(result, shared),
            Command::End(end) => self.end = Some(end),
        }
    }

    fn notify_all(&mut self, id: CheckpointId, shared: &mut Shared) {
        for attempt in self.deployment.attempts() {
            self.deployment.send(attempt, ToTask::NotifyComplete { id, last_subsumed: None }, shared);
        }
    }

    /// Removes one file of what is to be deleted; a failure is tried again.
    fn delete_one(&mut self) -> bool {
        let Some((discard, files)) = self.deletes.first_mut() else { return false };
        if let Some(path) = files.first() {
            if self.storage.delete(path).is_ok() {
                files.remove(0);
            }
            return true;
        }
        let discard = *discard;
        self.deletes.remove(0);
        if let Some(discard) = discard {
            self.inbox.push((0, Event::Deleted { discard }));
        }
        true
    }

    /// Stops the old tasks' world and starts a new one from the log.
    fn deploy(&mut self, shared: &mut Shared) {
        match self.try_deploy(shared) {
            // Before any report of the new tasks.
            Ok(event) => self.inbox.insert(0, (0, event)),
            Err(error) => {
                // A zombie's snapshot may be gone for good, and it appends nothing by which it would learn why.
                self.check_reign(shared);
                self.answer_later(Event::DeployFailed(error), shared);
            }
        }
    }

    fn try_deploy(&mut self, shared: &mut Shared) -> Result<Event, Error> {
        if shared.omission != Omission::NewestCheckpoint {
            self.settle(shared)?;
        }
        let mut state = self.log.state().clone();
        if shared.omission == Omission::NewestCheckpoint {
            state.completed.pop();
        }
        let manifest = match recovery::choose(&state) {
            StartFrom::RecoveryPoint(point) => Some(files::read_completed(&*self.storage, &point)?),
            StartFrom::Empty => None,
            other => return Err(Error::internal(format!("no way to start from {other:?}"))),
        };
        let plan = graph::plan(manifest.as_ref(), &self.topology)?;
        let attempts = graph::attempts(&self.topology, self.log.generation(), self.number);
        self.number += 1;
        self.splits = match plan.coordinators.get(&SOURCE) {
            Some(bytes) => SplitCoordinator::restore(bytes),
            None => SplitCoordinator::fresh(),
        };
        self.deployment = Deployment::new(&attempts, &plan, &self.topology, &*self.storage, shared)?;
        let restored = Box::new(streamkeeper_jobmanager::engine::Restored {
            state: self.log.state().clone(),
            not_claimed: Vec::new(),
        });
        let topology = Box::new(self.topology.clone());
        Ok(Event::Deployed { attempts, topology, restored })
    }
}

/// What earlier reigns left, swept.
fn inherit(storage: &dyn Storage, state: &JobState, listed: &[String]) -> Option<Inherited> {
    let inventory = Inventory::take(storage, state, listed).ok()?;
    for path in &inventory.orphans {
        // A leftover that stays is swept next time.
        let _ = storage.delete(path);
    }
    Some(Inherited { state: state.clone(), files: inventory.files })
}

/// Has every file of an acknowledgement belong to its checkpoint alone.
fn make_private(event: &mut Event) {
    let Event::FromTask(FromTask { report: TaskReport::Ack { snapshot, .. }, .. }) = event else { return };
    for handle in snapshot.operators.iter_mut().filter_map(|operator| operator.keyed.as_mut()) {
        let bases = handle.tables.iter_mut().flat_map(|table| &mut table.base).map(|base| &mut base.file);
        bases.chain(&mut handle.deltas).for_each(|file| file.scope = FileScope::Private);
    }
}

fn is_from(event: &Event, attempt: AttemptId) -> bool {
    matches!(event, Event::FromTask(report) if report.attempt == attempt)
}

fn stored<T>(result: Result<T, StorageError>) -> Stored {
    match result {
        Ok(_) => Stored::Done,
        Err(StorageError::Unknown(error)) => Stored::Unknown(error),
        Err(error) => Stored::Failed(error.into()),
    }
}

fn options() -> CheckpointOptions {
    CheckpointOptions {
        interval: Some(Duration::from_millis(120)),
        min_pause: Duration::from_millis(20),
        timeout: Duration::from_secs(1),
        retained: 1,
        ..CheckpointOptions::default()
    }
}

/// Waits that fit a run of a few seconds.
fn scheduler_options() -> SchedulerOptions {
    SchedulerOptions {
        slot_wait: Duration::from_millis(500),
        stabilization: Duration::from_millis(60),
        cooldown: Duration::from_millis(30),
        ..SchedulerOptions::default()
    }
}

pub(super) fn lost(what: &str) -> Error {
    Error::new(Code::Internal, format!("{what} (a mishap on purpose)"))
}
