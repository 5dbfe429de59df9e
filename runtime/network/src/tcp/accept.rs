//! Lets others connect.

use std::{
    net::{TcpListener, TcpStream},
    sync::{Arc, atomic::Ordering},
    thread,
    time::{Duration, Instant},
};

use super::{
    connection::Connection,
    handshake,
    plane::Inner,
    socket::{Halves, Socket},
};
use crate::frame::{Fault, Refusal, Welcome};

/// Greetings under way; who comes then is hung up on, and dials again.
const MOST_GREETINGS: usize = 64;
/// After an error of the listener itself, which is mostly a lack of file descriptors.
const PAUSE: Duration = Duration::from_millis(20);

/// Accepts until the plane stops.
pub(super) fn run(inner: &Arc<Inner>, listener: &TcpListener) {
    loop {
        let accepted = listener.accept();
        if inner.stopping.load(Ordering::SeqCst) {
            return;
        }
        match accepted {
            Ok((stream, _)) => greet_apart(inner, stream),
            Err(error) => {
                tracing::warn!(%error, "the data port accepts no connection");
                thread::sleep(PAUSE);
            }
        }
    }
}

fn greet_apart(inner: &Arc<Inner>, stream: TcpStream) {
    if inner.greetings.fetch_add(1, Ordering::SeqCst) >= MOST_GREETINGS {
        inner.greetings.fetch_sub(1, Ordering::SeqCst);
        return;
    }
    let plane = Arc::clone(inner);
    inner.spawn("net-read", move || {
        let met = meet(&plane, stream);
        plane.greetings.fetch_sub(1, Ordering::SeqCst);
        match met {
            Ok((connection, halves, largest_batch)) => plane.serve(&connection, halves, largest_batch),
            Err(fault) => tracing::warn!(%fault, "a connection was not let in"),
        }
    });
}

fn meet(inner: &Arc<Inner>, stream: TcpStream) -> Result<(Arc<Connection>, Halves, u32), Fault> {
    let socket = Socket::new(stream, Instant::now() + inner.options.handshake_timeout)?;
    let session = inner.tls.as_ref().map(super::tls::Tls::accept).transpose()?;
    let mut halves = Halves::new(socket, session)?;
    let hello = handshake::hear_hello(&mut halves)?;
    let judged = handshake::judge(&hello, &inner.options.identity, inner.lowest());
    let key = (hello.from.clone(), hello.generation);
    let connection = match judged.and_then(|()| inner.accepted(key).map_err(|_| Refusal::Busy)) {
        Ok(connection) => connection,
        Err(refusal) => {
            handshake::refuse(&mut halves, &refusal)?;
            return Err(Fault::Refused(refusal));
        }
    };
    let own = &inner.options;
    let welcome = Welcome { from: own.identity.id.clone(), largest_batch: own.largest_batch };
    handshake::welcome(&mut halves, &welcome)?;
    halves.clear_deadline()?;
    Ok((connection, halves, hello.largest_batch))
}
