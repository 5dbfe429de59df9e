//! What a TaskManager of its own process is started with.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use streamkeeper_engine::{Clock, StreamGraph};
use streamkeeper_protocol::control::{JobProgram, TlsIdentity};
use streamkeeper_state::Backend;
use streamkeeper_storage::Storage;
use streamkeeper_types::Result;

use crate::TaskManagerOptions;

/// How it finds its JobManager, and how others find it.
#[derive(Clone)]
pub struct RemoteOptions {
    /// `host:port` of every JobManager that may lead; tried in turn.
    pub job_managers: Vec<String>,
    /// Shown to JobManagers and other TaskManagers; empty where none is asked for. Never logged.
    pub token: String,
    /// For the connections to JobManagers and to other TaskManagers; `None`: in the clear.
    pub tls: Option<TlsIdentity>,
    pub slots: u32,
    /// Where other TaskManagers connect; port 0: any free one.
    pub data_listen: SocketAddr,
    /// Host by which others reach this one; by default the address of `data_listen`.
    pub advertise: Option<String>,
    /// Where Prometheus finds `/metrics`; `None`: nowhere.
    pub metrics: Option<SocketAddr>,
    /// `liveness.interval`: a sign of life this often.
    pub alive_every: Duration,
    /// `liveness.timeout`: silence after which the JobManager is lost.
    pub silence: Duration,
    /// Pause before the next JobManager is tried.
    pub retry: Duration,
}

/// What runs a job's tasks here.
pub struct Prepared {
    /// Of the job, for metrics.
    pub namespace: String,
    pub name: String,
    pub graph: StreamGraph,
    /// The job's folder.
    pub storage: Arc<dyn Storage>,
    pub backend: Arc<dyn Backend>,
    pub clock: Arc<dyn Clock>,
    /// Its folder may be shared: each process takes one of its own below it.
    pub tasks: TaskManagerOptions,
}

/// Makes that from a program: injected, since only the binary knows SQL and connectors.
pub type Prepare = Arc<dyn Fn(&JobProgram) -> Result<Prepared> + Send + Sync>;
