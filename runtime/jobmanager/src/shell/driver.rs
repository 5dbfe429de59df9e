//! The JobManager's thread: feeds the engine, executes its commands one by one, shows the status.

use std::{
    collections::{BTreeMap, HashMap, VecDeque},
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use crossbeam_channel::RecvTimeoutError;
use streamkeeper_checkpoint::{
    CompletedCheckpoint, files,
    log::{AppendError, Completion, JobLog, Record},
};
use streamkeeper_engine::{Deployment, JobGraph, TaskDeployment, ToCoordinator};
use streamkeeper_protocol::{FromTask, TaskReport, ToTask};
use streamkeeper_storage::{StorageError, crash_points};
use streamkeeper_types::{AttemptId, CheckpointId, Code, Error, Millis, Result, SubtaskId};
use tokio::sync::oneshot;

use super::{
    JobOutcome, JobSpec, StatusBoard, TaskManagers,
    coordinators::{Coordinators, ReaderMessage},
    disposal,
    inbox::{Mail, Message, SnapshotWish},
    janitor::Janitor,
    restore,
    status::Figures,
    topology::topology,
};
use crate::engine::{
    CheckpointRequest, Command, Event, Job, JobEnd, Origin, RequestId, Restored, Stored, Timer, coordinator::TaskPhase,
};

/// The thread wakes at least this often.
const LONGEST_WAIT: Duration = Duration::from_secs(1);

/// Who waits for a snapshot.
type Asked = oneshot::Sender<Result<CompletedCheckpoint>>;

pub(super) struct Driver {
    pub spec: JobSpec,
    pub job: Job,
    pub log: JobLog,
    pub graph: Arc<JobGraph>,
    pub task_managers: Arc<dyn TaskManagers>,
    pub mail: Mail,
    pub janitor: Janitor,
    pub board: StatusBoard,
    pub state: DriverState,
}

/// What changes while the job runs.
pub(super) struct DriverState {
    coordinators: Coordinators,
    timers: BTreeMap<Timer, Millis>,
    requests: HashMap<RequestId, Asked>,
    /// Answers that are sent when the status shows what they say.
    answers: Vec<(Asked, Result<CompletedCheckpoint>)>,
    next_request: u64,
    pub(super) deployments: u32,
    /// When the deployment began whose tasks do not all run yet.
    pub(super) deploying_since: Option<Millis>,
    end: Option<JobEnd>,
    /// What became known of earlier appends, for the engine.
    settled: Vec<Event>,
}

impl DriverState {
    pub(super) fn new() -> Self {
        Self {
            coordinators: Coordinators::none(),
            timers: BTreeMap::new(),
            requests: HashMap::new(),
            answers: Vec::new(),
            next_request: 0,
            deployments: 0,
            deploying_since: None,
            end: None,
            settled: Vec::new(),
        }
    }
}

impl Driver {
    /// Runs the job to its end in this process.
    pub(super) fn run(mut self) -> Result<JobOutcome> {
        self.feed(Event::Slots(self.task_managers.slots()));
        self.feed(Event::Start);
        while self.state.end.is_none() && !self.is_abandoned() {
            self.fire_due();
            self.discover();
            match self.mail.messages.recv_timeout(self.wait()) {
                Ok(message) => self.on_message(message),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => self.feed(Event::Cancel),
            }
        }
        match self.state.end.take() {
            Some(JobEnd::Finished) => Ok(JobOutcome::Finished),
            Some(JobEnd::Stopped(savepoint)) => Ok(JobOutcome::Stopped(savepoint)),
            Some(JobEnd::Failed(error)) => Err(error),
            Some(JobEnd::Cancelled) | None => Ok(JobOutcome::Cancelled),
            Some(JobEnd::Suspended) => Err(Error::new(Code::Fenced, "another process took this job over")
                .way_out("let one process run the job; this one has stopped and lost nothing")),
        }
    }

    fn is_abandoned(&self) -> bool {
        self.mail.abandoned.load(Ordering::SeqCst)
    }

    pub(super) fn now(&self) -> Millis {
        self.spec.clock.now()
    }

    /// Time until a timer or a discovery is due.
    fn wait(&self) -> Duration {
        let due = self.state.timers.values().copied().chain(self.state.coordinators.next_discovery()).min();
        let Some(due) = due else { return LONGEST_WAIT };
        let millis = u64::try_from(due.saturating_sub(self.now())).unwrap_or(0);
        Duration::from_millis(millis).min(LONGEST_WAIT)
    }

    fn fire_due(&mut self) {
        let now = self.now();
        let due: Vec<Timer> = self.state.timers.iter().filter(|(_, at)| **at <= now).map(|(timer, _)| *timer).collect();
        for timer in due {
            self.state.timers.remove(&timer);
            self.feed(Event::TimerFired(timer));
        }
    }

    fn discover(&mut self) {
        let now = self.now();
        if self.state.coordinators.next_discovery().is_some_and(|due| due <= now) {
            let found = self.state.coordinators.discover(now);
            self.send_to_readers(found);
        }
    }

    fn on_message(&mut self, message: Message) {
        match message {
            Message::FromTask(FromTask { attempt, report: TaskReport::Coordinator(event) }) => {
                let coordinators = &mut self.state.coordinators;
                let answer = ToCoordinator::decode(&event.payload).and_then(|said| match said {
                    ToCoordinator::RequestSplits => coordinators.on_request(event.operator, attempt),
                    ToCoordinator::Report(report) => coordinators.on_report(event.operator, attempt, &report),
                });
                self.send_to_readers(answer);
            }
            Message::FromTask(FromTask { attempt, report: TaskReport::Metrics(metrics) }) => {
                if self.is_current(attempt) {
                    self.board.change_figures(|figures| figures.on_metrics(attempt.subtask, metrics));
                    self.show();
                }
            }
            Message::FromTask(report) => {
                if let (TaskReport::State(state), true) = (&report.report, self.is_current(report.attempt)) {
                    self.board.change_figures(|figures| figures.on_state(report.attempt.subtask, state));
                }
                self.feed(Event::FromTask(report));
            }
            Message::Snapshot(wish) => self.on_wish(wish),
            Message::Deleted(discard) => self.feed(Event::Deleted { discard }),
            Message::Cancel => self.feed(Event::Cancel),
            Message::MayDispose { folder, answer } => {
                // Whoever asked may have gone.
                let _ = answer.send(self.may_dispose(&folder));
            }
            Message::Rescale(bounds) => self.feed(Event::Rescale(bounds)),
            Message::Slots { lost } => self.on_slots(lost),
        }
    }

    /// TaskManagers came or went. What was lost is told after the number, so that a restart knows what it can count on.
    fn on_slots(&mut self, lost: Vec<(AttemptId, Error)>) {
        self.feed(Event::Slots(self.task_managers.slots()));
        for (attempt, error) in lost {
            self.feed(Event::TaskLost { attempt, error });
        }
    }

    /// Whether a savepoint may be removed. Only a reign that still leads can say so.
    fn may_dispose(&mut self, folder: &str) -> Result<()> {
        self.log.check_reign()?;
        disposal::refuse_if_written(folder, self.job.coordinator().is_writing_to(folder))?;
        let manifest = disposal::manifest(self.spec.storage.as_ref(), folder)?;
        disposal::check(self.log.state(), &self.spec.full_name(), folder, &manifest)
    }

    fn is_current(&self, attempt: AttemptId) -> bool {
        attempt.generation == self.log.generation() && attempt.number + 1 == self.state.deployments
    }

    fn on_wish(&mut self, wish: SnapshotWish) {
        let id = RequestId(self.state.next_request);
        self.state.next_request += 1;
        self.state.requests.insert(id, wish.answer);
        self.feed(Event::Requested(CheckpointRequest {
            request: Some(id),
            origin: if wish.kind.is_savepoint() { Origin::Savepoint } else { Origin::User },
            kind: wish.kind,
            format: wish.format,
            target: wish.target,
            sharing: self.spec.checkpoints.sharing,
        }));
    }

    /// Sends a source's events. A coordinator that fails, or an event that is lost, fails the job's tasks (R29).
    fn send_to_readers(&mut self, messages: Result<Vec<ReaderMessage>>) {
        match messages {
            Ok(messages) => {
                for (attempt, message) in messages {
                    if let Err(error) = self.task_managers.send(attempt, message) {
                        tracing::debug!(%attempt, %error, "an event to a reader is late");
                    }
                }
            }
            Err(error) => self.fail_sources(&error),
        }
    }

    /// Has the job restart. The engine is told through one of the tasks, which is cancelled with the others.
    fn fail_sources(&mut self, error: &Error) {
        let phases = [TaskPhase::Starting, TaskPhase::Running, TaskPhase::Awaiting];
        let Some(attempt) = self.job.coordinator().tasks().in_phases(&phases).next() else { return };
        if let Err(gone) = self.task_managers.send(attempt, ToTask::Cancel) {
            tracing::debug!(%attempt, %gone, "the task had ended");
        }
        self.feed(Event::TaskLost { attempt, error: error.clone() });
    }

    /// Tells the engine, executes what it commands, tells it how that went, and so on.
    fn feed(&mut self, event: Event) {
        let mut events = VecDeque::from([event]);
        while let Some(event) = events.pop_front() {
            let now = self.now();
            for command in self.job.on(event, now) {
                if self.is_abandoned() {
                    return;
                }
                let answer = self.execute(command);
                events.append(&mut self.state.settled.drain(..).collect());
                events.extend(answer);
            }
        }
        self.show();
        // Whoever is told that something is done finds it shown.
        for (waiting, result) in self.state.answers.drain(..) {
            // Whoever asked may have gone.
            let _ = waiting.send(result);
        }
    }

    fn execute(&mut self, command: Command) -> Option<Event> {
        match command {
            Command::AllocateId => Some(self.allocate_id()),
            Command::HoldEvents { operator } => {
                self.state.coordinators.hold(operator);
                None
            }
            Command::CutCoordinator { id, operator } => {
                let state = self.state.coordinators.snapshot(operator);
                Some(Event::CoordinatorCut { id, operator, state })
            }
            Command::ReleaseEvents { operator } => {
                let held = self.state.coordinators.release(operator);
                self.send_to_readers(Ok(held));
                None
            }
            Command::SendToTask { attempt, message } => self.send_to_task(attempt, message),
            Command::WriteMetadata { id, path, manifest } => {
                let written = files::write_manifest(self.spec.storage.as_ref(), &path, manifest);
                Some(Event::MetadataStored { id, outcome: stored(written) })
            }
            Command::Publish { completion } => Some(self.publish(*completion)),
            Command::Delete { discard, files } => {
                self.janitor.remove(discard, files);
                None
            }
            Command::ArmTimer { timer, at } => {
                self.state.timers.insert(timer, at);
                None
            }
            Command::CancelTimer { timer } => {
                self.state.timers.remove(&timer);
                None
            }
            Command::Answer { request, result } => {
                self.state.answers.extend(self.state.requests.remove(&request).map(|waiting| (waiting, result)));
                None
            }
            Command::RecordStatistics(statistics) => {
                self.record(*statistics);
                None
            }
            Command::Deploy { parallelism } => {
                Some(self.deploy(parallelism).unwrap_or_else(|error| self.not_deployed(error)))
            }
            Command::CheckReign => {
                let checked = self.settle().and_then(|()| self.log.check_reign());
                matches!(checked, Err(AppendError::Fenced { .. })).then_some(Event::LeadershipLost)
            }
            Command::PublishResult(result) => Some(match self.append(&Record::Result(result)) {
                Ok(()) => Event::ResultPublished { outcome: Stored::Done },
                Err(error) => self.append_failed(error, |outcome| Event::ResultPublished { outcome }),
            }),
            Command::End(end) => {
                self.state.end = Some(end);
                None
            }
        }
    }

    /// Completes an append whose outcome was unknown. What it was is then known to the engine too.
    fn settle(&mut self) -> Result<(), AppendError> {
        let known = match self.log.settle()? {
            Some(Record::Completed(done)) => Event::Published { id: done.checkpoint.id, outcome: Stored::Done },
            Some(Record::Result(_)) => Event::ResultPublished { outcome: Stored::Done },
            _ => return Ok(()),
        };
        self.state.settled.push(known);
        Ok(())
    }

    fn append(&mut self, record: &Record) -> Result<(), AppendError> {
        self.settle()?;
        self.log.append(record)
    }

    fn allocate_id(&mut self) -> Event {
        match self.settle().and_then(|()| self.log.allocate_id()) {
            Ok(id) => Event::IdAllocated(id),
            Err(AppendError::Fenced { .. }) => Event::LeadershipLost,
            Err(AppendError::InDoubt(error) | AppendError::Failed(error)) => Event::IdFailed(error),
        }
    }

    fn send_to_task(&mut self, attempt: AttemptId, message: ToTask) -> Option<Event> {
        let notifies = matches!(message, ToTask::NotifyComplete { .. });
        if notifies {
            crash_points::reach("checkpoint-notify-before");
        }
        let trigger = match &message {
            ToTask::TriggerCheckpoint(barrier) => Some(barrier.id),
            _ => None,
        };
        let sent = self.task_managers.send(attempt, message);
        if notifies {
            crash_points::reach("checkpoint-notify-after");
        }
        let id = trigger?;
        sent.err().map(|error| Event::TriggerFailed { id, attempt, error })
    }

    fn publish(&mut self, completion: Completion) -> Event {
        let id = completion.checkpoint.id;
        crash_points::reach("checkpoint-publish-before");
        let appended = self.append(&Record::Completed(completion));
        crash_points::reach("checkpoint-publish-after");
        match appended {
            Ok(()) => {
                if let Err(error) = self.log.collect() {
                    tracing::warn!(%error, "old entries of the job log stay for now");
                }
                Event::Published { id, outcome: Stored::Done }
            }
            Err(error) => self.append_failed(error, |outcome| Event::Published { id, outcome }),
        }
    }

    fn append_failed(&self, error: AppendError, event: impl FnOnce(Stored) -> Event) -> Event {
        match error {
            AppendError::Fenced { .. } => Event::LeadershipLost,
            AppendError::InDoubt(error) => event(Stored::Unknown(error)),
            AppendError::Failed(error) => event(Stored::Failed(error)),
        }
    }

    /// A new attempt of every subtask, from the point that the log names.
    fn deploy(&mut self, parallelism: u32) -> Result<Event, AppendError> {
        self.settle()?;
        self.deploy_settled(parallelism).map_err(AppendError::Failed)
    }

    /// A deployment may also fail because a later reign removed what it needs.
    fn not_deployed(&self, error: AppendError) -> Event {
        let fenced = |error: &AppendError| matches!(error, AppendError::Fenced { .. });
        if fenced(&error) || self.log.check_reign().is_err_and(|error| fenced(&error)) {
            return Event::LeadershipLost;
        }
        Event::DeployFailed(error.into())
    }

    fn deploy_settled(&mut self, parallelism: u32) -> Result<Event> {
        let now = self.now();
        self.state.deploying_since = Some(now);
        let start = restore::start_point(self.spec.storage.as_ref(), self.log.state())?;
        let plan = restore::plan(&self.spec, parallelism, start.manifest.as_ref())?;
        self.graph = restore::chain(&self.spec, parallelism, &plan);
        let number = self.state.deployments;
        self.state.deployments += 1;
        let generation = self.log.generation();
        let attempt_of = |subtask: SubtaskId| AttemptId { generation, subtask, number };
        let is_finished = |vertex| restore::is_finished(&plan, vertex);
        self.state.coordinators = Coordinators::start(&self.graph, &plan.coordinators, is_finished, attempt_of, now)?;
        let from: Option<CheckpointId> = start.manifest.as_ref().map(|manifest| manifest.checkpoint);
        let mut tasks = Vec::new();
        for vertex in &self.graph.vertices {
            for index in 0..vertex.parallelism {
                let subtask = SubtaskId { vertex: vertex.id, index };
                let restore = restore::of_subtask(&plan, from, self.spec.dropped_state, vertex, subtask);
                tasks.push(TaskDeployment { attempt: attempt_of(subtask), restore });
            }
        }
        self.board.change_figures(Figures::clear);
        self.show_plan();
        let attempts = tasks.iter().map(|task| task.attempt).collect();
        self.task_managers.deploy(Deployment { graph: Arc::clone(&self.graph), tasks })?;
        let greetings = self.state.coordinators.greet()?;
        self.send_to_readers(Ok(greetings));
        self.board.change(|status| status.restored_from = from);
        let restored = Restored { state: self.log.state().clone(), not_claimed: start.not_claimed };
        let topology = Box::new(topology(&self.spec, &self.graph));
        Ok(Event::Deployed { attempts, topology, restored: Box::new(restored) })
    }
}

fn stored(result: Result<(), StorageError>) -> Stored {
    match result {
        Ok(()) => Stored::Done,
        Err(StorageError::Unknown(error)) => Stored::Unknown(error),
        Err(error) => Stored::Failed(error.into()),
    }
}
