//! What no decent client sends: answered with 4xx and a `Failure`, and the server lives on.

use streamkeeper_protocol::rest::{Health, Role};

use super::{Api, JOB};
use crate::http::{Then, exchange, send, text};

#[test]
fn whatever_cannot_be_understood_is_a_failure_with_its_own_status() {
    let (_world, api) = Api::standing();
    let deep = format!(r#"{{"name":{}{}}}"#, "[".repeat(20_000), "]".repeat(20_000));
    let table: &[(&str, &str, &str, u16)] = &[
        ("GET", "/", "", 404),
        ("GET", "/nothing", "", 404),
        ("GET", "/jobs/", "", 404),
        ("GET", "/jobs/other.job", "", 404),
        ("GET", "/jobs/default", "", 404),
        ("GET", "/jobs/default.test/", "", 404),
        ("GET", "/jobs/default.test/nothing", "", 404),
        ("GET", "/jobs/..%2f..%2fetc", "", 404),
        ("GET", "/jobs/%00", "", 404),
        ("GET", "/jobs/%ff%fe", "", 400),
        ("GET", "/jobs/%zz", "", 404),
        ("GET", "/jobs/default.test/vertices/9", "", 404),
        ("GET", "/jobs/default.test/vertices/-1", "", 400),
        ("GET", "/jobs/default.test/vertices/99999999999", "", 400),
        ("GET", "/jobs/default.test/vertices/0x1", "", 400),
        ("GET", "/jobs/default.test/checkpoints/77", "", 404),
        ("GET", "/jobs/default.test/checkpoints/18446744073709551616", "", 400),
        ("GET", "/jobs/default.test/checkpoints/one", "", 400),
        ("GET", "/jobs/default.test/status?wait=soon", "", 400),
        ("GET", "/jobs/default.test/status?wait=1s&after=x", "", 400),
        ("GET", "/jobs/default.test/status?color=blue", "", 400),
        ("GET", "/requests/0", "", 404),
        ("GET", "/requests/0?wait=10s", "", 404),
        ("GET", "/requests/%ff", "", 400),
        ("DELETE", JOB, "", 405),
        ("POST", "/overview", "", 405),
        ("PUT", "/jobs/default.test/checkpoints", "", 405),
        ("BREW", "/healthz", "", 405),
        ("POST", "/jobs/default.test/savepoints", "{", 400),
        ("POST", "/jobs/default.test/savepoints", "null", 400),
        ("POST", "/jobs/default.test/savepoints", "[]", 400),
        ("POST", "/jobs/default.test/savepoints", "\u{0}", 400),
        ("POST", "/jobs/default.test/savepoints", r#"{"name":7}"#, 400),
        ("POST", "/jobs/default.test/savepoints", r#"{"nam":"x"}"#, 400),
        ("POST", "/jobs/default.test/savepoints", r#"{"format":"zip"}"#, 400),
        ("POST", "/jobs/default.test/savepoints", r#"{"name":"../../x"}"#, 400),
        ("POST", "/jobs/default.test/savepoints", r#"{"name":""}"#, 400),
        ("POST", "/jobs/default.test/savepoints", r#"{"name":".hidden"}"#, 400),
        ("POST", "/jobs/default.test/savepoints", &deep, 400),
        ("POST", "/jobs/default.test/stop", r#"{"drain":"yes"}"#, 400),
        ("POST", "/jobs/other.job/cancel", "", 404),
        ("PUT", "/jobs/default.test/resources", "", 400),
        ("PUT", "/jobs/default.test/resources", r#"{"parallelism":-1}"#, 400),
        ("PUT", "/jobs/default.test/resources", r#"{"parallelism":1e99}"#, 400),
        ("POST", "/savepoint-disposal", "", 400),
        ("POST", "/savepoint-disposal", r#"{"savepoint":"savepoints/../chk-1"}"#, 400),
        ("POST", "/savepoint-disposal", r#"{"savepoint":"memory:///other/job/savepoints/x"}"#, 400),
        ("POST", "/savepoint-disposal", r#"{"savepoint":"/"}"#, 400),
    ];
    for (method, path, body, status) in table {
        let response = send(api.address(), method, path, &[], body);
        let failure = response.failure(*status);
        assert!(!failure.cause.is_empty() && failure.fault == "user", "{method} {path}: {failure:?}");
    }
    let wrong_method = send(api.address(), "DELETE", JOB, &[], "");
    assert!(wrong_method.headers.contains("allow: get"), "{}", wrong_method.headers);
}

#[test]
fn a_body_has_a_bound_whether_its_length_is_said_or_not() {
    let (_world, api) = Api::standing();
    let large = format!(r#"{{"name":"{}"}}"#, "x".repeat(100_000));
    for path in ["/jobs/default.test/savepoints", "/jobs/default.test/cancel"] {
        assert_eq!(send(api.address(), "POST", path, &[], &large).failure(413).code, "REQUEST_TOO_LARGE", "{path}");
    }
    let head = format!("POST {JOB}/savepoints HTTP/1.1\r\nHost: test\r\nConnection: close\r\n");
    let chunked = format!("{head}Transfer-Encoding: chunked\r\n\r\n{:x}\r\n{large}\r\n0\r\n\r\n", large.len());
    assert_eq!(exchange(api.address(), chunked.as_bytes(), Then::Wait).unwrap().failure(413).code, "REQUEST_TOO_LARGE");
}

#[test]
fn idempotency_keys_and_origins_are_checked() {
    let (_world, api) = Api::standing();
    let path = format!("{JOB}/checkpoints");
    let long = "k".repeat(256);
    for key in ["", long.as_str(), "ä"] {
        let response = send(api.address(), "POST", &path, &[("Idempotency-Key", key)], "");
        assert_eq!(response.failure(400).code, "REQUEST_INVALID", "{key}");
    }
    for origin in ["http://evil.example", "null", "http://test.evil.example"] {
        let response = send(api.address(), "POST", &path, &[("Origin", origin)], "");
        assert_eq!(response.failure(403).code, "UNAUTHORIZED", "{origin}");
    }
    assert_eq!(send(api.address(), "POST", &path, &[("Origin", "http://test")], "").status, 202);
}

#[test]
fn bytes_that_are_no_http_disturb_nobody() {
    let (_world, api) = Api::standing();
    let whole = text("POST", &format!("{JOB}/savepoints"), &[], r#"{"name":"cut"}"#);
    for bytes in [&b"\0\0\0\0"[..], b"GET", b"GET / HTTP/9.9\r\n\r\n", b"\r\n\r\n\r\n", &[0xff; 70_000]] {
        let answer = exchange(api.address(), bytes, Then::End);
        assert!(answer.as_ref().is_none_or(|answer| answer.status >= 400), "{answer:?}");
    }
    for cut in 0..whole.len() {
        let answer = exchange(api.address(), &whole.as_bytes()[..cut], Then::End);
        if let Some(answer) = answer.filter(|answer| answer.status < 400) {
            panic!("{cut} of {} bytes were enough: {answer:?}", whole.len());
        }
    }
    let health: Health = api.get("/healthz");
    assert_eq!(health.role, Role::Leader);
    let begun = api.outcome(&format!("{JOB}/savepoints"), r#"{"name":"whole"}"#);
    assert!(begun.failure.is_none(), "{begun:?}");
}
