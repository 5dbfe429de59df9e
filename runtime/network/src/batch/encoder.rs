//! Batch → body of a frame.

use arrow::{array::RecordBatch, buffer::Buffer, datatypes::SchemaRef, error::ArrowError, ipc::writer::StreamEncoder};

use super::compact::compact;
use crate::frame::Flags;

/// Whether a channel's batches are compressed. LZ4 costs many times what the encoding itself costs: it pays where the
/// network is narrow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Compression {
    #[default]
    None,
    Lz4,
}

/// An encoded batch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Body {
    pub bytes: Vec<u8>,
    pub flags: Flags,
    /// Bytes before compression: what the batch takes up at the receiver.
    pub uncompressed: usize,
}

/// Encodes the batches of one channel, in order.
pub struct BatchEncoder {
    compression: Compression,
    stream: Option<(SchemaRef, StreamEncoder)>,
}

impl std::fmt::Debug for BatchEncoder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("BatchEncoder").field("compression", &self.compression).finish_non_exhaustive()
    }
}

impl BatchEncoder {
    #[must_use]
    pub fn new(compression: Compression) -> Self {
        Self { compression, stream: None }
    }

    /// The batch without what its columns keep alive and do not show. Do it once, before cutting the batch into pieces.
    ///
    /// # Errors
    /// Those of Arrow's `take`, for nested columns.
    pub fn compact(batch: RecordBatch) -> Result<RecordBatch, ArrowError> {
        compact(batch)
    }

    /// # Errors
    /// A type that Arrow IPC does not carry.
    pub fn encode(&mut self, batch: &RecordBatch) -> Result<Body, ArrowError> {
        let known = self.stream.take().filter(|(schema, _)| schema == batch.schema_ref());
        let (schema, mut encoder) = match known {
            Some(stream) => stream,
            None => (batch.schema(), StreamEncoder::try_new(batch.schema_ref())?),
        };
        let parts = encoder.encode(batch)?;
        self.stream = Some((schema, encoder));
        let uncompressed = parts.iter().map(Buffer::len).sum();
        let mut bytes = Vec::with_capacity(uncompressed);
        parts.iter().for_each(|part| bytes.extend_from_slice(part));
        if self.compression == Compression::None {
            return Ok(Body { bytes, flags: Flags::NONE, uncompressed });
        }
        let compressed = lz4_flex::block::compress_prepend_size(&bytes);
        if compressed.len() < bytes.len() {
            return Ok(Body { bytes: compressed, flags: Flags::LZ4, uncompressed });
        }
        Ok(Body { bytes, flags: Flags::NONE, uncompressed })
    }
}
