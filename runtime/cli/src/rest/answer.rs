//! From status and body to a value or an error.

use reqwest::StatusCode;
use serde::de::DeserializeOwned;
use streamkeeper_protocol::rest::Failure;
use streamkeeper_types::{Code, Error, Result};

/// The value of a success.
pub(super) fn read<T: DeserializeOwned>(address: &str, status: StatusCode, body: &[u8]) -> Result<T> {
    check(address, status, body)?;
    serde_json::from_slice(body).map_err(|error| stranger(address, &format!("its answer is not understood ({error})")))
}

/// Whether it is a success.
pub(super) fn check(address: &str, status: StatusCode, body: &[u8]) -> Result<()> {
    if status.is_success() {
        return Ok(());
    }
    let failure: Option<Failure> = serde_json::from_slice(body).ok();
    Err(with_way_out(match failure {
        Some(failure) => error_of(&failure),
        None if matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) => {
            Error::new(Code::Unauthorized, format!("{address} refuses the token ({status})"))
        }
        None => stranger(address, &format!("it answered {status}")),
    }))
}

/// Who speaks HTTP but not our API.
fn stranger(address: &str, what: &str) -> Error {
    Error::new(Code::RestUnreachable, format!("{address} answers, but not as a JobManager of Streamkeeper: {what}"))
        .way_out("give the address of `streamkeeper jobmanager --rest`, of the same version as this program")
}

/// What can be done about it from the command line. The JobManager speaks of headers, and not of each way out.
fn with_way_out(error: Error) -> Error {
    match error.code {
        Code::Unauthorized => error.way_out("name a file with the JobManager's token by --token-file"),
        Code::NotLeading if error.way_out.is_none() => {
            error.way_out("ask the JobManager that leads, or again in a moment")
        }
        _ => error,
    }
}

/// A JobManager's failure as our own error. A code that this version does not know becomes a word of the cause.
#[must_use]
pub fn error_of(failure: &Failure) -> Error {
    let known = Code::ALL.iter().copied().find(|code| code.as_str() == failure.code);
    let cause = match known {
        Some(_) => failure.cause.clone(),
        None => format!("{} ({})", failure.cause, failure.code),
    };
    let code = known.unwrap_or(match failure.fault.as_str() {
        "user" => Code::RequestInvalid,
        "external" => Code::RestUnreachable,
        _ => Code::Internal,
    });
    Error { code, cause, way_out: failure.way_out.clone(), place: failure.place.clone() }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn failed(status: u16, body: &str) -> Error {
        check("http://x:1", StatusCode::from_u16(status).unwrap(), body.as_bytes()).unwrap_err()
    }

    #[test]
    fn an_error_says_whose_it_is_and_what_to_do() {
        let body = r#"{"code":"NOT_LEADING","cause":"jm-1:8081 leads","fault":"external"}"#;
        let standby = failed(503, body);
        assert_eq!((standby.code, standby.cause.as_str()), (Code::NotLeading, "jm-1:8081 leads"));
        assert!(standby.way_out.unwrap().contains("that leads"));

        let said = r#"{"code":"CONFLICT","cause":"taken","way_out":"another name","place":["a"],"fault":"user"}"#;
        let said = failed(409, said);
        assert_eq!(
            (said.code, said.way_out.as_deref(), said.place.as_slice()),
            (Code::Conflict, Some("another name"), &["a".to_owned()][..])
        );

        let newer = failed(400, r#"{"code":"QUITE_NEW","cause":"no","fault":"user"}"#);
        assert_eq!((newer.code, newer.cause.as_str()), (Code::RequestInvalid, "no (QUITE_NEW)"));
    }

    #[test]
    fn who_is_no_job_manager_is_told_apart_from_who_refuses_the_token() {
        assert_eq!(failed(404, "<html>nginx</html>").code, Code::RestUnreachable);
        assert_eq!(failed(302, "").code, Code::RestUnreachable);
        let refused = failed(401, "");
        assert!(refused.code == Code::Unauthorized && refused.way_out.unwrap().contains("--token-file"));
        let garbage = read::<Vec<u32>>("http://x:1", StatusCode::OK, b"hello").unwrap_err();
        assert!(garbage.code == Code::RestUnreachable && garbage.cause.contains("not as a JobManager"), "{garbage}");
    }
}
