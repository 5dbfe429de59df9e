//! State of sources and sinks as bytes: a version, then the value in postcard's encoding.

use serde::{Serialize, de::DeserializeOwned};
use streamkeeper_types::{Code, Error, Result};

/// # Errors
/// `INTERNAL`; the values here all encode.
pub(crate) fn encode<T: Serialize>(version: u8, value: &T) -> Result<Vec<u8>> {
    postcard::to_extend(value, vec![version]).map_err(|error| Error::internal(format!("encoding state: {error}")))
}

/// Reads what [`encode`] wrote. `what` names the state in errors.
///
/// # Errors
/// `SNAPSHOT_FOREIGN` for another version, `SNAPSHOT_CORRUPT` for bytes that do not decode.
pub(crate) fn decode<T: DeserializeOwned>(version: u8, bytes: &[u8], what: &str) -> Result<T> {
    let corrupt = |why: &str| {
        Error::new(Code::SnapshotCorrupt, format!("{what}: {why}")).way_out("restore from another snapshot")
    };
    let (found, rest) = bytes.split_first().ok_or_else(|| corrupt("it is empty"))?;
    if *found != version {
        return Err(Error::new(
            Code::SnapshotForeign,
            format!("{what} has version {found}, this program reads {version}"),
        )
        .way_out("restore with the version of Streamkeeper that wrote the snapshot"));
    }
    match postcard::take_from_bytes(rest) {
        Ok((value, [])) => Ok(value),
        Ok(_) => Err(corrupt("bytes are left over")),
        Err(error) => Err(corrupt(&error.to_string())),
    }
}
