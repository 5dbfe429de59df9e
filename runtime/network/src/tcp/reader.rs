//! The thread that reads one connection: bytes → frames → elements.

use std::{
    collections::HashMap,
    io::{self, BufReader, Read},
};

use arrow::buffer::{Buffer, MutableBuffer};

use super::{connection::Connection, socket::ReadHalf};
use crate::{
    BatchDecoder, Element,
    frame::{self, ChannelEvent, Fault, HEADER_LEN, Header, Kind},
    link::{Cost, Event, Inbound},
};

/// Small frames are read together; a large body goes straight into its own memory.
const READ_BYTES: usize = 64 << 10;

/// Reads until the connection is over. `largest_batch`: largest batch in bytes that this end takes.
pub(super) fn run(connection: &Connection, read: ReadHalf, largest_batch: u32) {
    let heard = Heard { read, connection };
    let mut reader = Reader {
        bytes: BufReader::with_capacity(READ_BYTES, heard),
        connection,
        // The greeting was frame 0.
        sequence: 1,
        largest_batch,
        decoders: HashMap::new(),
    };
    while !connection.is_over() {
        if let Err(fault) = reader.step() {
            return connection.on(Event::Broken(fault));
        }
    }
}

/// Tells the connection of each byte that comes: a large frame on a slow line is not silence.
struct Heard<'a> {
    read: ReadHalf,
    connection: &'a Connection,
}

impl Read for Heard<'_> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let read = self.read.read(buf)?;
        self.connection.note_heard();
        Ok(read)
    }
}

struct Reader<'a> {
    bytes: BufReader<Heard<'a>>,
    connection: &'a Connection,
    sequence: u64,
    largest_batch: u32,
    /// One for each channel that records came over.
    decoders: HashMap<u32, BatchDecoder>,
}

impl Reader<'_> {
    /// Reads one frame.
    fn step(&mut self) -> Result<(), Fault> {
        let mut bytes = [0; HEADER_LEN];
        self.bytes.read_exact(&mut bytes)?;
        let header = Header::parse(&bytes, self.largest_batch)?;
        if header.sequence != self.sequence {
            return Err(Fault::OutOfOrder { expected: self.sequence, found: header.sequence });
        }
        self.sequence += 1;
        if header.kind == Kind::Batch {
            return self.read_batch(header);
        }
        let mut body = vec![0; header.length as usize];
        self.bytes.read_exact(&mut body)?;
        header.verify(&body)?;
        self.take(header, &body)
    }

    /// No memory is taken before the link has let the batch in.
    fn read_batch(&mut self, header: Header) -> Result<(), Fault> {
        let channel = header.channel;
        self.connection.admit(channel)?;
        let mut body = MutableBuffer::from_len_zeroed(header.length as usize);
        self.bytes.read_exact(body.as_slice_mut())?;
        header.verify(&body)?;
        let largest = self.largest_batch as usize;
        let decoder = self.decoders.entry(channel).or_insert_with(|| BatchDecoder::new(largest));
        let body = decoder.uncompress(Buffer::from(body), header.flags)?;
        let batch = decoder.decode(&body)?;
        // Both were bounded by `largest_batch`.
        let cost = Cost::Records(u32::try_from(body.len()).unwrap_or(u32::MAX));
        let element = (Element::Batch(batch), body.len());
        self.connection.receive(Inbound::Element { channel, cost, ends: false }, Some(element));
        Ok(())
    }

    fn take(&mut self, header: Header, body: &[u8]) -> Result<(), Fault> {
        let channel = header.channel;
        let frame = match header.kind {
            Kind::Event => {
                let event: ChannelEvent = frame::decode(body)?;
                let ends = event == ChannelEvent::EndOfPartition;
                if ends {
                    self.decoders.remove(&channel);
                }
                let frame = Inbound::Element { channel, cost: Cost::Event, ends };
                self.connection.receive(frame, Some((event.into(), 0)));
                return Ok(());
            }
            Kind::Abandon => {
                self.decoders.remove(&channel);
                Inbound::Abandon { channel }
            }
            Kind::Open => Inbound::Open { channel, key: frame::decode(body)? },
            Kind::Grant => Inbound::Grant { channel, credit: frame::decode(body)? },
            Kind::Close => Inbound::Close { channel, reason: frame::decode(body)? },
            Kind::Heartbeat => Inbound::Heartbeat,
            Kind::Goodbye => Inbound::Goodbye,
            Kind::Hello | Kind::Welcome | Kind::Refusal | Kind::Batch => return Err(Fault::Unexpected(header.kind)),
        };
        self.connection.receive(frame, None);
        Ok(())
    }
}
