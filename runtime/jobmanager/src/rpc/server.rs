//! The control plane's server.

use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use parking_lot::Mutex;
use streamkeeper_engine::{Clock, Deployment, SystemClock, task::ReportSink};
use streamkeeper_protocol::{
    FromTask, TaskReport, ToTask,
    control::{
        Alive, Command, FromTaskManager, JobProgram, MAX_MESSAGE, PROTOCOL, Register, TlsIdentity, ToTaskManager,
        WatchRequest, Welcome,
        control_server::{Control, ControlServer},
        decode, encode, from_task_manager as from, to_task_manager as to, unusable,
    },
    rest::TaskManagerView,
};
use streamkeeper_types::{AttemptId, Code, Error, Result, ResultExt};
use tokio::{
    net::TcpListener,
    runtime::Runtime,
    sync::{mpsc, oneshot},
    time::{interval, timeout},
};
use tokio_stream::wrappers::{ReceiverStream, TcpListenerStream};
use tonic::{Request, Response, Status, Streaming, transport::Server};

use super::registry::{Member, Registry};
use crate::shell::{Inbox, TaskManagers};

/// Messages that may wait for one TaskManager. One that lets so many pile up does not run any more.
const OUTBOX: usize = 16_384;

/// A shared secret; never shown.
#[derive(Clone, PartialEq, Eq)]
pub struct Token(String);

impl Token {
    #[must_use]
    pub fn new(secret: String) -> Self {
        Self(secret)
    }

    /// Compares in a time that does not depend on where the two differ.
    pub(crate) fn is(&self, given: &str) -> bool {
        let differing = self.0.bytes().zip(given.bytes()).fold(0, |differing, (a, b)| differing | (a ^ b));
        self.0.len() == given.len() && differing == 0
    }
}

impl std::fmt::Debug for Token {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Token(…)")
    }
}

/// How the control plane listens.
#[derive(Debug, Clone)]
pub struct ControlOptions {
    pub listen: SocketAddr,
    /// What TaskManagers must show; `None`: nothing.
    pub token: Option<Token>,
    /// `None`: in the clear.
    pub tls: Option<TlsIdentity>,
    /// `liveness.interval`: a sign of life this often.
    pub alive_every: Duration,
    /// `liveness.timeout`: silence after which a TaskManager is lost.
    pub silence: Duration,
}

impl ControlOptions {
    /// The defaults of runtime-rules.md §1.5.
    #[must_use]
    pub fn new(listen: SocketAddr) -> Self {
        Self {
            listen,
            token: None,
            tls: None,
            alive_every: Duration::from_millis(250),
            silence: Duration::from_secs(2),
        }
    }
}

/// How long the end of the streams is waited for.
const SHUTDOWN: Duration = Duration::from_secs(1);

type Outbox = mpsc::Sender<Result<ToTaskManager, Status>>;

struct Shared {
    options: ControlOptions,
    /// Encoded once.
    program: Vec<u8>,
    registry: Mutex<Registry<Outbox>>,
    connections: AtomicU64,
    inbox: Inbox,
    reports: ReportSink,
}

/// The TaskManagers that connect to this process. Dropping it ends all streams.
pub struct RemoteTaskManagers {
    shared: Arc<Shared>,
    address: SocketAddr,
    /// Ends the server when dropped.
    _stop: oneshot::Sender<()>,
    runtime: Option<Runtime>,
}

impl RemoteTaskManagers {
    /// Listens. TaskManagers are welcomed with `program`, and what happens goes to `inbox`.
    ///
    /// # Errors
    /// When the address cannot be listened on.
    pub fn listen(options: ControlOptions, program: &JobProgram, inbox: &Inbox) -> Result<Self> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .thread_name("control")
            .enable_all()
            .build()
            .or_code(Code::Internal, || "starting the control plane's threads".into())?;
        let mut server = Server::builder().tcp_nodelay(true);
        if let Some(tls) = &options.tls {
            server = server.tls_config(tls.server()).map_err(|error| unusable(&error))?;
        }
        let place = options.listen;
        let listener = runtime
            .block_on(TcpListener::bind(place))
            .map_err(|error| Error::new(Code::ListenFailed, format!("{place}: {error}")).way_out(LISTEN_WAY_OUT))?;
        let address = listener.local_addr().or_code(Code::Internal, || "the control plane's address".into())?;
        let shared = Arc::new(Shared {
            options,
            program: encode(program)?,
            registry: Mutex::new(Registry::new()),
            connections: AtomicU64::new(0),
            inbox: inbox.clone(),
            reports: inbox.report_sink(),
        });
        let service = ControlServer::new(Service(Arc::clone(&shared)))
            .max_decoding_message_size(MAX_MESSAGE)
            .max_encoding_message_size(MAX_MESSAGE);
        let (stop, stopped) = oneshot::channel();
        let until_stopped = async {
            let _ = stopped.await;
        };
        let serve =
            server.add_service(service).serve_with_incoming_shutdown(TcpListenerStream::new(listener), until_stopped);
        runtime.spawn(async {
            if let Err(error) = serve.await {
                tracing::error!(%error, "the control plane ended");
            }
        });
        Ok(Self { shared, address, _stop: stop, runtime: Some(runtime) })
    }

    /// Where it listens; the port is the real one if 0 was asked for.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for RemoteTaskManagers {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            // The port is free again afterwards: this process may lead once more.
            runtime.shutdown_timeout(SHUTDOWN);
        }
    }
}

const LISTEN_WAY_OUT: &str = "give another address or port, or end the process that has it";

impl TaskManagers for RemoteTaskManagers {
    fn slots(&self) -> u32 {
        self.shared.registry.lock().total_slots()
    }

    fn members(&self) -> Vec<TaskManagerView> {
        self.shared.registry.lock().members()
    }

    fn deploy(&self, run: Deployment) -> Result<()> {
        let parts = self.shared.registry.lock().deploy(run)?;
        for (outbox, part) in parts {
            let message = to::Message::Deployment(encode(&part)?.into());
            if push(&outbox, message).is_err() {
                // Its stream is over; that its attempts are lost is told by whoever noticed.
                tracing::debug!("a TaskManager left while a run was deployed");
            }
        }
        Ok(())
    }

    fn send(&self, attempt: AttemptId, command: ToTask) -> Result<()> {
        let outbox = self.shared.registry.lock().route(attempt).map(|(_, member)| member.outbox.clone());
        let outbox = outbox.ok_or_else(|| Error::internal(format!("{attempt} does not run anywhere")))?;
        let (attempt, message) = (encode(&attempt)?.into(), encode(&command)?.into());
        push(&outbox, to::Message::Command(Command { attempt, message }))
    }
}

impl Shared {
    fn tell_lost(&self, name: &str, lost: Vec<AttemptId>, why: &str) {
        tracing::warn!(task_manager = name, why, tasks = lost.len(), "a TaskManager is gone");
        let cause = format!("TaskManager {name} is gone: {why}");
        let error = |attempt| (attempt, Error::new(Code::TaskManagerLost, cause.clone()));
        self.inbox.slots_changed(lost.into_iter().map(error).collect());
    }

    /// Whether the newcomer may stay.
    fn check(&self, newcomer: &Register) -> Result<()> {
        let refused = |cause: String, way_out: &str| Err(Error::new(Code::PeerRefused, cause).way_out(way_out));
        if newcomer.protocol != PROTOCOL {
            let ours = env!("CARGO_PKG_VERSION");
            return refused(
                format!(
                    "the TaskManager ({}) speaks protocol {}, the JobManager ({ours}) speaks {PROTOCOL}",
                    newcomer.version, newcomer.protocol
                ),
                "run the same version of streamkeeper in all processes of a job",
            );
        }
        if self.options.token.as_ref().is_some_and(|token| !token.is(&newcomer.token)) {
            return refused("the token is not the JobManager's".into(), "give the TaskManager the JobManager's token");
        }
        if newcomer.slots == 0 || newcomer.task_manager.is_empty() {
            return refused("the TaskManager offers nothing".into(), "give it at least one slot");
        }
        Ok(())
    }

    fn on_message(&self, message: from::Message) -> Result<()> {
        let from::Message::Report(report) = message else { return Ok(()) };
        let report: FromTask = decode(&report)?;
        if let TaskReport::State(state) = &report.report
            && state.is_terminal()
        {
            self.registry.lock().ended(report.attempt);
        }
        (self.reports)(report);
        Ok(())
    }
}

/// Never waits. One that lets its queue fill up is disconnected with the next sign of life.
fn push(outbox: &Outbox, message: to::Message) -> Result<()> {
    outbox
        .try_send(Ok(ToTaskManager { message: Some(message) }))
        .map_err(|_| Error::new(Code::TaskManagerLost, "a TaskManager does not take its messages"))
}

struct Service(Arc<Shared>);

#[tonic::async_trait]
impl Control for Service {
    type ConnectStream = ReceiverStream<Result<ToTaskManager, Status>>;
    type WatchStream = ReceiverStream<Result<Alive, Status>>;

    async fn watch(&self, request: Request<WatchRequest>) -> Result<Response<Self::WatchStream>, Status> {
        let shared = Arc::clone(&self.0);
        if shared.options.token.as_ref().is_some_and(|token| !token.is(&request.get_ref().token)) {
            return Err(Status::permission_denied("the token is not the JobManager's"));
        }
        let (signs, stream) = mpsc::channel(1);
        tokio::spawn(async move {
            let mut alive = interval(shared.options.alive_every);
            loop {
                alive.tick().await;
                if signs.send(Ok(Alive {})).await.is_err() {
                    return;
                }
            }
        });
        Ok(Response::new(ReceiverStream::new(stream)))
    }

    async fn connect(
        &self,
        request: Request<Streaming<FromTaskManager>>,
    ) -> Result<Response<Self::ConnectStream>, Status> {
        let shared = Arc::clone(&self.0);
        let mut inbound = request.into_inner();
        let first = timeout(shared.options.silence, inbound.message()).await;
        let Ok(Ok(Some(FromTaskManager { message: Some(from::Message::Register(newcomer)) }))) = first else {
            return Err(Status::invalid_argument("the first message of a TaskManager is its registration"));
        };
        let (outbox, stream) = mpsc::channel(OUTBOX);
        let answer = Response::new(ReceiverStream::new(stream));
        if let Err(refusal) = shared.check(&newcomer) {
            tracing::warn!(task_manager = newcomer.task_manager, %refusal, "a TaskManager was refused");
            let body = encode(&refusal).map_err(|error| Status::internal(error.to_string()))?;
            // The queue is empty, and its other end lives.
            let _ = outbox.try_send(Ok(ToTaskManager { message: Some(to::Message::Refused(body.into())) }));
            return Ok(answer);
        }
        let welcome = to::Message::Welcome(Welcome { program: shared.program.clone().into() });
        let _ = outbox.try_send(Ok(ToTaskManager { message: Some(welcome) }));
        tokio::spawn(serve(shared, newcomer, inbound, outbox));
        Ok(answer)
    }
}

/// One TaskManager from its welcome to its end.
async fn serve(shared: Arc<Shared>, newcomer: Register, mut inbound: Streaming<FromTaskManager>, outbox: Outbox) {
    let name = newcomer.task_manager;
    let connection = shared.connections.fetch_add(1, Ordering::Relaxed);
    let member = Member {
        slots: newcomer.slots,
        address: newcomer.data_address,
        outbox: outbox.clone(),
        version: newcomer.version,
        connected_at: SystemClock.now(),
        connection,
    };
    tracing::info!(task_manager = name, slots = member.slots, "a TaskManager came");
    let lost = shared.registry.lock().join(name.clone(), member);
    let error = |attempt| (attempt, Error::new(Code::TaskManagerLost, format!("TaskManager {name} began anew")));
    shared.inbox.slots_changed(lost.into_iter().map(error).collect());
    let mut alive = interval(shared.options.alive_every);
    let mut heard = tokio::time::Instant::now();
    let why = loop {
        tokio::select! {
            _ = alive.tick() => {
                if heard.elapsed() > shared.options.silence {
                    break "it is silent".to_owned();
                }
                let message = Some(to::Message::Alive(Alive {}));
                if outbox.try_send(Ok(ToTaskManager { message })).is_err() {
                    break "it does not take its messages".to_owned();
                }
            }
            message = inbound.message() => match message {
                Ok(Some(FromTaskManager { message })) => {
                    heard = tokio::time::Instant::now();
                    if let Some(Err(error)) = message.map(|message| shared.on_message(message)) {
                        break error.to_string();
                    }
                }
                Ok(None) => break "it left".to_owned(),
                Err(status) => break status.message().to_owned(),
            },
        }
    };
    let lost = shared.registry.lock().leave(&name, connection);
    shared.tell_lost(&name, lost, &why);
}
