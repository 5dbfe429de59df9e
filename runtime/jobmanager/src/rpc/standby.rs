//! Waiting for a leader's end.

use std::{
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use streamkeeper_protocol::control::{WatchRequest, control_client::ControlClient};
use streamkeeper_types::{Code, Result, ResultExt};
use tokio::time::{Instant, timeout};
use tonic::transport::Endpoint;

/// Between two looks at whether to stop.
const TICK: Duration = Duration::from_millis(100);

/// How watching ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Watched {
    /// The connection was refused or reset, or nothing was heard for too long. Whether the leader is dead the log decides.
    Gone,
    /// `stop` was set.
    Stopped,
}

/// Listens to the leader at `address` until it is gone (decision 19: at once when the connection is refused or reset, else
/// after `silence`).
///
/// # Errors
/// When the machine gives no threads.
pub fn watch(address: &str, token: &str, silence: Duration, stop: &AtomicBool) -> Result<Watched> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .or_code(Code::Internal, || "starting the standby's thread".into())?;
    runtime.block_on(async {
        let request = WatchRequest { token: token.to_owned() };
        let listening = async {
            let endpoint = Endpoint::from_shared(format!("http://{address}")).ok()?.tcp_nodelay(true);
            let channel = endpoint.connect().await.ok()?;
            Some(ControlClient::new(channel).watch(request).await.ok()?.into_inner())
        };
        let Ok(Some(mut signs)) = timeout(silence, listening).await else { return Ok(Watched::Gone) };
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
