//! What every request passes before its route: size, token, origin, time, and a net for panics.

use std::{panic::AssertUnwindSafe, sync::Arc, time::Duration};

use axum::{
    extract::{Request, State},
    http::{HeaderMap, Method, StatusCode, header},
    middleware::Next,
    response::{IntoResponse, Response},
};
use futures::FutureExt;
use streamkeeper_types::{Code, Error};
use tokio::time::timeout;

use super::{
    extract::{self, BODY_LIMIT},
    refusal::Refusal,
    server::Shared,
};

/// How long a request may take, the slow arrival of its body included. More than the longest wait for news.
const REQUEST_TIME: Duration = Duration::from_secs(45);

/// Paths that need no token: probes and Prometheus have none, and see nothing worth one.
const OPEN: [&str; 2] = ["/healthz", "/metrics"];

pub(super) fn is_open(path: &str) -> bool {
    OPEN.contains(&path)
}

pub(super) async fn guard(State(shared): State<Arc<Shared>>, request: Request, next: Next) -> Response {
    if let Err(refusal) = check(&shared, &request) {
        return refusal.into_response();
    }
    let answer = AssertUnwindSafe(next.run(request)).catch_unwind();
    match timeout(REQUEST_TIME, answer).await {
        Ok(Ok(response)) => response,
        Ok(Err(_)) => {
            Refusal::from(Error::internal("a handler panicked").way_out("report this as a bug")).into_response()
        }
        Err(_) => Refusal::from(Error::new(Code::Overloaded, "the request took too long").way_out("send it again"))
            .into_response(),
    }
}

fn check(shared: &Shared, request: &Request) -> Result<(), Refusal> {
    let headers = request.headers();
    let length = headers.get(header::CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse::<usize>().ok());
    if length.is_some_and(|length| length > BODY_LIMIT) {
        return Err(extract::too_large());
    }
    if request.method() != Method::GET && request.method() != Method::HEAD && is_from_elsewhere(headers) {
        let error = Error::new(Code::Unauthorized, "the request comes from a page of another site")
            .way_out("use the job's own page, the command line or curl");
        return Err(Refusal::with_status(StatusCode::FORBIDDEN, error));
    }
    let Some(token) = shared.token().filter(|_| !is_open(request.uri().path())) else { return Ok(()) };
    let given = headers.get(header::AUTHORIZATION).and_then(|given| given.to_str().ok()?.strip_prefix("Bearer "));
    if given.is_some_and(|given| token.is(given)) {
        return Ok(());
    }
    let error = Error::new(Code::Unauthorized, "the request needs the JobManager's token")
        .way_out("send it as `Authorization: Bearer <token>`");
    Err(error.into())
}

/// A browser sends, with the help of any page, simple requests to any address that it reaches, and says so in `Origin`.
fn is_from_elsewhere(headers: &HeaderMap) -> bool {
    let Some(origin) = headers.get(header::ORIGIN) else { return false };
    let origin = origin.to_str().ok().and_then(|origin| origin.split_once("://")).map(|(_, authority)| authority);
    let host = headers.get(header::HOST).and_then(|host| host.to_str().ok());
    origin.is_none() || origin != host
}
