//! The server's life: it listens from the start, and answers for a job while this process leads it.

use std::{net::SocketAddr, sync::Arc, thread, time::Duration};

use parking_lot::RwLock;
use streamkeeper_engine::{Clock, SystemClock};
use streamkeeper_types::{Code, Error, Result, ResultExt};
use tokio::{runtime::Runtime, sync::oneshot};

use super::{Led, refusal::Refusal, requests::Requests, routes};
use crate::{listener::BoundedListener, rpc::Token};

/// Storage calls of requests at once; the others wait.
const BLOCKING_THREADS: usize = 8;

/// Between two looks at whether all outcomes were fetched.
const TICK: Duration = Duration::from_millis(50);

/// How the REST API listens.
#[derive(Debug, Clone)]
pub struct RestOptions {
    pub listen: SocketAddr,
    /// What callers must show as bearer token; `None`: nothing.
    pub token: Option<Token>,
    /// Tells when requests began, and when their outcomes are forgotten.
    pub clock: Arc<dyn Clock>,
}

impl RestOptions {
    #[must_use]
    pub fn new(listen: SocketAddr, token: Option<Token>) -> Self {
        Self { listen, token, clock: Arc::new(SystemClock) }
    }
}

/// What all handlers share.
pub(super) struct Shared {
    token: Option<Token>,
    role: RwLock<Role>,
    pub(super) requests: Requests,
}

enum Role {
    Leader(Arc<Led>),
    /// With the address of the leader's control plane, where known.
    Standby(Option<String>),
}

impl Shared {
    pub(super) fn token(&self) -> Option<&Token> {
        self.token.as_ref()
    }

    /// The led job, if there is one.
    pub(super) fn led(&self) -> Option<Arc<Led>> {
        match &*self.role.read() {
            Role::Leader(led) => Some(Arc::clone(led)),
            Role::Standby(_) => None,
        }
    }

    /// The led job.
    ///
    /// # Errors
    /// `NOT_LEADING` with the leader's address, where known (B98).
    pub(super) fn leading(&self) -> Result<Arc<Led>, Refusal> {
        match &*self.role.read() {
            Role::Leader(led) => Ok(Arc::clone(led)),
            Role::Standby(leader) => {
                let error = match leader {
                    Some(leader) => Error::new(Code::NotLeading, format!("the JobManager at {leader} leads the job"))
                        .way_out("ask that process, on the port of its --rest"),
                    None => Error::new(Code::NotLeading, "this JobManager does not lead the job yet")
                        .way_out("ask again in a moment"),
                };
                Err(error.into())
            }
        }
    }

    /// The job with this id.
    ///
    /// # Errors
    /// `NOT_LEADING`, or `NOT_FOUND` if it is another's id.
    pub(super) fn job(&self, id: &str) -> Result<Arc<Led>, Refusal> {
        let led = self.leading()?;
        if led.id == id {
            return Ok(led);
        }
        Err(Refusal::not_found(format!("there is no job `{id}` here; GET /jobs lists the ids")))
    }
}

/// The REST API of a JobManager. Dropping it closes all connections.
pub struct RestServer {
    shared: Arc<Shared>,
    address: SocketAddr,
    /// Ends the server when dropped.
    stop: Option<oneshot::Sender<()>>,
    runtime: Option<Runtime>,
}

impl RestServer {
    /// Listens. Until [`RestServer::lead`] everything about the job is answered with 503.
    ///
    /// # Errors
    /// `LISTEN_FAILED` when the address cannot be listened on.
    pub fn listen(options: RestOptions) -> Result<Self> {
        let RestOptions { listen, token, clock } = options;
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .max_blocking_threads(BLOCKING_THREADS)
            .thread_name("rest")
            .enable_all()
            .build()
            .or_code(Code::Internal, || "starting the REST API's threads".into())?;
        let listener = runtime.block_on(BoundedListener::bind(listen)).map_err(|error| {
            Error::new(Code::ListenFailed, format!("{listen}: {error}"))
                .way_out("give --rest another address or port, or end the process that has it")
        })?;
        let address = listener.address().or_code(Code::Internal, || "the REST API's address".into())?;
        let requests = Requests::new(clock);
        let shared = Arc::new(Shared { token, role: RwLock::new(Role::Standby(None)), requests });
        let router = routes::router(Arc::clone(&shared));
        let (stop, stopped) = oneshot::channel::<()>();
        let stopped = async {
            let _ = stopped.await;
        };
        runtime.spawn(async {
            if let Err(error) = axum::serve(listener, router).with_graceful_shutdown(stopped).await {
                tracing::error!(%error, "the REST API ended");
            }
        });
        Ok(Self { shared, address, stop: Some(stop), runtime: Some(runtime) })
    }

    /// Where it listens; the port is the real one if 0 was asked for.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// From now on it answers for this job.
    pub fn lead(&self, led: Led) {
        *self.shared.role.write() = Role::Leader(Arc::new(led));
    }

    /// From now on somebody else leads: `leader` is the address of its control plane, where known.
    pub fn stand_by(&self, leader: Option<String>) {
        *self.shared.role.write() = Role::Standby(leader);
    }

    /// Before the process ends: gives those who wait for an outcome, such as that of a stop, this much time to fetch it.
    pub fn let_outcomes_be_fetched(&self, within: Duration) {
        let mut left = within;
        while self.shared.requests.has_untold() && !left.is_zero() {
            thread::sleep(TICK);
            left = left.saturating_sub(TICK);
        }
    }
}

impl Drop for RestServer {
    fn drop(&mut self) {
        self.stop.take();
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}
