//! One job's life: deployed, running, restarted after failures, ended.
//!
//! ```text
//!  Created ─► Deploying ─► Running ─► Finishing ─► Ended
//!                 ▲           │
//!                 └─ Stopping ◄┘  (all tasks of the job are one region for now) ─► Ended
//! ```

use std::collections::BTreeSet;

use streamkeeper_checkpoint::{JobResult, JobState};
use streamkeeper_protocol::{FromTask, TaskReport, TaskState, ToTask};
use streamkeeper_types::{AttemptId, Code, Error, Fault, FileRef, Generation, Millis, Result};

use super::{
    CheckpointCoordinator, CheckpointOptions, Command, Event, Inherited, JobEnd, JobTopology, Stored, Timer,
    coordinator::TaskPhase,
    failover::{Failover, RestartStrategy, Verdict},
    options::millis,
};

/// Pause before the result of a finished job is written again.
const RESULT_RETRY: Millis = 1_000;

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
    /// Waiting for `Deployed`.
    Deploying,
    Running,
    /// Waiting for tasks to end, for storage to decide about a checkpoint, and for the pause to be over.
    Stopping(Stopping),
    /// All tasks finished; the log is to say so.
    Finishing,
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
    failover: Failover,
    phase: JobPhase,
    /// What the job wants to become once it is deployed, when that was decided while it was being deployed.
    cancelled: bool,
    /// The latest failure, for people.
    last_failure: Option<Error>,
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
        topology: JobTopology,
        inherited: Inherited,
        seed: u64,
    ) -> Result<Self> {
        let mut random = SplitMix(seed);
        let first_delay = millis(options.first_delay(random.unit()));
        let coordinator = CheckpointCoordinator::new(generation, options, topology, inherited, first_delay)?;
        let failover = Failover::new(restart);
        Ok(Self { coordinator, failover, phase: JobPhase::Created, cancelled: false, last_failure: None, random })
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
            Noticed::Start => self.deploy(&mut commands),
            Noticed::Deployed => self.deployed(&mut commands, now),
            Noticed::Failed(error) => self.fail(error, &mut commands, now),
            Noticed::Ended(attempt) => self.ended(attempt),
            Noticed::PauseOver => self.pause_over(&mut commands, now),
            Noticed::Result(Stored::Done) => self.end(JobEnd::Finished, &mut commands),
            Noticed::Result(_) => {
                commands.push(Command::ArmTimer { timer: Timer::Restart, at: now.saturating_add(RESULT_RETRY) });
            }
            Noticed::Cancel => self.cancel(&mut commands, now),
            Noticed::LeadershipLost => self.suspend(&mut commands),
        }
        if let Some(error) = self.coordinator.take_failure()
            && self.phase == JobPhase::Running
        {
            self.fail(error, &mut commands, now);
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
        self.last_failure.as_ref()
    }

    #[must_use]
    pub fn coordinator(&self) -> &CheckpointCoordinator {
        &self.coordinator
    }

    fn notice(&self, event: &Event) -> Noticed {
        match event {
            Event::Start if self.phase == JobPhase::Created => Noticed::Start,
            Event::Deployed { .. } => Noticed::Deployed,
            Event::DeployFailed(error) => Noticed::Failed(error.clone()),
            Event::FromTask(FromTask { attempt, report: TaskReport::State(state) }) => {
                self.notice_state(*attempt, state)
            }
            Event::TaskLost { attempt, error } => {
                self.notice_state(*attempt, &TaskState::Failed(error.clone().at(attempt.to_string())))
            }
            Event::TimerFired(Timer::Restart) => Noticed::PauseOver,
            Event::ResultPublished { outcome } => Noticed::Result(outcome.clone()),
            Event::Cancel => Noticed::Cancel,
            Event::LeadershipLost => Noticed::LeadershipLost,
            _ => Noticed::Nothing,
        }
    }

    fn notice_state(&self, attempt: AttemptId, state: &TaskState) -> Noticed {
        match (&self.phase, state) {
            (JobPhase::Stopping(_), state) if state.is_terminal() => Noticed::Ended(attempt),
            (JobPhase::Running, TaskState::Failed(error)) if self.coordinator.tasks().is_current(attempt) => {
                Noticed::Failed(error.clone())
            }
            _ => Noticed::Nothing,
        }
    }

    fn deploy(&mut self, commands: &mut Vec<Command>) {
        self.phase = JobPhase::Deploying;
        commands.push(Command::Deploy);
    }

    fn deployed(&mut self, commands: &mut Vec<Command>, now: Millis) {
        self.phase = JobPhase::Running;
        if self.cancelled {
            self.stop(Next::End(JobEnd::Cancelled), &cancelled(), commands, now);
        }
    }

    /// Restarts the whole job, or gives up.
    fn fail(&mut self, error: Error, commands: &mut Vec<Command>, now: Millis) {
        if !matches!(self.phase, JobPhase::Running | JobPhase::Deploying) {
            return;
        }
        let error = match self.coordinator.stopped_by() {
            // R36: the savepoint is good, and the user must learn so.
            Some(savepoint) => error.at(format!("after savepoint `{}` completed", savepoint.manifest)),
            None => error,
        };
        self.last_failure = Some(error.clone());
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
                commands.push(Command::ArmTimer { timer: Timer::Restart, at: now.saturating_add(millis(pause)) });
                Next::Redeploy { pausing: true }
            }
        };
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
            JobPhase::Finishing => commands.push(Command::PublishResult(JobResult::Finished { time: now })),
            _ => {}
        }
    }

    fn cancel(&mut self, commands: &mut Vec<Command>, now: Millis) {
        match &mut self.phase {
            JobPhase::Created => self.end(JobEnd::Cancelled, commands),
            JobPhase::Deploying => self.cancelled = true,
            JobPhase::Running => self.stop(Next::End(JobEnd::Cancelled), &cancelled(), commands, now),
            JobPhase::Stopping(stopping) => {
                if matches!(stopping.next, Next::Redeploy { .. }) {
                    stopping.next = Next::End(JobEnd::Cancelled);
                }
            }
            // Everything is done; it only has to be written down.
            JobPhase::Finishing | JobPhase::Ended(_) => {}
        }
    }

    /// Another process leads: our tasks are zombies, the job is not at its end (B91, B94).
    fn suspend(&mut self, commands: &mut Vec<Command>) {
        let live = self.live();
        commands.extend(live.into_iter().map(|attempt| Command::SendToTask { attempt, message: ToTask::Cancel }));
        self.end(JobEnd::Suspended, commands);
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
            JobPhase::Running if self.coordinator.tasks().all_in(&[TaskPhase::Finished]) => {
                if let Some(savepoint) = self.coordinator.stopped_by().cloned() {
                    self.end(JobEnd::Stopped(Box::new(savepoint)), commands);
                    return;
                }
                self.phase = JobPhase::Finishing;
                commands.push(Command::CancelTimer { timer: Timer::Periodic });
                commands.push(Command::PublishResult(JobResult::Finished { time: now }));
            }
            JobPhase::Stopping(stopping) if stopping.live.is_empty() => match stopping.next.clone() {
                Next::Redeploy { pausing: true } => {}
                Next::Redeploy { pausing: false } => self.deploy(commands),
                Next::End(end) => self.end(end, commands),
            },
            _ => {}
        }
    }
}

/// What an event means for the job, besides for its snapshots.
enum Noticed {
    Nothing,
    Start,
    Deployed,
    Failed(Error),
    Ended(AttemptId),
    PauseOver,
    Result(Stored),
    Cancel,
    LeadershipLost,
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
