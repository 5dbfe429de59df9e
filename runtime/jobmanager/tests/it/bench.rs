//! A job of two vertices (a coordinated source and a sink, two subtasks each) under a hand-driven engine.

use std::time::Duration;

use streamkeeper_checkpoint::{
    CompletedCheckpoint, JobState, Manifest,
    log::{Completion, Record},
};
use streamkeeper_jobmanager::engine::{
    Bounds, CheckpointOptions, CheckpointRequest, Command, Event, Inherited, Job, JobTopology, Origin, RequestId,
    Restored, Scheduler, SchedulerOptions, Sharing, Stored, Timer, TopologyInput, TopologyOperator, TopologyVertex,
    Wiring, failover::RestartStrategy,
};
use streamkeeper_protocol::{
    Barrier, CheckpointKind, CheckpointMetrics, FromTask, SnapshotFormat, TaskReport, TaskState, ToTask,
};
use streamkeeper_types::{
    AttemptId, CheckpointId, Code, Error, FileRef, FileScope, Generation, KeyGroupRange, Millis, OperatorId, SubtaskId,
    VertexId,
    snapshot::{KeyedHandle, OperatorSnapshot, StateFormat, SubtaskSnapshot},
};

pub const GENERATION: Generation = Generation(3);
pub const SOURCE: OperatorId = OperatorId(1);
pub const STOP: CheckpointKind = CheckpointKind::StopSavepoint { drain: false };

pub struct Bench {
    pub job: Job,
    pub now: Millis,
    /// Commands of the last event.
    pub commands: Vec<Command>,
    /// The log as it would be.
    pub log: JobState,
    deployments: u32,
    topology: JobTopology,
}

pub fn options() -> CheckpointOptions {
    CheckpointOptions {
        interval: Some(Duration::from_secs(10)),
        tolerable_failures: 1,
        retained: 1,
        ..CheckpointOptions::default()
    }
}

pub fn error(cause: &str) -> Error {
    Error::new(Code::Storage, cause)
}

pub fn id(id: u64) -> CheckpointId {
    CheckpointId(id)
}

pub fn file(path: &str, scope: FileScope) -> FileRef {
    FileRef { path: path.into(), size: 1, checksum: 1, scope }
}

/// A snapshot of the sink's operator with these files.
pub fn snapshot(files: &[FileRef]) -> SubtaskSnapshot {
    let keyed = KeyedHandle {
        range: KeyGroupRange::all(128),
        format: StateFormat::Columns,
        tables: Vec::new(),
        deltas: files.to_vec(),
    };
    let operator = OperatorSnapshot { operator: OperatorId(2), keyed: Some(keyed), lists: Default::default() };
    SubtaskSnapshot { operators: vec![operator], finished: false }
}

impl Bench {
    /// A job that was created.
    pub fn created(options: CheckpointOptions, restart: RestartStrategy) -> Self {
        let operator =
            |id, name: &str, coordinated| TopologyOperator { id: OperatorId(id), name: name.into(), coordinated };
        let source = TopologyVertex {
            id: VertexId(0),
            parallelism: 2,
            inputs: vec![],
            operators: vec![operator(1, "source", true)],
        };
        let input = TopologyInput { vertex: VertexId(0), wiring: Wiring::OneToOne };
        let sink = TopologyVertex {
            id: VertexId(1),
            parallelism: 2,
            inputs: vec![input],
            operators: vec![operator(2, "sink", false)],
        };
        let topology = JobTopology {
            job: "default/test".into(),
            program: String::new(),
            max_parallelism: 128,
            vertices: vec![source, sink],
        };
        let scheduler = Scheduler::new(SchedulerOptions::default(), Bounds::exactly(2));
        let mut job = Job::new(GENERATION, options, restart, scheduler, Inherited::default(), 1).unwrap();
        assert_eq!(job.on(Event::Slots(2), 0), []);
        Self { job, topology, now: 1_000, commands: vec![], log: JobState::default(), deployments: 0 }
    }

    /// All tasks run; restarts after a second.
    pub fn running_with(options: CheckpointOptions) -> Self {
        let restart = RestartStrategy::FixedDelay { attempts: 9, delay: Duration::from_secs(1) };
        let mut bench = Self::created(options, restart);
        bench.on(Event::Start);
        bench.deploy();
        bench.all(TaskState::Running);
        bench
    }

    pub fn running() -> Self {
        Self::running_with(options())
    }

    pub fn on(&mut self, event: Event) -> &mut Self {
        self.commands = self.job.on(event, self.now);
        self
    }

    pub fn attempt(&self, vertex: u32, index: u32) -> AttemptId {
        let subtask = SubtaskId { vertex: VertexId(vertex), index };
        AttemptId { generation: GENERATION, subtask, number: self.deployments - 1 }
    }

    pub fn attempts(&self) -> Vec<AttemptId> {
        [(0, 0), (0, 1), (1, 0), (1, 1)].map(|(vertex, index)| self.attempt(vertex, index)).into()
    }

    /// Executes a deployment that must have been asked for.
    pub fn deploy(&mut self) -> &mut Self {
        self.deploy_with(vec![])
    }

    pub fn deploy_with(&mut self, not_claimed: Vec<FileRef>) -> &mut Self {
        assert!(self.is_deploying(), "{:?}", self.commands);
        self.deployments += 1;
        let restored = Box::new(Restored { state: self.log.clone(), not_claimed });
        let attempts = self.attempts();
        let topology = Box::new(self.topology.clone());
        self.on(Event::Deployed { attempts, topology, restored })
    }

    /// Whether the last event leads to a deployment.
    pub fn is_deploying(&self) -> bool {
        self.commands.iter().any(|command| matches!(command, Command::Deploy { .. }))
    }

    pub fn report(&mut self, attempt: AttemptId, report: TaskReport) -> &mut Self {
        self.on(Event::FromTask(FromTask { attempt, report }))
    }

    pub fn state(&mut self, vertex: u32, index: u32, state: TaskState) -> &mut Self {
        let attempt = self.attempt(vertex, index);
        self.report(attempt, TaskReport::State(state))
    }

    /// Every task reports the same; the commands of all of them stay.
    pub fn all(&mut self, state: TaskState) -> &mut Self {
        let mut commands = vec![];
        for attempt in self.attempts() {
            self.report(attempt, TaskReport::State(state.clone()));
            commands.append(&mut self.commands);
        }
        self.commands = commands;
        self
    }

    pub fn fire(&mut self, timer: Timer) -> &mut Self {
        self.on(Event::TimerFired(timer))
    }

    pub fn request(&mut self, kind: CheckpointKind, request: u64) -> &mut Self {
        let is_savepoint = kind.is_savepoint();
        self.on(Event::Requested(CheckpointRequest {
            request: Some(RequestId(request)),
            origin: if is_savepoint { Origin::Savepoint } else { Origin::User },
            kind,
            format: if is_savepoint { SnapshotFormat::Canonical } else { SnapshotFormat::Native },
            target: is_savepoint.then(|| "savepoints/a".to_owned()),
            sharing: Sharing::Incremental,
        }))
    }

    /// From the asked-for id to triggered tasks.
    pub fn trigger(&mut self, n: u64) -> &mut Self {
        assert!(self.commands.contains(&Command::AllocateId), "{:?}", self.commands);
        self.on(Event::IdAllocated(id(n)));
        self.on(Event::CoordinatorCut { id: id(n), operator: SOURCE, state: Ok(vec![7]) })
    }

    pub fn ack(&mut self, attempt: AttemptId, n: u64, snapshot: SubtaskSnapshot) -> &mut Self {
        self.report(attempt, TaskReport::Ack { id: id(n), snapshot, metrics: CheckpointMetrics::default() })
    }

    pub fn ack_all(&mut self, n: u64) -> &mut Self {
        for attempt in self.attempts() {
            self.ack(attempt, n, SubtaskSnapshot::default());
        }
        self
    }

    pub fn metadata(&mut self, n: u64, outcome: Stored) -> &mut Self {
        self.on(Event::MetadataStored { id: id(n), outcome })
    }

    /// Appends the record that must have been asked for.
    pub fn publish(&mut self, n: u64) -> &mut Self {
        let completion = self.completion().unwrap();
        self.log.apply(&Record::Completed(completion));
        self.on(Event::Published { id: id(n), outcome: Stored::Done })
    }

    /// A whole checkpoint, the periodic timer first.
    pub fn complete(&mut self, n: u64) -> &mut Self {
        self.now += 20_000;
        self.fire(Timer::Periodic).trigger(n).ack_all(n).metadata(n, Stored::Done).publish(n)
    }

    pub fn completion(&self) -> Option<Completion> {
        self.commands.iter().find_map(|command| match command {
            Command::Publish { completion } => Some((**completion).clone()),
            _ => None,
        })
    }

    pub fn manifest(&self) -> Option<Manifest> {
        self.commands.iter().find_map(|command| match command {
            Command::WriteMetadata { path, manifest, .. } => Some(Manifest::decode(path, manifest).unwrap()),
            _ => None,
        })
    }

    pub fn barrier(&self) -> Option<Barrier> {
        self.messages().into_iter().find_map(|(_, message)| match message {
            ToTask::TriggerCheckpoint(barrier) => Some(barrier),
            _ => None,
        })
    }

    pub fn messages(&self) -> Vec<(AttemptId, ToTask)> {
        let message = |command: &Command| match command {
            Command::SendToTask { attempt, message } => Some((*attempt, message.clone())),
            _ => None,
        };
        self.commands.iter().filter_map(message).collect()
    }

    /// Subtasks that were triggered, as (vertex, index).
    pub fn triggered(&self) -> Vec<(u32, u32)> {
        let messages = self.messages().into_iter();
        let triggers = messages.filter(|(_, message)| matches!(message, ToTask::TriggerCheckpoint(_)));
        triggers.map(|(attempt, _)| (attempt.subtask.vertex.0, attempt.subtask.index)).collect()
    }

    pub fn completes(&self) -> usize {
        self.messages().iter().filter(|(_, message)| matches!(message, ToTask::NotifyComplete { .. })).count()
    }

    pub fn aborts(&self) -> usize {
        self.messages().iter().filter(|(_, message)| matches!(message, ToTask::NotifyAborted { .. })).count()
    }

    pub fn deletes(&self) -> Vec<String> {
        let files = |command: &Command| match command {
            Command::Delete { files, .. } => files.clone(),
            _ => vec![],
        };
        self.commands.iter().flat_map(files).collect()
    }

    pub fn asks_for_an_id(&self) -> bool {
        self.commands.contains(&Command::AllocateId)
    }

    pub fn armed(&self, timer: Timer) -> Option<Millis> {
        self.commands.iter().rev().find_map(|command| match command {
            Command::ArmTimer { timer: armed, at } if *armed == timer => Some(*at),
            _ => None,
        })
    }

    pub fn answer(&self) -> Option<(u64, Result<CompletedCheckpoint, Error>)> {
        self.commands.iter().find_map(|command| match command {
            Command::Answer { request, result } => Some((request.0, result.clone())),
            _ => None,
        })
    }

    /// Whether the job is restarting because of the last event.
    pub fn restarts(&self) -> bool {
        self.armed(Timer::Restart).is_some()
    }
}
