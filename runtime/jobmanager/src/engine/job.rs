//! One job's life: deployed, running, restarted after failures, ended.
//!
//! ```text
//!  Created ─► Waiting ─► Deploying ─► Running ─► Finishing ─► Ended
//!                ▲ (for slots)           │
//!                └────────── Stopping ◄──┘  (all tasks of the job are one region for now) ─► Ended
//! ```

use std::collections::BTreeSet;

use streamkeeper_checkpoint::{JobResult, JobState};
use streamkeeper_protocol::{CheckpointKind, FromTask, SnapshotFormat, TaskReport, TaskState, ToTask};
use streamkeeper_types::{AttemptId, Code, Error, Fault, FileRef, Generation, Millis, Result};

use super::{
    Bounds, CheckpointCoordinator, CheckpointOptions, CheckpointRequest, Command, Event, Exception, ExceptionHistory,
    Inherited, JobEnd, Origin, Scheduler, Sharing, Stored, Timer,
    coordinator::TaskPhase,
    failover::{Failover, RestartStrategy, Verdict},
    options::millis,
    scheduler::{Admission, Wish},
};

/// Pause before the result of a finished job is written again.
const RESULT_RETRY: Millis = 1_000;
/// How often a job that waits for slots asks whether it still leads. It appends nothing by which it would learn that its
/// TaskManagers have gone to another process, or that those it holds are what the other one waits for.
const REIGN_CHECK: Millis = 1_000;

/// What a deployment began with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Restored {
    /// The log's state after everything in doubt was settled.
    pub state: JobState,
    /// Files of a snapshot that belongs to somebody else: never deleted, never referred to (R23, R28).
    pub not_claimed: Vec<FileRef>,
}

/// Where the job stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum JobPhase {
    Created,
    /// Waiting for slots.
    Waiting,
    /// Waiting for `Deployed`.
    Deploying,
    Running,
    /// Waiting for tasks to end, for storage to decide about a checkpoint, and for the pause to be over.
    Stopping(Stopping),
    /// Nothing is left to do; the log is to say so, or the next JobManager would go on with the job.
    Finishing(JobEnd),
    Ended(JobEnd),
}

/// The way from running to the next thing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stopping {
    /// Attempts that have not ended.
    live: BTreeSet<AttemptId>,
    next: Next,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Next {
    /// Deploy again; `pausing` until the restart timer fires.
    Redeploy {
        pausing: bool,
    },
    End(JobEnd),
}

/// Pure state machine of a job in one reign; the entrance to the engine.
#[derive(Debug)]
pub struct Job {
    coordinator: CheckpointCoordinator,
    scheduler: Scheduler,
    failover: Failover,
    phase: JobPhase,
    /// The wish for a checkpoint after which the parallelism changes.
    reshaping: Option<Reshaping>,
    /// What the job wants to become once it is deployed, when that was decided while it was being deployed.
    cancelled: bool,
    exceptions: ExceptionHistory,
    random: SplitMix,
}

impl Job {
    /// `seed` feeds the random parts of delays.
    ///
    /// # Errors
    /// As [`CheckpointCoordinator::new`].
    pub fn new(
        generation: Generation,
        options: CheckpointOptions,
        restart: RestartStrategy,
        scheduler: Scheduler,
        inherited: Inherited,
        seed: u64,
    ) -> Result<Self> {
        let mut random = SplitMix(seed);
        let first_delay = millis(options.first_delay(random.unit()));
        let coordinator = CheckpointCoordinator::new(generation, options, inherited, first_delay)?;
        let failover = Failover::new(restart);
        let phase = JobPhase::Created;
        let (cancelled, exceptions, reshaping) = (false, ExceptionHistory::default(), None);
        Ok(Self { coordinator, scheduler, failover, phase, reshaping, cancelled, exceptions, random })
    }

    /// Takes in an event at time `now`; the commands are executed in order.
    #[must_use]
    pub fn on(&mut self, event: Event, now: Millis) -> Vec<Command> {
        if matches!(self.phase, JobPhase::Ended(_)) {
            return Vec::new();
        }
        // The coordinator replaces its tasks when they are deployed and stopped; the job looks at them before.
        let noticed = self.notice(&event);
        let mut commands = self.coordinator.on(event, now);
        match noticed {
            Noticed::Nothing => {}
            Noticed::Start => self.deploy(&mut commands, now),
            Noticed::Deployed => self.deployed(&mut commands, now),
            Noticed::Failed(error, task) => self.fail(error, task, &mut commands, now),
            Noticed::Ended(attempt) => self.ended(attempt),
            Noticed::PauseOver => self.pause_over(&mut commands, now),
            Noticed::StillWaiting => commands.push(Command::CheckReign),
            Noticed::Result(outcome) => self.result_stored(&outcome, &mut commands, now),
            Noticed::Cancel => self.cancel(&mut commands, now),
            Noticed::LeadershipLost => self.suspend(&mut commands),
            Noticed::Slots(slots) => self.scheduler.on_slots(slots, now),
            Noticed::Bounds(bounds) => self.scheduler.on_bounds(bounds),
        }
        if let Some(error) = self.coordinator.take_failure()
            && self.phase == JobPhase::Running
        {
            self.fail(error, None, &mut commands, now);
        }
        self.look(&mut commands, now);
        commands
    }

    #[must_use]
    pub fn phase(&self) -> &JobPhase {
        &self.phase
    }

    /// Whether every task runs.
    #[must_use]
    pub fn is_up(&self) -> bool {
        self.phase == JobPhase::Running && !self.coordinator.tasks().any_in(TaskPhase::Starting)
    }

    #[must_use]
    pub fn restarts(&self) -> u32 {
        self.failover.restarts()
    }

    #[must_use]
    pub fn last_failure(&self) -> Option<&Error> {
        self.exceptions.entries().next_back().map(|exception| &exception.error)
    }

    #[must_use]
    pub fn exceptions(&self) -> &ExceptionHistory {
        &self.exceptions
    }

    #[must_use]
    pub fn scheduler(&self) -> &Scheduler {
        &self.scheduler
    }

    #[must_use]
    pub fn coordinator(&self) -> &CheckpointCoordinator {
        &self.coordinator
    }

    fn notice(&self, event: &Event) -> Noticed {
        match event {
            Event::Start if self.phase == JobPhase::Created => Noticed::Start,
            Event::Deployed { .. } => Noticed::Deployed,
            Event::DeployFailed(error) => Noticed::Failed(error.clone(), None),
            Event::FromTask(FromTask { attempt, report: TaskReport::State(state) }) => {
                self.notice_state(*attempt, state)
            }
            Event::TaskLost { attempt, error } => {
                self.notice_state(*attempt, &TaskState::Failed(error.clone().at(attempt.to_string())))
            }
            Event::TimerFired(Timer::Restart) => Noticed::PauseOver,
            Event::TimerFired(Timer::Slots) if self.phase == JobPhase::Waiting => Noticed::StillWaiting,
            Event::ResultPublished { outcome } => Noticed::Result(outcome.clone()),
            Event::Cancel => Noticed::Cancel,
            Event::LeadershipLost => Noticed::LeadershipLost,
            Event::Slots(slots) => Noticed::Slots(*slots),
            Event::Rescale(bounds) => Noticed::Bounds(*bounds),
            _ => Noticed::Nothing,
        }
    }

    fn notice_state(&self, attempt: AttemptId, state: &TaskState) -> Noticed {
        match (&self.phase, state) {
            (JobPhase::Stopping(_), state) if state.is_terminal() => Noticed::Ended(attempt),
            (JobPhase::Running, TaskState::Failed(error)) if self.coordinator.tasks().is_current(attempt) => {
                Noticed::Failed(error.clone(), Some(attempt))
            }
            _ => Noticed::Nothing,
        }
    }

    /// Deploys, or waits until there is room.
    fn deploy(&mut self, commands: &mut Vec<Command>, now: Millis) {
        match self.scheduler.admit(now) {
            Admission::Deploy { parallelism } => {
                self.phase = JobPhase::Deploying;
                commands.push(Command::CancelTimer { timer: Timer::Slots });
                commands.push(Command::Deploy { parallelism });
            }
            Admission::WaitUntil(at) => {
                self.phase = JobPhase::Waiting;
                let at = at.min(now.saturating_add(REIGN_CHECK));
                commands.push(Command::ArmTimer { timer: Timer::Slots, at });
            }
            Admission::NoSlots(error) => {
                self.phase = JobPhase::Waiting;
                self.fail(error, None, commands, now);
            }
        }
    }

    fn deployed(&mut self, commands: &mut Vec<Command>, now: Millis) {
        self.phase = JobPhase::Running;
        self.reshaping = None;
        if self.cancelled {
            self.stop(Next::End(JobEnd::Cancelled), &cancelled(), commands, now);
        }
    }

    /// Restarts the whole job, or gives up.
    fn fail(&mut self, error: Error, task: Option<AttemptId>, commands: &mut Vec<Command>, now: Millis) {
        if !matches!(self.phase, JobPhase::Running | JobPhase::Deploying | JobPhase::Waiting) {
            return;
        }
        self.scheduler.failed(&error);
        let error = match self.coordinator.stopped_by() {
            // R36: the savepoint is good, and the user must learn so.
            Some(savepoint) => error.at(format!("after savepoint `{}` completed", savepoint.manifest)),
            None => error,
        };
        // What only a person can mend (a bad record, a missing file, a full disk) fails the same way after each restart.
        let verdict = match error.fault() {
            Fault::User => Verdict::GiveUp,
            Fault::External if error.code == Code::DiskFull => Verdict::GiveUp,
            Fault::External | Fault::Internal => self.failover.on_failure(now, 2.0 * self.random.unit() - 1.0),
        };
        let next = match verdict {
            _ if self.cancelled => Next::End(JobEnd::Cancelled),
            Verdict::GiveUp => Next::End(JobEnd::Failed(error.clone())),
            Verdict::RestartAfter(pause) => {
                // A TaskManager that another process leads refuses ours, again and again.
                commands.push(Command::CheckReign);
                commands.push(Command::ArmTimer { timer: Timer::Restart, at: now.saturating_add(millis(pause)) });
                Next::Redeploy { pausing: true }
            }
        };
        let restarted = matches!(next, Next::Redeploy { .. });
        self.exceptions.record(Exception { at: now, error: error.clone(), task, restarted });
        self.stop(next, &error, commands, now);
    }

    /// Cancels all tasks and waits for their end.
    fn stop(&mut self, next: Next, cause: &Error, commands: &mut Vec<Command>, now: Millis) {
        let live: BTreeSet<AttemptId> = self.live();
        commands.extend(self.coordinator.stop_tasks(cause, now));
        commands.extend(live.iter().map(|attempt| Command::SendToTask { attempt: *attempt, message: ToTask::Cancel }));
        self.phase = JobPhase::Stopping(Stopping { live, next });
    }

    fn live(&self) -> BTreeSet<AttemptId> {
        use TaskPhase::{Awaiting, Released, Running, Starting};
        self.coordinator.tasks().in_phases(&[Starting, Running, Awaiting, Released]).collect()
    }

    fn ended(&mut self, attempt: AttemptId) {
        if let JobPhase::Stopping(stopping) = &mut self.phase {
            stopping.live.remove(&attempt);
        }
    }

    fn pause_over(&mut self, commands: &mut Vec<Command>, now: Millis) {
        match &mut self.phase {
            JobPhase::Stopping(Stopping { next: Next::Redeploy { pausing }, .. }) => *pausing = false,
            JobPhase::Finishing(end) => commands.extend(result_of(end, now).map(Command::PublishResult)),
            _ => {}
        }
    }

    fn cancel(&mut self, commands: &mut Vec<Command>, now: Millis) {
        match &mut self.phase {
            JobPhase::Created | JobPhase::Waiting => self.conclude(JobEnd::Cancelled, commands, now),
            JobPhase::Deploying => self.cancelled = true,
            JobPhase::Running => self.stop(Next::End(JobEnd::Cancelled), &cancelled(), commands, now),
            JobPhase::Stopping(stopping) => {
                if matches!(stopping.next, Next::Redeploy { .. }) {
                    stopping.next = Next::End(JobEnd::Cancelled);
                }
            }
            // Everything is done; it only has to be written down.
            JobPhase::Finishing(_) | JobPhase::Ended(_) => {}
        }
    }

    /// Another process leads: our tasks are zombies, the job is not at its end (B91, B94).
    fn suspend(&mut self, commands: &mut Vec<Command>) {
        let live = self.live();
        commands.extend(live.into_iter().map(|attempt| Command::SendToTask { attempt, message: ToTask::Cancel }));
        self.end(JobEnd::Suspended, commands);
    }

    /// All tasks have ended, for good. The log is told first where that changes what the next JobManager does.
    fn conclude(&mut self, end: JobEnd, commands: &mut Vec<Command>, now: Millis) {
        let Some(result) = result_of(&end, now) else { return self.end(end, commands) };
        self.phase = JobPhase::Finishing(end);
        commands.push(Command::CancelTimer { timer: Timer::Periodic });
        commands.push(Command::PublishResult(result));
    }

    fn result_stored(&mut self, outcome: &Stored, commands: &mut Vec<Command>, now: Millis) {
        let JobPhase::Finishing(end) = &self.phase else { return };
        match (outcome, end) {
            // Whoever cancels wants the job gone, even if storage is.
            (Stored::Done, end) | (_, end @ JobEnd::Cancelled) => self.end(end.clone(), commands),
            _ => commands.push(Command::ArmTimer { timer: Timer::Restart, at: now.saturating_add(RESULT_RETRY) }),
        }
    }

    fn end(&mut self, end: JobEnd, commands: &mut Vec<Command>) {
        self.phase = JobPhase::Ended(end.clone());
        commands.push(Command::End(end));
    }

    /// Moves on if what the phase waits for has come.
    fn look(&mut self, commands: &mut Vec<Command>, now: Millis) {
        // What to restore from, or whether the job is done, is not known before storage has answered.
        if self.coordinator.is_storing() {
            return;
        }
        match &self.phase {
            JobPhase::Waiting => self.deploy(commands, now),
            JobPhase::Running if self.coordinator.tasks().all_in(&[TaskPhase::Finished]) => {
                let stopped = self.coordinator.stopped_by().cloned();
                let end = stopped.map_or(JobEnd::Finished, |savepoint| JobEnd::Stopped(Box::new(savepoint)));
                self.conclude(end, commands, now);
            }
            JobPhase::Stopping(stopping) if stopping.live.is_empty() => match stopping.next.clone() {
                Next::Redeploy { pausing: true } => {}
                Next::Redeploy { pausing: false } => self.deploy(commands, now),
                Next::End(end) => self.conclude(end, commands, now),
            },
            JobPhase::Running if self.is_up() => {
                self.scheduler.up(now);
                self.consider_shape(commands, now);
            }
            _ => {}
        }
    }

    /// Changes the parallelism if that is wished: a checkpoint first, so that little is done twice.
    fn consider_shape(&mut self, commands: &mut Vec<Command>, now: Millis) {
        // The end of the input is near: nothing would be gained.
        if self.coordinator.stopped_by().is_some() || !self.coordinator.tasks().all_in(&[TaskPhase::Running]) {
            return;
        }
        let (completed, failed) = (self.coordinator.history().completed, self.coordinator.history().failed);
        let wish = self.scheduler.wish(now);
        match (&mut self.reshaping, wish) {
            (reshaping, Wish::Keep) => *reshaping = None,
            (None, Wish::LookAt(at)) => commands.push(Command::ArmTimer { timer: Timer::Slots, at }),
            (None, Wish::Now(_)) => {
                let gives_up = failed.saturating_add(self.scheduler.max_failed_checkpoints());
                self.reshaping = Some(Reshaping { completed, failed, gives_up });
                commands.extend(self.request_checkpoint(now));
            }
            (Some(reshaping), _) if completed > reshaping.completed || failed >= reshaping.gives_up => {
                // Somebody waits for a savepoint that is under way.
                if self.coordinator.is_taking_savepoint() {
                    return;
                }
                self.reshaping = None;
                self.scheduler.stopping(now);
                self.stop(Next::Redeploy { pausing: false }, &reshaped(), commands, now);
            }
            (Some(reshaping), _) if failed > reshaping.failed => {
                reshaping.failed = failed;
                commands.extend(self.request_checkpoint(now));
            }
            (Some(_), _) => {}
        }
    }

    fn request_checkpoint(&mut self, now: Millis) -> Vec<Command> {
        let request = CheckpointRequest {
            request: None,
            origin: Origin::User,
            kind: CheckpointKind::Checkpoint,
            format: SnapshotFormat::Native,
            target: None,
            sharing: Sharing::Incremental,
        };
        self.coordinator.on(Event::Requested(request), now)
    }
}

/// Counts of checkpoints when a change of the parallelism was decided.
#[derive(Debug, Clone, Copy)]
struct Reshaping {
    completed: u64,
    /// Grows with each failure that was answered by another try.
    failed: u64,
    /// Failures after which the change goes ahead from an older checkpoint.
    gives_up: u64,
}

fn reshaped() -> Error {
    Error::new(streamkeeper_types::Code::Cancelled, "the parallelism changes")
}

/// What an event means for the job, besides for its snapshots.
enum Noticed {
    Nothing,
    Start,
    Deployed,
    /// With the task, if it was one.
    Failed(Error, Option<AttemptId>),
    Ended(AttemptId),
    PauseOver,
    StillWaiting,
    Result(Stored),
    Cancel,
    LeadershipLost,
    Slots(u32),
    Bounds(Bounds),
}

/// What the log says of an end; `None` where the next JobManager may go on.
fn result_of(end: &JobEnd, now: Millis) -> Option<JobResult> {
    match end {
        JobEnd::Finished => Some(JobResult::Finished { time: now }),
        JobEnd::Stopped(savepoint) => Some(JobResult::Stopped { time: now, savepoint: savepoint.id }),
        JobEnd::Cancelled => Some(JobResult::Cancelled { time: now }),
        JobEnd::Failed(_) | JobEnd::Suspended => None,
    }
}

fn cancelled() -> Error {
    Error::new(streamkeeper_types::Code::Cancelled, "the job was cancelled")
}

/// SplitMix64: a few random numbers from a seed, so that the engine stays pure.
#[derive(Debug)]
struct SplitMix(u64);

impl SplitMix {
    /// From 0 up to and without 1.
    #[expect(clippy::cast_precision_loss, reason = "53 bits fit")]
    fn unit(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) >> 11) as f64 / (1u64 << 53) as f64
    }
}
