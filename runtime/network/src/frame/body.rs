//! Bodies of the small frames: postcard, whose bytes depend on the order of fields and variants alone.

use std::{fmt, sync::Arc};

use serde::{Deserialize, Serialize, de::DeserializeOwned};
use streamkeeper_protocol::Barrier;
use streamkeeper_types::{AttemptId, CheckpointId, Generation, Watermark};

use super::Fault;
use crate::Element;

/// One life of a TaskManager's process: a restarted one has another id.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct PeerId(Arc<str>);

impl PeerId {
    #[must_use]
    pub fn new(id: &str) -> Self {
        Self(id.into())
    }

    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for PeerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// One channel, known by the same name at both ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ChannelKey {
    pub producer: AttemptId,
    pub consumer: AttemptId,
    /// Number of the channel in the consumer's input gate.
    pub input: u32,
}

impl fmt::Display for ChannelKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} → {} [{}]", self.producer, self.consumer, self.input)
    }
}

/// The dialler's first words.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hello {
    /// Shared by all processes of one cluster.
    pub token: String,
    pub job: String,
    /// Generation of the attempts that the connection serves.
    pub generation: Generation,
    pub from: PeerId,
    /// Whom the dialler wants: an address may have gone over to another process.
    pub to: PeerId,
    /// Largest batch frame in bytes that the dialler takes.
    pub largest_batch: u32,
}

/// The acceptor's answer to a good [`Hello`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Welcome {
    pub from: PeerId,
    /// Largest batch frame in bytes that the acceptor takes.
    pub largest_batch: u32,
}

/// The acceptor's answer to any other.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
pub enum Refusal {
    #[error("it speaks version {ours} of the data protocol")]
    Version { ours: u8 },
    #[error("the cluster token is another")]
    Token,
    #[error("it runs job {ours}")]
    Job { ours: String },
    #[error("generation {lowest} runs, the older one is fenced")]
    StaleGeneration { lowest: Generation },
    #[error("it is {ours}")]
    Peer { ours: PeerId },
    #[error("it has as many connections as it takes")]
    Busy,
    #[error("the greeting cannot be read")]
    Malformed,
}

/// Everything but records, as it travels.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum ChannelEvent {
    Watermark(Watermark),
    Idle,
    Barrier(Barrier),
    CancelBarrier(CheckpointId),
    EndOfData,
    EndOfPartition,
}

impl ChannelEvent {
    /// `None` for records.
    #[must_use]
    pub fn of(element: &Element) -> Option<Self> {
        Some(match element {
            Element::Batch(_) => return None,
            Element::Watermark(watermark) => Self::Watermark(*watermark),
            Element::Idle => Self::Idle,
            Element::Barrier(barrier) => Self::Barrier(barrier.clone()),
            Element::CancelBarrier(id) => Self::CancelBarrier(*id),
            Element::EndOfData => Self::EndOfData,
            Element::EndOfPartition => Self::EndOfPartition,
        })
    }
}

impl From<ChannelEvent> for Element {
    fn from(event: ChannelEvent) -> Self {
        match event {
            ChannelEvent::Watermark(watermark) => Self::Watermark(watermark),
            ChannelEvent::Idle => Self::Idle,
            ChannelEvent::Barrier(barrier) => Self::Barrier(barrier),
            ChannelEvent::CancelBarrier(id) => Self::CancelBarrier(id),
            ChannelEvent::EndOfData => Self::EndOfData,
            ChannelEvent::EndOfPartition => Self::EndOfPartition,
        }
    }
}

/// Why a consumer reads no more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum CloseReason {
    /// It has the end of the partition.
    Ended,
    /// Its task ended first.
    Gone,
    /// Nobody here expects the channel.
    Unknown,
}

/// # Panics
/// Never: the types above hold nothing that postcard cannot write.
pub(crate) fn encode<T: Serialize>(value: &T) -> Vec<u8> {
    postcard::to_stdvec(value).expect("plain data is always written to a vector")
}

/// # Errors
/// Bytes that are no `T`, or more than one.
pub(crate) fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Fault> {
    match postcard::take_from_bytes(bytes) {
        Ok((value, [])) => Ok(value),
        Ok(_) => Err(Fault::Malformed("bytes are left over".into())),
        Err(error) => Err(Fault::Malformed(error.to_string())),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use streamkeeper_protocol::{CheckpointKind, SnapshotFormat};

    use super::*;

    fn events() -> Vec<ChannelEvent> {
        let barrier = Barrier {
            id: CheckpointId(7),
            timestamp: 1_700_000_000_000,
            kind: CheckpointKind::StopSavepoint { drain: true },
            format: SnapshotFormat::Canonical,
            target: "savepoints/x".into(),
            full: true,
        };
        vec![
            ChannelEvent::Watermark(Watermark(-3)),
            ChannelEvent::Idle,
            ChannelEvent::Barrier(barrier),
            ChannelEvent::CancelBarrier(CheckpointId(9)),
            ChannelEvent::EndOfData,
            ChannelEvent::EndOfPartition,
        ]
    }

    #[test]
    fn every_event_survives_the_wire_and_the_way_through_an_element() {
        for event in events() {
            let element = Element::from(event.clone());
            assert_eq!(ChannelEvent::of(&element), Some(event.clone()));
            assert_eq!(decode::<ChannelEvent>(&encode(&event)), Ok(event));
        }
    }

    proptest! {
        #[test]
        fn mutated_bodies_are_read_or_refused_without_a_panic(
            which in 0usize..6, cut in 0usize..64, at in 0usize..64, byte: u8,
        ) {
            let mut bytes = encode(&events()[which]);
            let place = at % bytes.len();
            bytes[place] = byte;
            bytes.truncate(cut.max(1));
            if let Ok(event) = decode::<ChannelEvent>(&bytes) {
                prop_assert_eq!(decode::<ChannelEvent>(&encode(&event)), Ok(event));
            }
            let _ = decode::<Hello>(&bytes);
            let _ = decode::<ChannelKey>(&bytes);
            let _ = decode::<Refusal>(&bytes);
        }
    }
}
