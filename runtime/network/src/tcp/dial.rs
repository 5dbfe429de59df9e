//! Brings a connection about from this side.

use std::{
    io,
    net::{TcpStream, ToSocketAddrs},
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

use super::{
    connection::Connection,
    handshake,
    plane::Inner,
    socket::{Halves, Socket},
};
use crate::{
    frame::{Fault, Hello, Welcome},
    link::Event,
};

/// Waits between attempts: the other TaskManager may just be starting.
const PAUSES: std::ops::RangeInclusive<Duration> = Duration::from_millis(10)..=Duration::from_millis(200);
/// One attempt to reach an address that does not answer.
const ATTEMPT: Duration = Duration::from_secs(1);

/// Dials until the connection stands, is refused or is over; then reads it.
pub(super) fn run(inner: &Arc<Inner>, connection: &Arc<Connection>, address: &str) {
    // Gives up before the link does, which does not know the cause.
    let deadline = Instant::now() + inner.options.connect_timeout.mul_f32(0.9);
    let mut pause = *PAUSES.start();
    let (halves, welcome) = loop {
        if connection.is_over() {
            return;
        }
        match dial(inner, connection, address) {
            Ok(greeted) => break greeted,
            Err(fault) if is_final(&fault) || Instant::now() > deadline => {
                return connection.on(Event::Broken(fault));
            }
            Err(fault) => tracing::debug!(peer = %connection.key.0, address, %fault, "dialling again"),
        }
        thread::sleep(pause);
        pause = (pause * 2).min(*PAUSES.end());
    };
    inner.serve(connection, halves, welcome.largest_batch);
}

/// Whether another attempt cannot end otherwise.
fn is_final(fault: &Fault) -> bool {
    matches!(fault, Fault::Refused(_) | Fault::Version { .. } | Fault::Foreign | Fault::Tls(_))
}

fn dial(inner: &Inner, connection: &Connection, address: &str) -> Result<(Halves, Welcome), Fault> {
    let stream = connect(address)?;
    let socket = Socket::new(stream, Instant::now() + inner.options.handshake_timeout)?;
    let session = inner.tls.as_ref().map(super::tls::Tls::dial).transpose()?;
    let mut halves = Halves::new(socket, session)?;
    let identity = &inner.options.identity;
    let (peer, generation) = &connection.key;
    let hello = Hello {
        token: identity.token.clone(),
        job: identity.job.clone(),
        generation: *generation,
        from: identity.id.clone(),
        to: peer.clone(),
        largest_batch: inner.options.largest_batch,
    };
    let welcome = handshake::greet(&mut halves, &hello)?;
    halves.clear_deadline()?;
    Ok((halves, welcome))
}

fn connect(address: &str) -> io::Result<TcpStream> {
    let mut last = io::Error::new(io::ErrorKind::NotFound, format!("{address} has no address"));
    for resolved in address.to_socket_addrs()? {
        match TcpStream::connect_timeout(&resolved, ATTEMPT) {
            Ok(stream) => return Ok(stream),
            Err(error) => last = io::Error::new(error.kind(), format!("{address}: {error}")),
        }
    }
    Err(last)
}
