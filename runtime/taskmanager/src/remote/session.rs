//! One JobManager, from the first word to the last.

use std::{
    collections::{BTreeMap, HashMap},
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use streamkeeper_engine::{JobGraph, OperatorRestore, RestoredLists, TaskDeployment};
use streamkeeper_network::{
    PeerId,
    tcp::{DataPlane, Peer},
};
use streamkeeper_protocol::{
    FromTask, TaskReport, TaskState,
    control::{
        Alive, Deployment, FromTaskManager, JobProgram, MAX_MESSAGE, PROTOCOL, Register, ToTaskManager,
        control_client::ControlClient, decode, endpoint, from_task_manager as from, innermost, to_task_manager as to,
    },
};
use streamkeeper_state::DroppedState;
use streamkeeper_types::{AttemptId, Code, Error, Result, SubtaskId};
use tokio::{
    sync::mpsc,
    time::{Instant, interval, timeout},
};
use tokio_stream::wrappers::ReceiverStream;
use tonic::Streaming;

use super::{
    Prepare, Prepared, RemoteOptions,
    broken::BrokenChannels,
    reports::{Outbox, Reports},
    work_folder::WorkFolder,
};
use crate::{
    TaskManager,
    wiring::{Apart, Hosts},
};

/// Reports that may wait for the JobManager.
const OUTBOX: usize = 16_384;

pub(super) struct Session<'a> {
    pub options: &'a RemoteOptions,
    pub prepare: &'a Prepare,
    pub plane: &'a Arc<DataPlane>,
    pub reports: &'a Reports,
    pub broken: &'a BrokenChannels,
    pub name: &'a str,
    pub address: &'a str,
    pub stop: &'a Arc<AtomicBool>,
}

pub(super) enum Outcome {
    /// The JobManager is gone.
    Lost(String),
    Stopped,
}

impl Session<'_> {
    /// # Errors
    /// When no session came about: nobody listens, or this process was refused.
    pub(super) async fn run(&self) -> Result<Outcome> {
        let (outbox, reports) = mpsc::channel(OUTBOX);
        let mut inbound = self.connect(&outbox, reports).await?;
        let program = self.welcome(&mut inbound).await?;
        let work = Work::begin(self, &program)?;
        self.reports.begin(outbox.clone());
        let outcome = self.listen(&work, &mut inbound, &outbox).await;
        // Nobody asked for what follows: the JobManager learns of it by the end of the stream, which is a failure to it. The
        // tasks have ended by then, as long as that does not take longer than its patience with a silent TaskManager.
        self.reports.end();
        work.manager.shut_down();
        outcome
    }

    async fn connect(
        &self,
        outbox: &Outbox,
        reports: mpsc::Receiver<FromTaskManager>,
    ) -> Result<Streaming<ToTaskManager>> {
        let gone = |cause: String| Error::new(Code::ConnectionLost, format!("JobManager at {}: {cause}", self.address));
        let endpoint = endpoint(self.address, self.options.tls.as_ref())?.connect_timeout(self.options.silence);
        let channel = timeout(self.options.silence, endpoint.connect()).await;
        let channel = channel.map_err(|_| gone("it does not answer".into()))?;
        let channel = channel.map_err(|error| gone(innermost(&error)))?;
        let register = Register {
            protocol: PROTOCOL,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            task_manager: self.name.to_owned(),
            token: self.options.token.clone(),
            slots: self.options.slots,
            data_address: self.data_address(),
        };
        let message = FromTaskManager { message: Some(from::Message::Register(register)) };
        outbox.try_send(message).map_err(|error| gone(error.to_string()))?;
        let mut client =
            ControlClient::new(channel).max_decoding_message_size(MAX_MESSAGE).max_encoding_message_size(MAX_MESSAGE);
        let stream = timeout(self.options.silence, client.connect(ReceiverStream::new(reports))).await;
        let stream = stream.map_err(|_| gone("it does not answer".into()))?;
        Ok(stream.map_err(|status| gone(status.message().to_owned()))?.into_inner())
    }

    async fn welcome(&self, inbound: &mut Streaming<ToTaskManager>) -> Result<JobProgram> {
        let gone = |cause: &str| Error::new(Code::ConnectionLost, format!("JobManager at {}: {cause}", self.address));
        let first = timeout(self.options.silence, inbound.message()).await.map_err(|_| gone("it does not answer"))?;
        match first.map_err(|status| gone(status.message()))?.and_then(|first| first.message) {
            Some(to::Message::Welcome(welcome)) => decode(&welcome.program),
            Some(to::Message::Refused(error)) => Err(decode::<Error>(&error)?.at(self.address.to_owned())),
            _ => Err(gone("it begins with something else than a welcome")),
        }
    }

    /// Where other TaskManagers reach this one.
    fn data_address(&self) -> String {
        let own: SocketAddr = self.plane.address();
        match &self.options.advertise {
            Some(host) => format!("{host}:{}", own.port()),
            None => own.to_string(),
        }
    }

    async fn listen(&self, work: &Work, inbound: &mut Streaming<ToTaskManager>, outbox: &Outbox) -> Result<Outcome> {
        let mut alive = interval(self.options.alive_every);
        let mut heard = Instant::now();
        loop {
            tokio::select! {
                _ = alive.tick() => {
                    if self.stop.load(Ordering::SeqCst) {
                        return Ok(Outcome::Stopped);
                    }
                    if heard.elapsed() > self.options.silence {
                        return Ok(Outcome::Lost("it is silent".into()));
                    }
                    if self.reports.is_broken() {
                        return Ok(Outcome::Lost("it does not take our reports".into()));
                    }
                    let message = FromTaskManager { message: Some(from::Message::Alive(Alive {})) };
                    if outbox.try_send(message).is_err() {
                        return Ok(Outcome::Lost("it does not take our messages".into()));
                    }
                }
                message = inbound.message() => {
                    heard = Instant::now();
                    match message {
                        Ok(Some(ToTaskManager { message: Some(message) })) => work.on_message(message)?,
                        Ok(Some(_)) => {}
                        Ok(None) => return Ok(Outcome::Lost("it left".into())),
                        Err(status) => return Ok(Outcome::Lost(status.message().to_owned())),
                    }
                }
            }
        }
    }
}

/// The job as it runs here.
struct Work {
    prepared: Prepared,
    manager: Arc<TaskManager>,
    plane: Arc<DataPlane>,
    reports: Reports,
    name: String,
    /// Removed when the work is over.
    _folder: WorkFolder,
}

impl Work {
    fn begin(session: &Session, program: &JobProgram) -> Result<Self> {
        let mut prepared = (session.prepare)(program)?;
        prepared.tasks.slots = session.options.slots;
        let folder = WorkFolder::claim(&prepared.tasks.local_dir)?;
        folder.path().clone_into(&mut prepared.tasks.local_dir);
        session.reports.figures().begin(&prepared.namespace, &prepared.name);
        let reports = session.reports.clone();
        let broken = session.broken.clone();
        let sink = Arc::new(move |report: FromTask| reports.send(&broken.explain(report)));
        let manager = Arc::new(TaskManager::start(
            prepared.tasks.clone(),
            Arc::clone(&prepared.storage),
            Arc::clone(&prepared.backend),
            Arc::clone(&prepared.clock),
            sink,
        )?);
        session.broken.begin(&manager);
        Ok(Self {
            prepared,
            manager,
            plane: Arc::clone(session.plane),
            reports: session.reports.clone(),
            name: session.name.to_owned(),
            _folder: folder,
        })
    }

    fn on_message(&self, message: to::Message) -> Result<()> {
        match message {
            to::Message::Deployment(deployment) => {
                self.deploy(decode(&deployment)?);
                Ok(())
            }
            to::Message::Command(command) => {
                let attempt: AttemptId = decode(&command.attempt)?;
                if let Err(error) = self.manager.send(attempt, decode(&command.message)?) {
                    tracing::debug!(%attempt, %error, "a command comes too late");
                }
                Ok(())
            }
            to::Message::Welcome(_) | to::Message::Refused(_) | to::Message::Alive(_) => Ok(()),
        }
    }

    /// Starts our part of a run. What cannot be started is reported as failed, task by task.
    fn deploy(&self, deployment: Deployment) {
        let attempts: Vec<AttemptId> = deployment.tasks.iter().map(|task| task.attempt).collect();
        let Err(error) = self.try_deploy(deployment) else { return };
        for attempt in attempts {
            let report = TaskReport::State(TaskState::Failed(error.clone()));
            self.reports.send(&FromTask { attempt, report });
        }
    }

    fn try_deploy(&self, deployment: Deployment) -> Result<()> {
        let Deployment { generation, number, parallelism, max_parallelism, tasks, hosts } = deployment;
        let newest = self.plane.fence(generation);
        if generation < newest {
            // R25: a JobManager that thawed after others took the job over.
            return Err(Error::new(Code::Fenced, format!("generation {newest} runs, and this is of {generation}")));
        }
        let graph = Arc::new(JobGraph::chain(&self.prepared.graph, parallelism, max_parallelism));
        let attempt_of = |subtask: SubtaskId| AttemptId { generation, subtask, number };
        let elsewhere: HashMap<SubtaskId, Peer> = hosts
            .into_iter()
            .filter(|host| host.task_manager != self.name)
            .map(|host| (host.subtask, Peer { id: PeerId::new(&host.task_manager), address: host.address }))
            .collect();
        let apart = Apart { plane: &self.plane, elsewhere, attempt_of: &attempt_of };
        let tasks = tasks.into_iter().map(|task| {
            let restore: BTreeMap<_, _> = task
                .restore
                .into_iter()
                .map(|restore| {
                    let lists = RestoredLists { from: restore.from, lists: restore.lists };
                    let dropped = if restore.may_drop { DroppedState::Allow } else { DroppedState::Refuse };
                    let (keyed, finished) = (restore.keyed, restore.finished);
                    let of_operator = OperatorRestore { lists, keyed, finished, dropped };
                    (restore.operator, of_operator)
                })
                .collect();
            TaskDeployment { attempt: task.attempt, restore }
        });
        let run = streamkeeper_engine::Deployment { graph, tasks: tasks.collect() };
        self.manager.deploy_among(run, &Hosts::Apart(&apart))
    }
}
