//! What a data plane is started with.

use std::{net::SocketAddr, time::Duration};

use super::TlsOptions;
use crate::{frame::PeerId, link::LinkLimits};

/// Who this TaskManager is. All but the id is the same in every process of a job's cluster.
#[derive(Clone)]
pub struct Identity {
    pub id: PeerId,
    /// Processes with another token are refused. It goes over the wire as it is: where others can listen, use TLS.
    pub token: String,
    pub job: String,
}

impl std::fmt::Debug for Identity {
    /// Without the token.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Identity").field("id", &self.id).field("job", &self.job).finish_non_exhaustive()
    }
}

#[derive(Debug, Clone)]
pub struct DataPlaneOptions {
    pub identity: Identity,
    /// Port 0: any free one; [`super::DataPlane::address`] tells.
    pub listen: SocketAddr,
    pub tls: Option<TlsOptions>,
    /// Largest batch frame in bytes, and so the largest row that travels.
    pub largest_batch: u32,
    /// Channels of one direction of one connection.
    pub channels: usize,
    /// Connections, with those that are being made.
    pub connections: usize,
    /// For TLS and greeting together, from the first byte.
    pub handshake_timeout: Duration,
    /// How long a TaskManager is dialled, or waited for.
    pub connect_timeout: Duration,
    /// How long one end of a channel waits for the other to be deployed.
    pub deploy_timeout: Duration,
    /// After this long without any other frame, a heartbeat.
    pub heartbeat: Duration,
    /// After this long without a byte, the connection is lost.
    pub silence_timeout: Duration,
    /// How long [`super::DataPlane::shut_down`] waits for what is still to be sent.
    pub farewell_timeout: Duration,
}

impl DataPlaneOptions {
    /// The defaults: lost after 2 s of silence (decision 19), rows up to 64 MiB.
    #[must_use]
    pub fn new(identity: Identity, listen: SocketAddr) -> Self {
        Self {
            identity,
            listen,
            tls: None,
            largest_batch: 64 << 20,
            channels: 1 << 16,
            connections: 1 << 10,
            handshake_timeout: Duration::from_secs(5),
            connect_timeout: Duration::from_secs(10),
            deploy_timeout: Duration::from_secs(30),
            heartbeat: Duration::from_millis(250),
            silence_timeout: Duration::from_secs(2),
            farewell_timeout: Duration::from_secs(1),
        }
    }

    pub(super) fn link_limits(&self) -> LinkLimits {
        LinkLimits {
            heartbeat: millis(self.heartbeat),
            silence: millis(self.silence_timeout),
            connect: millis(self.connect_timeout),
            deploy: millis(self.deploy_timeout),
            channels: self.channels,
        }
    }
}

pub(super) fn millis(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX / 4).min(i64::MAX / 4)
}
