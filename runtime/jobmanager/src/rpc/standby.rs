//! Waiting for a leader's end.

use std::{
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use streamkeeper_protocol::control::{TlsIdentity, WatchRequest, control_client::ControlClient, endpoint};
use streamkeeper_types::{Code, Error, Result, ResultExt};
use tokio::time::{Instant, timeout};

/// Between two looks at whether to stop.
const TICK: Duration = Duration::from_millis(100);

/// How watching ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Watched {
    /// Nobody answers at that address.
    Absent,
    /// The leader was there, then its connection was reset or nothing was heard for too long. Whether it is dead the log
    /// decides.
    Gone,
    /// `stop` was set.
    Stopped,
}

/// Listens to the leader at `address` until it is gone (decision 19: at once when the connection is refused or reset, else
/// after `silence`). Calls `leads` once it answers.
///
/// # Errors
/// `PEER_REFUSED` if the leader does not know our token; `OPTION_INVALID` for certificates that are none; when the machine
/// gives no threads.
pub fn watch(
    address: &str,
    token: &str,
    tls: Option<&TlsIdentity>,
    silence: Duration,
    stop: &AtomicBool,
    leads: impl FnOnce(),
) -> Result<Watched> {
    let endpoint = endpoint(address, tls)?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .or_code(Code::Internal, || "starting the standby's thread".into())?;
    runtime.block_on(async {
        let request = WatchRequest { token: token.to_owned() };
        let listening = async {
            let Ok(channel) = endpoint.connect().await else { return Ok(None) };
            match ControlClient::new(channel).watch(request).await {
                Ok(signs) => Ok(Some(signs.into_inner())),
                // It lives, and claiming its job would only disturb it.
                Err(status) if status.code() == tonic::Code::PermissionDenied => Err(refused(address, &status)),
                Err(_) => Ok(None),
            }
        };
        let Ok(listening) = timeout(silence, listening).await else { return Ok(Watched::Absent) };
        let Some(mut signs) = listening? else { return Ok(Watched::Absent) };
        leads();
        let mut heard = Instant::now();
        loop {
            if stop.load(Ordering::SeqCst) {
                return Ok(Watched::Stopped);
            }
            match timeout(TICK, signs.message()).await {
                Ok(Ok(Some(_))) => heard = Instant::now(),
                Ok(Ok(None) | Err(_)) => return Ok(Watched::Gone),
                Err(_) if heard.elapsed() > silence => return Ok(Watched::Gone),
                Err(_) => {}
            }
        }
    })
}

fn refused(address: &str, status: &tonic::Status) -> Error {
    Error::new(Code::PeerRefused, format!("the leading JobManager at {address}: {}", status.message()))
        .way_out("give all JobManagers of a job the same token")
}
