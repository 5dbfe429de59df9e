//! `/metrics` on a port of its own, for processes without a REST API.

use std::{net::SocketAddr, sync::Arc};

use axum::{
    Router,
    http::header,
    response::{IntoResponse, Response},
    routing::get,
};
use streamkeeper_types::{Code, Error, Result, ResultExt};
use tokio::runtime::Runtime;

use super::samples::{CONTENT_TYPE, Samples, render};
use crate::listener::BoundedListener;

/// Takes the samples of the moment.
type Take = Arc<dyn Fn() -> Samples + Send + Sync>;

/// Serves until it is dropped.
pub struct MetricsServer {
    address: SocketAddr,
    runtime: Option<Runtime>,
}

impl MetricsServer {
    /// Listens; `take` is called once a scrape and does not wait.
    ///
    /// # Errors
    /// `LISTEN_FAILED` when the address cannot be listened on.
    pub fn listen(listen: SocketAddr, take: Take) -> Result<Self> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("metrics")
            .enable_all()
            .build()
            .or_code(Code::Internal, || "starting the metrics' thread".into())?;
        let listener = runtime.block_on(BoundedListener::bind(listen)).map_err(|error| {
            Error::new(Code::ListenFailed, format!("{listen}: {error}"))
                .way_out("give --metrics another address or port, or end the process that has it")
        })?;
        let address = listener.address().or_code(Code::Internal, || "the metrics' address".into())?;
        let scrape = move || async move { scraped(take()) };
        let router = Router::new().route("/metrics", get(scrape)).route("/healthz", get(|| async { "ok\n" }));
        runtime.spawn(async {
            if let Err(error) = axum::serve(listener, router).await {
                tracing::error!(%error, "the metrics' server ended");
            }
        });
        Ok(Self { address, runtime: Some(runtime) })
    }

    /// Where it listens; the port is the real one if 0 was asked for.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for MetricsServer {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

fn scraped(samples: Samples) -> Response {
    ([(header::CONTENT_TYPE, CONTENT_TYPE)], render(samples)).into_response()
}
