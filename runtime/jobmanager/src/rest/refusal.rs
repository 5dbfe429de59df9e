//! Everything that is not answered as asked.

use axum::{
    Json,
    http::{HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};
use streamkeeper_protocol::rest::Failure;
use streamkeeper_types::{Code, Error, Fault};

/// An error with the status that it is answered with.
#[derive(Debug)]
pub(super) struct Refusal {
    status: StatusCode,
    error: Error,
}

impl Refusal {
    /// With another status than the error's own.
    pub(super) fn with_status(status: StatusCode, error: Error) -> Self {
        Self { status, error }
    }

    /// Nothing lies under the path.
    pub(super) fn not_found(cause: impl Into<String>) -> Self {
        Error::new(Code::NotFound, cause).into()
    }

    /// The request cannot be read.
    pub(super) fn invalid(cause: impl Into<String>) -> Self {
        Error::new(Code::RequestInvalid, cause)
            .way_out("GET /openapi.json describes every request, as does docs/reference/openapi.json")
            .into()
    }
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Self {
        let status = match error.code {
            Code::NotFound => StatusCode::NOT_FOUND,
            Code::Conflict => StatusCode::CONFLICT,
            Code::RequestTooLarge => StatusCode::PAYLOAD_TOO_LARGE,
            Code::Unauthorized => StatusCode::UNAUTHORIZED,
            code => match code.fault() {
                Fault::User => StatusCode::BAD_REQUEST,
                Fault::External => StatusCode::SERVICE_UNAVAILABLE,
                Fault::Internal => StatusCode::INTERNAL_SERVER_ERROR,
            },
        };
        Self { status, error }
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let mut response = (self.status, Json(Failure::from(&self.error))).into_response();
        if self.status == StatusCode::UNAUTHORIZED {
            response.headers_mut().insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        response
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_status_says_who_can_mend_it() {
        let status = |code| Refusal::from(Error::new(code, "x")).status.as_u16();
        let table = [
            (Code::NotFound, 404),
            (Code::RequestInvalid, 400),
            (Code::ParallelismInvalid, 400),
            (Code::Conflict, 409),
            (Code::RequestTooLarge, 413),
            (Code::Unauthorized, 401),
            (Code::NotLeading, 503),
            (Code::Overloaded, 503),
            (Code::Storage, 503),
            (Code::Internal, 500),
        ];
        for (code, expected) in table {
            assert_eq!(status(code), expected, "{code}");
        }
    }
}
