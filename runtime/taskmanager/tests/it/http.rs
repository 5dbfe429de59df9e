//! As little of HTTP as a test needs, so that it can also send what no client would.

use std::{
    fmt::Debug,
    io::{Read, Write},
    net::{Shutdown, SocketAddr, TcpStream},
};

use serde::de::DeserializeOwned;
use streamkeeper_protocol::rest::Failure;

use crate::world::LONG;

#[derive(Debug)]
pub struct Response {
    pub status: u16,
    pub headers: String,
    pub body: String,
}

impl Response {
    #[track_caller]
    pub fn json<T: DeserializeOwned>(&self) -> T {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error} in {self:?}"))
    }

    /// The code of a failure with this status.
    #[track_caller]
    pub fn failure(&self, status: u16) -> Failure {
        assert_eq!(self.status, status, "{self:?}");
        self.json()
    }
}

/// A request as text, with its body's length said.
pub fn text(method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> String {
    let headers: String = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
    let length = body.len();
    format!(
        "{method} {path} HTTP/1.1\r\nHost: test\r\nConnection: close\r\nContent-Length: {length}\r\n{headers}\r\n{body}"
    )
}

/// What follows the bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Then {
    /// The client waits for the answer.
    Wait,
    /// The client says that it sends nothing more, as when it is cut off.
    End,
}

/// Sends bytes, and reads to the end. `None` if nothing was answered.
pub fn exchange(address: SocketAddr, bytes: &[u8], then: Then) -> Option<Response> {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(LONG)).unwrap();
    // Whoever refuses early may close before it has read everything.
    let _ = stream.write_all(bytes);
    if then == Then::End {
        let _ = stream.shutdown(Shutdown::Write);
    }
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    let answer = String::from_utf8_lossy(&answer).into_owned();
    let (head, body) = answer.split_once("\r\n\r\n")?;
    let status = head.split(' ').nth(1)?.parse().ok()?;
    Some(Response { status, headers: head.to_ascii_lowercase(), body: body.to_owned() })
}

#[track_caller]
pub fn send(address: SocketAddr, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Response {
    exchange(address, text(method, path, headers, body).as_bytes(), Then::Wait)
        .unwrap_or_else(|| panic!("{method} {path}: no answer"))
}
