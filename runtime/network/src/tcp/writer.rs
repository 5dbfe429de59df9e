//! The thread that writes one connection.

use std::io::IoSlice;

use super::{
    connection::{Connection, Encoded},
    socket::WriteHalf,
};
use crate::{
    frame::{self, Fault, Flags, HEADER_LEN, Header, Kind},
    link::{Event, Outbound},
};

/// Bytes of bodies that go out with one call, about: more only makes grants and barriers wait.
const WRITE_BYTES: usize = 256 << 10;
/// Two slices a frame, and the kernel takes 1,024 at once.
pub(super) const MOST_FRAMES: usize = 128;

/// Writes until the connection is over or its farewell is said.
pub(super) fn run(connection: &Connection, mut write: WriteHalf) {
    let mut frames = Vec::new();
    // The greeting was frame 0.
    let mut sequence = 1;
    while connection.wait_for_frames(WRITE_BYTES, &mut frames).is_some() {
        let bodies: Vec<Framed> = frames.drain(..).map(|frame| Framed::new(frame, &mut sequence)).collect();
        let mut parts = Vec::with_capacity(bodies.len() * 2);
        for framed in &bodies {
            parts.push(IoSlice::new(&framed.header));
            parts.push(IoSlice::new(&framed.body));
        }
        if let Err(error) = write.write_parts(&mut parts) {
            return connection.on(Event::Broken(Fault::from(error)));
        }
    }
}

struct Framed {
    header: [u8; HEADER_LEN],
    body: Vec<u8>,
}

impl Framed {
    fn new(frame: Outbound<Encoded>, sequence: &mut u64) -> Self {
        let (channel, encoded) = match frame {
            Outbound::Element { channel, element } => (channel, element),
            Outbound::Open { channel, key } => (channel, small(Kind::Open, frame::encode(&key))),
            Outbound::Grant { channel, credit } => (channel, small(Kind::Grant, frame::encode(&credit))),
            Outbound::Close { channel, reason } => (channel, small(Kind::Close, frame::encode(&reason))),
            Outbound::Abandon { channel } => (channel, small(Kind::Abandon, Vec::new())),
            Outbound::Heartbeat => (0, small(Kind::Heartbeat, Vec::new())),
            Outbound::Goodbye => (0, small(Kind::Goodbye, Vec::new())),
        };
        let Encoded { kind, flags, body, checksum } = encoded;
        let length = u32::try_from(body.len()).expect("senders keep batches and events below their limits");
        let header = Header { kind, flags, channel, length, sequence: *sequence, body_checksum: checksum };
        *sequence += 1;
        Self { header: header.to_bytes(), body }
    }
}

fn small(kind: Kind, body: Vec<u8>) -> Encoded {
    Encoded { kind, flags: Flags::NONE, checksum: frame::checksum(&body), body }
}
