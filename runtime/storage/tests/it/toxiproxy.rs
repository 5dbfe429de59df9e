//! Faults between a client and a server: Toxiproxy's HTTP interface.

use std::{
    io::{Read, Write},
    net::TcpStream,
};

use crate::service::Service;

/// One proxy, named `TARGET`.
pub struct Proxy {
    service: Service,
}

impl Proxy {
    /// A proxy before `upstream` (`host:port`) that passes everything.
    pub fn before(upstream: &str) -> Self {
        Self { service: Service::start("toxiproxy", &["--proxy", &format!("TARGET={upstream}")]) }
    }

    /// `host:port` for clients.
    pub fn address(&self) -> &str {
        self.service.variable("TARGET")
    }

    /// Adds a toxic: its kind, the direction (`upstream` is towards the server), the share of connections that have it,
    /// and its attributes as JSON.
    pub fn add(&self, kind: &str, direction: &str, share: f64, attributes: &str) {
        let body = format!(
            r#"{{"name":"{kind}_{direction}","type":"{kind}","stream":"{direction}","toxicity":{share},"attributes":{attributes}}}"#
        );
        self.ask("POST", "/proxies/TARGET/toxics", &body);
    }

    /// Removes all toxics and closes what they held up.
    pub fn heal(&self) {
        self.ask("POST", "/reset", "");
    }

    /// Refuses connections, and cuts those that are open.
    pub fn refuse(&self) {
        self.ask("POST", "/proxies/TARGET", r#"{"enabled":false}"#);
    }

    fn ask(&self, method: &str, path: &str, body: &str) {
        let address = self.service.variable("TOXIPROXY_URL").strip_prefix("http://").unwrap();
        let mut stream = TcpStream::connect(address).unwrap();
        let length = body.len();
        let request = format!(
            "{method} {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\nContent-Type: application/json\r\n\
             Content-Length: {length}\r\n\r\n{body}"
        );
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        assert!(answer.starts_with("HTTP/1.1 2"), "{path} {body}: {answer}");
    }
}
