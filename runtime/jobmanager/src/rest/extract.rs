//! What handlers take from a request. Everything that cannot be read is refused with a `Failure`, never with plain text.

use std::time::Duration;

use axum::{
    body::Bytes,
    extract::{FromRequest, FromRequestParts, Path, Query, Request, rejection::BytesRejection},
    http::{StatusCode, request::Parts},
};
use serde::{Deserialize, de::DeserializeOwned};
use streamkeeper_types::{Code, Error, duration};

use super::refusal::Refusal;

/// Bytes that a body may have. The largest sensible one names a savepoint.
pub(super) const BODY_LIMIT: usize = 64 << 10;

/// Longest time that a request may be held back until there is news.
pub(super) const LONGEST_WAIT: Duration = Duration::from_secs(30);

/// A JSON body; none at all counts as `{}`, so that `curl -X POST` will do where everything has a default.
pub(super) struct Body<T>(pub T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequest<S> for Body<T> {
    type Rejection = Refusal;

    async fn from_request(request: Request, state: &S) -> Result<Self, Refusal> {
        let bytes = Bytes::from_request(request, state).await.map_err(|rejection| unreadable(&rejection))?;
        let text = match bytes.trim_ascii() {
            [] => b"{}",
            text @ [b'{', ..] => text,
            // A list of the fields' values would do for serde.
            _ => return Err(Refusal::invalid("the body is no JSON object")),
        };
        serde_json::from_slice(text).map(Self).map_err(|error| Refusal::invalid(format!("the body: {error}")))
    }
}

fn unreadable(rejection: &BytesRejection) -> Refusal {
    if rejection.status() == StatusCode::PAYLOAD_TOO_LARGE {
        return too_large();
    }
    Refusal::invalid(format!("the body: {}", rejection.body_text()))
}

/// A body beyond [`BODY_LIMIT`].
pub(super) fn too_large() -> Refusal {
    Error::new(Code::RequestTooLarge, format!("a body has at most {BODY_LIMIT} bytes"))
        .way_out("no request needs more; see GET /openapi.json")
        .into()
}

/// The variable segments of a path.
pub(super) struct Segments<T>(pub T);

impl<S: Send + Sync, T: DeserializeOwned + Send> FromRequestParts<S> for Segments<T> {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Refusal> {
        let path = Path::from_request_parts(parts, state).await;
        path.map(|Path(value)| Self(value))
            .map_err(|rejection| Refusal::invalid(format!("the path {}: {}", parts.uri.path(), rejection.body_text())))
    }
}

/// `?wait=10s&after=7`: answer when there is news, at the latest after this time.
#[derive(Debug, Clone, Copy)]
pub(super) struct Wait {
    /// `None`: at once.
    pub within: Option<Duration>,
    /// The revision that the caller has seen.
    pub after: Option<u64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WaitParameters {
    wait: Option<String>,
    after: Option<u64>,
}

impl<S: Send + Sync> FromRequestParts<S> for Wait {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Refusal> {
        let query = Query::<WaitParameters>::from_request_parts(parts, state).await;
        let Query(WaitParameters { wait, after }) =
            query.map_err(|rejection| Refusal::invalid(format!("the query: {}", rejection.body_text())))?;
        let within = wait.as_deref().map(duration::parse).transpose();
        let within = within.map_err(|why| Refusal::invalid(format!("wait: {why}")))?;
        Ok(Self { within: within.map(|within| within.min(LONGEST_WAIT)), after })
    }
}
