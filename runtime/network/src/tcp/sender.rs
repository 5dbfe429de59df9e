//! The sending end of a channel to another TaskManager.

use std::{sync::Arc, time::Duration};

use arrow::array::RecordBatch;
use parking_lot::Condvar;

use super::connection::{Connection, Encoded};
use crate::{
    BatchEncoder, ChannelClosed, ChannelSender, Element, Interrupt, Sent,
    frame::{self, ChannelEvent, Flags, Kind},
    link::{Cost, Event, Link},
};

/// Encodes on the task's thread, and waits there for the receiver's room.
///
/// A batch larger than the receiver's window goes in pieces of the window's size, so that a channel takes at most two
/// windows of memory; a single row may be larger, up to the largest frame.
pub struct RemoteSender {
    connection: Arc<Connection>,
    channel: u32,
    wake: Arc<Condvar>,
    encoder: BatchEncoder,
    interrupt: Interrupt,
}

impl std::fmt::Debug for RemoteSender {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RemoteSender").field("peer", &self.connection.key.0).field("channel", &self.channel).finish()
    }
}

impl RemoteSender {
    pub(super) fn new(
        connection: Arc<Connection>,
        channel: u32,
        wake: Arc<Condvar>,
        encoder: BatchEncoder,
        interrupt: Interrupt,
    ) -> Self {
        Self { connection, channel, wake, encoder, interrupt }
    }

    fn send_batch(&mut self, batch: RecordBatch) -> Result<Sent, ChannelClosed> {
        let batch = BatchEncoder::compact(batch).map_err(|error| self.unsendable(&error))?;
        let bytes = Element::Batch(batch.clone()).bytes();
        let mut sent = Sent::default();
        let mut row = 0;
        while row < batch.num_rows() {
            let ask = Link::room_for_records;
            let (piece, largest, waited) =
                self.connection.wait_for_room(self.channel, &self.wake, &self.interrupt, ask)?;
            sent.waited += waited;
            let rows = rows_of_piece(batch.num_rows(), bytes, piece as usize).min(batch.num_rows() - row);
            sent.bytes += self.send_piece(&batch.slice(row, rows), largest)?;
            row += rows;
        }
        Ok(sent)
    }

    fn send_piece(&mut self, piece: &RecordBatch, largest: u32) -> Result<usize, ChannelClosed> {
        let body = self.encoder.encode(piece).map_err(|error| self.unsendable(&error))?;
        let uncompressed = u32::try_from(body.uncompressed).ok().filter(|bytes| *bytes <= largest);
        let Some(uncompressed) = uncompressed else {
            let error =
                format!("{} rows take {} bytes, and {largest} fit into a frame", piece.num_rows(), body.uncompressed);
            return Err(self.unsendable(&error));
        };
        let checksum = frame::checksum(&body.bytes);
        let element = Encoded { kind: Kind::Batch, flags: body.flags, body: body.bytes, checksum };
        let cost = Cost::Records(uncompressed);
        self.connection.on(Event::Send { channel: self.channel, cost, ends: false, element });
        Ok(uncompressed as usize)
    }

    fn send_event(&mut self, event: &ChannelEvent) -> Result<Sent, ChannelClosed> {
        let body = frame::encode(event);
        let limit = Kind::Event.limit(0) as usize;
        if body.len() > limit {
            return Err(self.unsendable(&format!("an event of {} bytes, and {limit} are allowed", body.len())));
        }
        let ask = Link::room_for_event;
        let (_, _, waited) = self.connection.wait_for_room(self.channel, &self.wake, &self.interrupt, ask)?;
        let checksum = frame::checksum(&body);
        let element = Encoded { kind: Kind::Event, flags: Flags::NONE, body, checksum };
        let ends = *event == ChannelEvent::EndOfPartition;
        self.connection.on(Event::Send { channel: self.channel, cost: Cost::Event, ends, element });
        Ok(Sent { bytes: 0, waited })
    }

    fn unsendable(&self, error: &dyn std::fmt::Display) -> ChannelClosed {
        tracing::error!(peer = %self.connection.key.0, %error, "a batch cannot be sent");
        ChannelClosed::Unsendable
    }
}

impl ChannelSender for RemoteSender {
    fn send(&mut self, element: Element) -> Result<Sent, ChannelClosed> {
        match (ChannelEvent::of(&element), element) {
            (None, Element::Batch(batch)) => self.send_batch(batch),
            (Some(event), _) => self.send_event(&event),
            // Only records are no event.
            (None, _) => Ok(Sent { bytes: 0, waited: Duration::ZERO }),
        }
    }
}

impl Drop for RemoteSender {
    fn drop(&mut self) {
        self.connection.close_sender(self.channel);
    }
}

/// Rows that fill a piece, if all are of equal size.
fn rows_of_piece(rows: usize, bytes: usize, piece: usize) -> usize {
    let pieces = bytes.div_ceil(piece.max(1)).max(1);
    rows.div_ceil(pieces).max(1)
}

#[cfg(test)]
mod tests {
    use super::rows_of_piece;

    #[test]
    fn a_batch_is_cut_so_that_equal_rows_fit_into_the_window() {
        assert_eq!(rows_of_piece(1_000, 8_000, 100_000), 1_000);
        assert_eq!(rows_of_piece(1_000, 8_000, 8_000), 1_000);
        assert_eq!(rows_of_piece(1_000, 8_000, 4_000), 500);
        assert_eq!(rows_of_piece(1_000, 8_000, 3_000), 334);
        assert_eq!(rows_of_piece(3, 9_000, 10), 1, "a row is never cut");
        assert_eq!(rows_of_piece(5, 0, 10), 5, "rows without bytes");
    }
}
