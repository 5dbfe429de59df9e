//! Decoding what a stored file holds, whoever wrote it.

use std::panic::{AssertUnwindSafe, catch_unwind};

use arrow::{
    array::RecordBatch,
    ipc::{MessageHeader, reader::StreamReader, root_as_message},
};
use streamkeeper_types::{Code, Error, Result, ResultExt};

/// Runs a step of Arrow's or Parquet's decoder; `doing` is what the error says.
///
/// # Errors
/// `SNAPSHOT_CORRUPT` if the decoder panicked, else its own.
pub(crate) fn contained<T>(doing: &str, step: impl FnOnce() -> Result<T>) -> Result<T> {
    // A checksum tells torn files, not foreign ones, and the decoders assert where they meet offsets or sizes that
    // their writers never make. Such a file must fail the restore and not the process. Nothing outlives a panic: the
    // caller drops the decoder with the error.
    catch_unwind(AssertUnwindSafe(step)).unwrap_or_else(|_| {
        let cause = format!("{doing}: the decoder gave up on bytes that our programs do not write");
        Err(Error::new(Code::SnapshotCorrupt, cause))
    })
}

/// Calls `visit` for the record batches of an Arrow IPC stream that [`super::Section`] wrote.
///
/// # Errors
/// `SNAPSHOT_CORRUPT` for any other bytes, or the visitor's error.
pub(crate) fn read_stream(bytes: &[u8], mut visit: impl FnMut(&RecordBatch) -> Result<()>) -> Result<()> {
    const DOING: &str = "a section of a state file";
    let corrupt = || DOING.to_owned();
    check_messages(bytes).ok_or_else(|| Error::new(Code::SnapshotCorrupt, format!("{DOING} is no Arrow stream")))?;
    let mut reader = contained(DOING, || StreamReader::try_new(bytes, None).or_code(Code::SnapshotCorrupt, corrupt))?;
    while let Some(batch) = contained(DOING, || reader.next().transpose().or_code(Code::SnapshotCorrupt, corrupt))? {
        visit(&batch)?;
    }
    Ok(())
}

/// Checks before the decoder allocates by them that the messages' lengths lie within the bytes, and that nothing is
/// compressed: a size that a file claims to have when decompressed cannot be checked.
fn check_messages(mut bytes: &[u8]) -> Option<()> {
    const CONTINUATION: [u8; 4] = [0xff; 4];
    while !bytes.is_empty() {
        let (continuation, rest) = bytes.split_first_chunk::<4>()?;
        let (length, rest) = rest.split_first_chunk::<4>()?;
        if *continuation != CONTINUATION {
            return None;
        }
        let length = usize::try_from(u32::from_le_bytes(*length)).ok()?;
        if length == 0 {
            return rest.is_empty().then_some(());
        }
        let (header, rest) = rest.split_at_checked(length)?;
        let message = root_as_message(header).ok()?;
        let is_plain = match message.header_type() {
            MessageHeader::Schema => true,
            MessageHeader::RecordBatch => message.header_as_record_batch()?.compression().is_none(),
            _ => false,
        };
        let body = usize::try_from(message.bodyLength()).ok()?;
        bytes = rest.get(body..).filter(|_| is_plain)?;
    }
    Some(())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::sync::Arc;

    use arrow::{
        array::{ArrayRef, Int64Array},
        ipc::{
            CompressionType,
            writer::{IpcWriteOptions, StreamWriter},
        },
    };

    use super::*;

    fn stream(options: IpcWriteOptions) -> Vec<u8> {
        let column: ArrayRef = Arc::new(Int64Array::from_iter_values(0..100));
        let batch = RecordBatch::try_from_iter([("n", column)]).unwrap();
        let mut writer = StreamWriter::try_new_with_options(Vec::new(), batch.schema_ref(), options).unwrap();
        writer.write(&batch).unwrap();
        writer.into_inner().unwrap()
    }

    fn rows(bytes: &[u8]) -> Result<usize> {
        let mut rows = 0;
        read_stream(bytes, |batch| {
            rows += batch.num_rows();
            Ok(())
        })?;
        Ok(rows)
    }

    #[test]
    fn a_decoders_panic_is_a_corrupt_snapshot() {
        let error = contained("reading", || -> Result<()> { panic!("offset out of range") }).unwrap_err();
        assert_eq!(error.code, Code::SnapshotCorrupt);
        assert!(error.to_string().contains("reading"), "{error}");
    }

    #[test]
    fn streams_are_read_unless_lengths_lie_outside_or_something_is_compressed() {
        let plain = stream(IpcWriteOptions::default());
        assert_eq!(rows(&plain).unwrap(), 100);
        for length in [1_u32, 1 << 20, u32::MAX] {
            let mut bad = plain.clone();
            bad[4..8].copy_from_slice(&length.to_le_bytes());
            assert_eq!(rows(&bad).unwrap_err().code, Code::SnapshotCorrupt);
        }
        assert_eq!(rows(&plain[..plain.len() - 200]).unwrap_err().code, Code::SnapshotCorrupt);
        let compressed = IpcWriteOptions::default().try_with_compression(Some(CompressionType::LZ4_FRAME)).unwrap();
        assert_eq!(rows(&stream(compressed)).unwrap_err().code, Code::SnapshotCorrupt);
    }
}
