//! What travels on a channel, in order.

use arrow::array::RecordBatch;
use streamkeeper_protocol::Barrier;
use streamkeeper_types::{CheckpointId, Watermark};

/// Records and the events that keep their place among them.
#[derive(Debug, Clone)]
pub enum Element {
    /// At least one row.
    Batch(RecordBatch),
    /// No record at or below it follows. The first one may be [`Watermark::MIN`]: the channel is active and promises
    /// nothing. Each channel begins with a watermark or with idleness.
    Watermark(Watermark),
    /// The channel no longer counts for the minimum of watermarks, until the next element that is not this one.
    Idle,
    Barrier(Barrier),
    /// Checkpoint `0` was aborted upstream after some of its barriers left: channels blocked for it go on (R6).
    CancelBarrier(CheckpointId),
    /// No record follows; the end watermark came before. Barriers still do, up to the end of the partition.
    EndOfData,
    /// Nothing follows. Counts as this channel's barrier (R5).
    EndOfPartition,
}

impl Element {
    /// Bytes that the element occupies in a channel. Slices count what they show, not what they keep alive.
    #[must_use]
    pub fn bytes(&self) -> usize {
        match self {
            Self::Batch(batch) => batch
                .columns()
                .iter()
                .map(|c| c.to_data().get_slice_memory_size().unwrap_or_else(|_| c.get_array_memory_size()))
                .sum(),
            _ => 0,
        }
    }

    /// Control elements are always let in, so that no barrier waits for room (one reserved place).
    #[must_use]
    pub fn is_control(&self) -> bool {
        !matches!(self, Self::Batch(_))
    }
}
