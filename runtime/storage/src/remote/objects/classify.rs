//! What an answer of S3, Azure or GCS means for the call.

use std::error::Error as StdError;

use object_store::client::{HttpError, HttpErrorKind};
use streamkeeper_types::{Code, Error};

use super::Service;
use crate::remote::failure::{Failure, short};

/// How object_store words an answer that is no success; its type is private. A test against a real answer keeps it true.
const STATUS_TEXT: &str = "Server returned non-2xx status code: ";

impl Service {
    /// The meaning of one request's error. Anything that is not known for sure counts as unclear.
    pub(super) fn failure(&self, error: &object_store::Error) -> Failure {
        use object_store::Error as E;
        let status = status_of(error);
        let text = || status.as_ref().map_or_else(|| deepest(error), Status::text);
        let plain = |text: String| Error::new(Code::Storage, text);
        match error {
            E::NotFound { .. } => self.not_found(text()),
            E::Precondition { .. } | E::NotModified { .. } => Failure::Changed(plain(text())),
            E::AlreadyExists { .. } => match status {
                Some(Status { code: 409, .. }) => Failure::Conflict(plain(text())),
                _ => Failure::Exists(plain(text())),
            },
            E::PermissionDenied { .. } | E::Unauthenticated { .. } => {
                Failure::Refused(plain(text()).way_out(self.credentials))
            }
            E::NotSupported { .. }
            | E::NotImplemented { .. }
            | E::InvalidPath { .. }
            | E::UnknownConfigurationKey { .. } => Failure::Refused(plain(short(&error.to_string()))),
            _ => match (status, transport_of(error)) {
                (Some(status), _) => status.failure(self),
                (None, Some(HttpErrorKind::Connect)) => {
                    Failure::Busy(plain(format!("cannot connect: {}", deepest(error))).way_out(self.endpoint))
                }
                _ => Failure::Unclear(plain(deepest(error))),
            },
        }
    }

    /// Without the bucket no object is merely absent.
    fn not_found(&self, text: String) -> Failure {
        let no_bucket = ["NoSuchBucket", "ContainerNotFound"].iter().any(|word| text.contains(word));
        let way_out = format!("check that the {} exists: create it if not", self.bucket);
        let error = Error::new(Code::Storage, text).way_out(way_out);
        if no_bucket { Failure::Refused(error) } else { Failure::NotFound(error) }
    }
}

struct Status {
    code: u16,
    /// The vendor's own word, `SlowDown` say, and its sentence.
    detail: String,
}

impl Status {
    fn text(&self) -> String {
        format!("the server answered {}{}", self.code, self.detail)
    }

    fn failure(&self, service: &Service) -> Failure {
        let error = Error::new(Code::Storage, self.text());
        let detail = |word: &str| self.detail.contains(word);
        match self.code {
            // S3 answers 400 when the body came too slowly.
            400 if detail("RequestTimeout") => Failure::Busy(error),
            401 | 403 => Failure::Refused(error.way_out(service.credentials)),
            404 => service.not_found(self.text()),
            408 => Failure::Unclear(error),
            429 => Failure::Busy(error),
            503 if detail("SlowDown") || detail("ServerBusy") => Failure::Busy(error),
            501 => Failure::Refused(error),
            500.. => Failure::Unclear(error),
            _ => Failure::Refused(error),
        }
    }
}

/// The errors from `error` to its innermost cause.
fn chain(error: &object_store::Error) -> impl Iterator<Item = &(dyn StdError + 'static)> {
    let first: &(dyn StdError + 'static) = error;
    std::iter::successors(Some(first), |error: &&(dyn StdError + 'static)| StdError::source(*error))
}

fn status_of(error: &object_store::Error) -> Option<Status> {
    let text = chain(error).map(ToString::to_string).find(|text| text.starts_with(STATUS_TEXT))?;
    let rest = &text[STATUS_TEXT.len()..];
    let code = rest.get(..3)?.parse().ok()?;
    let detail = match (tag(rest, "Code"), tag(rest, "Message")) {
        (Some(code), Some(message)) => format!(" {code}: {}", short(message)),
        (Some(code), None) => format!(" {code}"),
        _ => String::new(),
    };
    Some(Status { code, detail })
}

/// The text between `<name>` and `</name>`.
fn tag<'a>(xml: &'a str, name: &str) -> Option<&'a str> {
    let after = xml.split_once(&format!("<{name}>"))?.1;
    Some(after.split_once(&format!("</{name}>"))?.0)
}

fn transport_of(error: &object_store::Error) -> Option<HttpErrorKind> {
    chain(error).find_map(|error| error.downcast_ref::<HttpError>()).map(HttpError::kind)
}

/// The innermost cause: `connection refused` rather than the layers around it.
fn deepest(error: &object_store::Error) -> String {
    chain(error).last().map(|error| short(&error.to_string())).unwrap_or_default()
}
