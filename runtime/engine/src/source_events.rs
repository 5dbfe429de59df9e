//! The bytes that a source's coordinator and its readers send each other through the JobManager.
//!
//! A version byte, then postcard. Both ends are of the same release, except during an upgrade: an unknown version is
//! refused, never guessed.

use serde::{Deserialize, Serialize, de::DeserializeOwned};
use streamkeeper_types::{Code, Error, Result, ResultExt, Watermark};

use crate::Split;

const VERSION: u8 = 1;

/// From a reader to its coordinator. The reader is known by its attempt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum ToCoordinator {
    /// It has no split left and asks for one.
    RequestSplits,
    /// What it says of itself, in the connector's bytes.
    Report(Vec<u8>),
}

/// From a coordinator to one reader. The first one greets it: a reader reads and asks only behind that.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToReader {
    #[serde(with = "split_list")]
    pub splits: Vec<Split>,
    /// No further split will come.
    pub no_more: bool,
    /// Splits exist that no reader has: with [`crate::UnreadSplits::Hold`] they hold the watermark.
    pub unread_elsewhere: bool,
}

impl ToCoordinator {
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        encode(self)
    }

    /// # Errors
    /// `INTERNAL` for bytes of another version.
    pub fn decode(bytes: &[u8]) -> Result<Self> {
        decode(bytes)
    }
}

impl ToReader {
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        encode(self)
    }

    /// # Errors
    /// `INTERNAL` for bytes of another version.
    pub fn decode(bytes: &[u8]) -> Result<Self> {
        decode(bytes)
    }
}

fn encode<T: Serialize>(event: &T) -> Vec<u8> {
    postcard::to_extend(event, vec![VERSION]).expect("events have a known length and a vector takes any")
}

fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Result<T> {
    match bytes.split_first() {
        Some((&VERSION, event)) => {
            postcard::from_bytes(event).or_code(Code::Internal, || "reading a source's event".into())
        }
        _ => Err(Error::internal("an event of a source has an unknown version")),
    }
}

/// Splits as (id, state) pairs.
mod split_list {
    use serde::{Deserialize, Deserializer, Serializer};

    use crate::Split;

    pub fn serialize<S: Serializer>(splits: &[Split], serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(splits.iter().map(|split| (&split.id, &split.state)))
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Split>, D::Error> {
        let pairs = Vec::<(String, Vec<u8>)>::deserialize(deserializer)?;
        Ok(pairs.into_iter().map(|(id, state)| Split { id, state }).collect())
    }
}

/// A split as list state holds it, with the watermark that its records had reached.
#[derive(Debug, PartialEq)]
pub struct SplitItem {
    pub split: Split,
    pub watermark: Watermark,
}

impl SplitItem {
    /// Reads an item of the list [`SPLITS`] of a snapshot.
    ///
    /// # Errors
    /// `SNAPSHOT_FOREIGN` for bytes of another version.
    pub fn decode(bytes: &[u8]) -> Result<Self> {
        decode_split(bytes)
    }
}

/// The list of a source's state that holds its splits.
pub const SPLITS: &str = "splits";

/// Bytes of an item of list state.
pub(crate) fn encode_split(item: &SplitItem) -> Vec<u8> {
    encode(&(&item.split.id, &item.split.state, item.watermark.0))
}

/// The reverse of [`encode_split`].
pub(crate) fn decode_split(bytes: &[u8]) -> Result<SplitItem> {
    let (id, state, watermark) = decode(bytes).map_err(|_| {
        Error::new(Code::SnapshotForeign, "a source's position was written by another version")
            .way_out("run the version that wrote the snapshot, or a newer one")
    })?;
    Ok(SplitItem { split: Split { id, state }, watermark: Watermark(watermark) })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn split() -> Split {
        Split { id: "a".into(), state: vec![1, 2] }
    }

    #[test]
    fn version_1_reads_and_writes_the_same_bytes_for_ever() {
        let event = ToReader { splits: vec![split()], no_more: true, unread_elsewhere: false };
        assert_eq!(event.encode(), [1, 1, 1, b'a', 2, 1, 2, 1, 0]);
        assert_eq!(ToReader::decode(&event.encode()).unwrap(), event);
        assert_eq!(ToCoordinator::RequestSplits.encode(), [1, 0]);
        assert_eq!(ToCoordinator::Report(vec![7]).encode(), [1, 1, 1, 7]);
        let item = SplitItem { split: split(), watermark: Watermark(-2) };
        assert_eq!(encode_split(&item), [1, 1, b'a', 2, 1, 2, 3]);
        assert_eq!(decode_split(&encode_split(&item)).unwrap(), item);
    }

    #[test]
    fn other_versions_and_torn_bytes_are_refused() {
        for bad in [&[][..], &[2, 0], &[1], &[1, 9]] {
            assert!(ToCoordinator::decode(bad).is_err(), "{bad:?}");
        }
        assert_eq!(decode_split(&[7, 1, 2]).unwrap_err().code, Code::SnapshotForeign);
    }
}
