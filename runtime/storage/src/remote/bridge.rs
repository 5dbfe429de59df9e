//! From a blocking call to the asynchronous clients: one small runtime for the whole process.

use std::sync::{OnceLock, mpsc};

use streamkeeper_types::{Code, Error, Result};
use tokio::runtime::{Builder, Handle, Runtime};

/// Requests wait for the network most of the time; encryption and checksums share these.
const WORKERS: usize = 2;

static RUNTIME: OnceLock<Result<Runtime, String>> = OnceLock::new();

/// The runtime on which all remote calls run.
pub(super) fn runtime() -> Result<Handle> {
    let runtime = RUNTIME.get_or_init(|| {
        // `Err` means that the program has chosen its provider already.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let builder = Builder::new_multi_thread().worker_threads(WORKERS).thread_name("storage").enable_all().build();
        builder.map_err(|error| error.to_string())
    });
    match runtime {
        Ok(runtime) => Ok(runtime.handle().clone()),
        Err(cause) => Err(Error::new(Code::Storage, format!("the threads for storage cannot be started: {cause}"))),
    }
}

/// Runs `call` on the runtime and waits for it, on any thread, one of another runtime included.
///
/// # Errors
/// `INTERNAL` if the call panicked.
pub(super) fn wait<T: Send + 'static>(runtime: &Handle, call: impl Future<Output = T> + Send + 'static) -> Result<T> {
    let (sender, receiver) = mpsc::sync_channel(1);
    runtime.spawn(async move {
        // The receiver waits below for as long as this runs.
        let _ = sender.send(call.await);
    });
    receiver.recv().map_err(|_| Error::internal("a storage call ended without an answer"))
}
