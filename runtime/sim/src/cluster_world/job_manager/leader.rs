//! A reign: executes the engine's commands one after the other, as the JobManager's own thread does. Storage takes its
//! time, and anything may happen meanwhile.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::Arc,
    time::Duration,
};

use rand::Rng;
use streamkeeper_checkpoint::{
    Inventory, JobState, StartFrom, files,
    log::{AppendError, JobLog, Record, RetryPolicy},
    recovery,
};
use streamkeeper_jobmanager::engine::{
    Bounds, Command, Event, Inherited, Job, JobEnd, Restored, Scheduler, Stored, Timer,
    failover::{ExponentialDelay, RestartStrategy},
};
use streamkeeper_protocol::{FromTask, TaskReport, ToTask};
use streamkeeper_storage::{FaultyStorage, Storage, StorageError};
use streamkeeper_types::{AttemptId, CheckpointId, Code, Error, Millis};

use super::members::Members;
use crate::{
    Omission,
    cluster_world::{
        ProcessId,
        environment::{Environment, Happening},
        options,
        wire::{Part, RunId, Wire},
    },
    tasks::{
        SplitCoordinator,
        graph::{self, SOURCE},
    },
};

/// What waits for the JobManager's own thread.
pub(super) enum Mail {
    Event(Box<Event>),
    /// TaskManagers came or went.
    Slots,
    Lost(AttemptId),
}

pub(super) struct Leader {
    id: ProcessId,
    pub(super) log: JobLog,
    job: Job,
    storage: Arc<FaultyStorage>,
    /// The most subtasks of the source.
    sources: u32,
    mail: VecDeque<Mail>,
    /// Of the event that is being worked on.
    commands: VecDeque<Command>,
    pub(super) answers: VecDeque<Event>,
    timers: BTreeMap<Timer, Millis>,
    /// When storage answers the first command.
    storing: Option<Millis>,
    removals: VecDeque<(Option<CheckpointId>, VecDeque<String>)>,
    splits: SplitCoordinator,
    run: RunId,
    end: Option<JobEnd>,
}

impl Leader {
    /// Begins a reign; `None` if storage fails too often, another reign is at work, or the job has ended.
    pub(super) fn start(
        id: ProcessId,
        storage: Arc<FaultyStorage>,
        instance: String,
        environment: &mut Environment,
    ) -> Option<Self> {
        let retry = RetryPolicy { attempts: 3, delay: Duration::ZERO };
        let (log, listed) = JobLog::open(Arc::clone(&storage) as _, 1, instance, retry).ok()?;
        let generation = log.generation();
        environment.note(|| format!("JobManager {id} leads as generation {generation}"));
        environment.shared.reigns.began(generation);
        environment.fenced.stands_on(generation, &environment.shared.storage, log.state());
        if log.state().result.is_some() {
            environment.is_finished = true;
            return None;
        }
        let inventory = Inventory::take(&*storage, log.state(), &listed).ok()?;
        let inherited = Inherited { state: log.state().clone(), files: inventory.files };
        let rng = &mut environment.shared.rng;
        let (sources, target, seed) = (rng.random_range(1..=2), rng.random_range(1..=3), rng.random());
        let bounds = Bounds { least: rng.random_range(1..=target.min(2)), target };
        let scheduler = Scheduler::new(options::scheduler(), bounds);
        let restart = RestartStrategy::ExponentialDelay(ExponentialDelay {
            max: Duration::from_millis(200),
            ..ExponentialDelay::default()
        });
        let job = Job::new(generation, options::checkpoints(), restart, scheduler, inherited, seed);
        let job = job.map_err(|error| environment.shared.check(Err(error.to_string()))).ok()?;
        // What earlier reigns left.
        let orphans = inventory.orphans.into();
        Some(Self {
            id,
            log,
            job,
            storage,
            sources,
            mail: [Mail::Slots, Mail::Event(Box::new(Event::Start))].into(),
            commands: VecDeque::new(),
            answers: VecDeque::new(),
            timers: BTreeMap::new(),
            storing: None,
            removals: [(None, orphans)].into(),
            splits: SplitCoordinator::fresh(),
            run: RunId { generation, number: 0 },
            end: None,
        })
    }

    pub(super) fn post(&mut self, mail: Mail) {
        self.mail.push_back(mail);
    }

    pub(super) fn describe(&self, now: Millis) -> String {
        let tasks = self.job.coordinator().tasks();
        let (phase, failure, storing) = (self.job.phase(), self.job.last_failure(), self.storing);
        let (id, bounds, timers) = (self.id, self.job.scheduler().bounds(), &self.timers);
        format!(
            "JobManager {id} at {now}: {phase:?}, {bounds:?}, storing until {storing:?}; {tasks:?}; {timers:?}; last failure {failure:?}"
        )
    }

    /// Works until it has to wait.
    pub(super) fn go_on(&mut self, members: &mut Members, environment: &mut Environment) -> Option<JobEnd> {
        while self.end.is_none() {
            let now = environment.clock(self.id);
            if let Some(command) = self.commands.front() {
                if self.waits_for_storage(takes_storage(command), now, environment) {
                    break;
                }
                let Some(command) = self.commands.pop_front() else { break };
                self.execute(command, members, environment);
                continue;
            }
            let Some(event) = self.next_event(members, now) else { break };
            let event = match event {
                Event::FromTask(report) => self.on_report(report, members, environment),
                event => Some(event),
            };
            if let Some(event) = event {
                self.commands.extend(self.job.on(event, now));
            }
        }
        self.remove_one(environment);
        self.end.take()
    }

    fn next_event(&mut self, members: &mut Members, now: Millis) -> Option<Event> {
        if let Some(answer) = self.answers.pop_front() {
            return Some(answer);
        }
        let due = self.timers.iter().find(|(_, at)| **at <= now).map(|(timer, _)| *timer);
        if let Some(timer) = due {
            self.timers.remove(&timer);
            return Some(Event::TimerFired(timer));
        }
        Some(match self.mail.pop_front()? {
            Mail::Event(event) => *event,
            Mail::Slots => Event::Slots(members.total_slots()),
            Mail::Lost(attempt) => {
                Event::TaskLost { attempt, error: Error::new(Code::TaskManagerLost, "its TaskManager is gone") }
            }
        })
    }

    /// Whether the first command has to wait; a call of storage takes effect at its end.
    fn waits_for_storage(&mut self, takes_storage: bool, now: Millis, environment: &mut Environment) -> bool {
        if !takes_storage {
            return false;
        }
        let until = *self.storing.get_or_insert_with(|| {
            let slowest = if environment.shared.mishap(0.05) { 150 } else { 4 };
            let until = now + environment.shared.rng.random_range(0..=slowest);
            environment.at_clock(until, self.id, Happening::Work);
            until
        });
        if now < until {
            return true;
        }
        self.storing = None;
        false
    }

    fn execute(&mut self, command: Command, members: &mut Members, environment: &mut Environment) {
        let omission = environment.shared.omission;
        match command {
            Command::AllocateId => {
                let answer = self.allocate_id(environment);
                self.answers.push_back(answer);
            }
            Command::HoldEvents { .. } => self.splits.hold(),
            Command::CutCoordinator { id, operator } => {
                let state = Ok(self.splits.snapshot());
                self.answers.push_back(Event::CoordinatorCut { id, operator, state });
            }
            Command::ReleaseEvents { .. } => {
                for (attempt, message) in self.splits.release() {
                    self.send(attempt, message, members, environment);
                }
            }
            Command::SendToTask { attempt, message } => self.send_to_task(attempt, message, members, environment),
            Command::WriteMetadata { id, path, manifest } => {
                let outcome = stored(files::write_manifest(&*self.storage, &path, manifest));
                if outcome == Stored::Done && omission == Omission::PublishBeforeNotify {
                    self.notify_all(id, members, environment);
                }
                self.answers.push_back(Event::MetadataStored { id, outcome });
            }
            Command::Publish { completion } => {
                let answer = self.publish(*completion, environment);
                self.answers.push_back(answer);
            }
            Command::Delete { discard, files } => self.removals.push_back((discard, files.into())),
            Command::ArmTimer { timer, at } => {
                self.timers.insert(timer, at);
                environment.at_clock(at, self.id, Happening::Work);
            }
            Command::CancelTimer { timer } => {
                self.timers.remove(&timer);
            }
            Command::Answer { .. } | Command::RecordStatistics(_) => {}
            Command::Deploy { parallelism } => {
                let answer = self.deploy(parallelism, members, environment);
                let answer = answer.unwrap_or_else(|error| self.not_deployed(error));
                self.answers.push_back(answer);
            }
            Command::CheckReign => {
                let checked = self.settle().and_then(|()| self.log.check_reign());
                if matches!(checked, Err(AppendError::Fenced { .. })) && omission != Omission::CheckingTheReign {
                    self.answers.push_back(Event::LeadershipLost);
                }
            }
            Command::PublishResult(result) => {
                let answer = self.publish_result(&Record::Result(result));
                self.answers.push_back(answer);
            }
            Command::End(end) => self.end = Some(end),
        }
    }

    /// Whether somebody runs the attempt.
    fn send(&self, attempt: AttemptId, message: ToTask, members: &Members, environment: &mut Environment) -> bool {
        let Some(connection) = members.route(attempt) else { return false };
        environment.send(connection, self.id, Wire::Command(attempt, message));
        true
    }

    fn send_to_task(&mut self, attempt: AttemptId, message: ToTask, members: &Members, environment: &mut Environment) {
        let trigger = match &message {
            ToTask::TriggerCheckpoint(barrier) => Some(barrier.id),
            _ => None,
        };
        let sent = self.send(attempt, message, members, environment);
        if let Some(id) = trigger.filter(|_| !sent) {
            let error = Error::internal(format!("{attempt} does not run anywhere"));
            self.answers.push_back(Event::TriggerFailed { id, attempt, error });
        }
    }

    fn notify_all(&self, id: CheckpointId, members: &Members, environment: &mut Environment) {
        use streamkeeper_jobmanager::engine::coordinator::TaskPhase::{Awaiting, Running};
        for attempt in self.job.coordinator().tasks().in_phases(&[Running, Awaiting]) {
            self.send(attempt, ToTask::NotifyComplete { id, last_subsumed: None }, members, environment);
        }
    }

    /// A new attempt of every subtask, from the point that the log names.
    fn deploy(
        &mut self,
        parallelism: u32,
        members: &mut Members,
        environment: &mut Environment,
    ) -> Result<Event, AppendError> {
        self.settle()?;
        let mut state = self.log.state().clone();
        if environment.shared.omission == Omission::NewestCheckpoint {
            state.completed.pop();
        }
        self.deploy_from(&state, parallelism, members, environment).map_err(AppendError::Failed)
    }

    fn deploy_from(
        &mut self,
        state: &JobState,
        parallelism: u32,
        members: &mut Members,
        environment: &mut Environment,
    ) -> Result<Event, Error> {
        let manifest = match recovery::choose(state) {
            StartFrom::RecoveryPoint(point) => Some(files::read_completed(&*self.storage, &point)?),
            StartFrom::Empty => None,
            other => return Err(Error::internal(format!("no way to start from {other:?}"))),
        };
        let topology = graph::topology(self.sources.min(parallelism), parallelism);
        let mut plan = graph::plan(manifest.as_ref(), &topology)?;
        let attempts = graph::attempts(&topology, self.run.generation, self.run.number);
        let run = self.run;
        self.run.number += 1;
        self.splits = match plan.coordinators.get(&SOURCE) {
            Some(bytes) => SplitCoordinator::restore(bytes),
            None => SplitCoordinator::fresh(),
        };
        let placed = members.place(parallelism).ok_or_else(|| Error::new(Code::SlotsMissing, "too little room"))?;
        let host = |attempt: &AttemptId| placed[attempt.subtask.index as usize];
        let hosts: BTreeMap<_, _> = attempts.iter().map(|attempt| (attempt.subtask, host(attempt))).collect();
        let mut parts: BTreeMap<ProcessId, Vec<_>> = BTreeMap::new();
        for attempt in &attempts {
            let restore = plan.subtasks.remove(&attempt.subtask).unwrap_or_default();
            parts.entry(host(attempt)).or_default().push((*attempt, restore));
            members.runs(*attempt, host(attempt));
        }
        environment.note(|| {
            let from = manifest.as_ref().map(|manifest| manifest.checkpoint);
            format!("JobManager {} deploys {run:?} from {from:?} to {hosts:?}", self.id)
        });
        for (process, tasks) in parts {
            let Some(connection) = members.connection(process) else { continue };
            let sources = self.sources.min(parallelism);
            let part = Part { run, sources, counters: parallelism, tasks, hosts: hosts.clone() };
            environment.send(connection, self.id, Wire::Deploy(Box::new(part)));
        }
        let restored = Box::new(Restored { state: self.log.state().clone(), not_claimed: Vec::new() });
        Ok(Event::Deployed { attempts, topology: Box::new(topology), restored })
    }

    /// A deployment may also fail because a later reign removed what it needs.
    fn not_deployed(&self, error: AppendError) -> Event {
        let fenced = |error: &AppendError| matches!(error, AppendError::Fenced { .. });
        if fenced(&error) || self.log.check_reign().is_err_and(|error| fenced(&error)) {
            return Event::LeadershipLost;
        }
        Event::DeployFailed(error.into())
    }

    /// Takes in a report that is the split coordinator's, or gives it back.
    fn on_report(&mut self, mut from: FromTask, members: &Members, environment: &mut Environment) -> Option<Event> {
        let newest = RunId { number: self.run.number.saturating_sub(1), ..self.run };
        if environment.shared.omission == Omission::LateReports {
            from.attempt = newest.attempt(from.attempt.subtask);
            let under_way = self.job.coordinator().in_progress().next().map(|statistics| statistics.id);
            if let (TaskReport::Ack { id, .. }, Some(under_way)) = (&mut from.report, under_way) {
                *id = under_way;
            }
        }
        if !matches!(from.report, TaskReport::Coordinator(_)) {
            return Some(Event::FromTask(from));
        }
        let answer = (RunId::of(from.attempt) == newest).then(|| self.splits.on_request(from.attempt)).flatten();
        if let Some((attempt, message)) = answer {
            self.send(attempt, message, members, environment);
        }
        None
    }

    /// Removes one file of what is to be removed; a failure is tried again.
    fn remove_one(&mut self, environment: &mut Environment) {
        let Some((discard, files)) = self.removals.front_mut() else { return };
        if let Some(path) = files.pop_front() {
            let allowed = environment.fenced.deleted(self.log.generation(), &path);
            environment.shared.check(allowed);
            if self.storage.delete(&path).is_err() {
                files.push_front(path);
            }
        } else {
            let discard = *discard;
            self.removals.pop_front();
            if let Some(discard) = discard {
                self.post(Mail::Event(Box::new(Event::Deleted { discard })));
            }
        }
    }
}

fn takes_storage(command: &Command) -> bool {
    matches!(
        command,
        Command::AllocateId
            | Command::WriteMetadata { .. }
            | Command::Publish { .. }
            | Command::PublishResult(_)
            | Command::CheckReign
            | Command::Deploy { .. }
    )
}

fn stored(result: Result<(), StorageError>) -> Stored {
    match result {
        Ok(()) => Stored::Done,
        Err(StorageError::Unknown(error)) => Stored::Unknown(error),
        Err(error) => Stored::Failed(error.into()),
    }
}
