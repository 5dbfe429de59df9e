//! Body of a frame → batch, without trust in the body.
//!
//! Arrow checks offsets, UTF-8 and lengths while it builds the arrays, but parts of its IPC reader assume well-formed
//! metadata and panic otherwise. What can be checked beforehand is; what is left is caught and refused like any other
//! damage.

use std::{
    collections::HashMap,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
};

use arrow::{
    array::{ArrayRef, RecordBatch},
    buffer::{Buffer, MutableBuffer},
    datatypes::SchemaRef,
    ipc::{self, MessageHeader, MetadataVersion, convert::fb_to_schema, reader},
};

use crate::frame::{Fault, Flags};

/// A row takes at least a bit somewhere, but in columns without values; this bounds them.
const MOST_ROWS: i64 = 1 << 24;
/// Values of a column, lists' elements among them.
const MOST_VALUES: i64 = 1 << 32;
const CONTINUATION: u32 = u32::MAX;
const PREFIX: usize = 8;

/// Decodes the batches of one channel, in order.
#[derive(Debug)]
pub struct BatchDecoder {
    schema: Option<SchemaRef>,
    dictionaries: HashMap<i64, ArrayRef>,
    /// Largest body before compression, in bytes.
    largest: usize,
}

impl BatchDecoder {
    /// `largest`: largest body, before compression, in bytes.
    #[must_use]
    pub fn new(largest: usize) -> Self {
        Self { schema: None, dictionaries: HashMap::new(), largest }
    }

    /// The body without compression.
    ///
    /// # Errors
    /// When it is damaged or would become larger than allowed.
    pub fn uncompress(&self, body: Buffer, flags: Flags) -> Result<Buffer, Fault> {
        if !flags.is_lz4() {
            return Ok(body);
        }
        let Some((size, block)) = body.split_first_chunk::<4>() else {
            return Err(Fault::Malformed("a compressed batch without its size".into()));
        };
        let size = u32::from_le_bytes(*size) as usize;
        if size > self.largest {
            return Err(Fault::Malformed(format!("a batch of {size} bytes, and {} are allowed", self.largest)));
        }
        let mut plain = MutableBuffer::from_len_zeroed(size);
        match lz4_flex::block::decompress_into(block, plain.as_slice_mut()) {
            Ok(written) if written == size => Ok(plain.into()),
            Ok(written) => Err(Fault::Malformed(format!("a batch of {written} instead of {size} bytes"))),
            Err(error) => Err(Fault::Malformed(error.to_string())),
        }
    }

    /// The batch in an uncompressed body, which it then shares.
    ///
    /// # Errors
    /// When the body is not what [`super::BatchEncoder`] writes. The decoder is of no use afterwards.
    pub fn decode(&mut self, body: &Buffer) -> Result<RecordBatch, Fault> {
        match catch_unwind(AssertUnwindSafe(|| self.read(body))) {
            Ok(batch) => batch.map_err(Fault::Malformed),
            Err(_) => Err(Fault::Malformed("its Arrow metadata contradicts itself".into())),
        }
    }

    fn read(&mut self, body: &Buffer) -> Result<RecordBatch, String> {
        let mut at = 0;
        loop {
            let (message, data, next) = message_at(body, at)?;
            at = next;
            match message.header_type() {
                MessageHeader::Schema => {
                    let schema = message.header_as_schema().ok_or("a schema message without schema")?;
                    self.schema = Some(Arc::new(fb_to_schema(schema)));
                    self.dictionaries.clear();
                }
                MessageHeader::DictionaryBatch => {
                    let dictionary = message.header_as_dictionary_batch().ok_or("a dictionary message without one")?;
                    let values = dictionary.data().ok_or("a dictionary without values")?;
                    if dictionary.isDelta() {
                        return Err("a dictionary that grows".into());
                    }
                    check(&values, &data)?;
                    let schema = self.schema.as_deref().ok_or("a dictionary before any schema")?;
                    let dictionaries = &mut self.dictionaries;
                    reader::read_dictionary(&data, dictionary, schema, dictionaries, &MetadataVersion::V5)
                        .map_err(|e| e.to_string())?;
                }
                MessageHeader::RecordBatch => {
                    let batch = message.header_as_record_batch().ok_or("a batch message without batch")?;
                    check(&batch, &data)?;
                    if at < body.len() || batch.length() == 0 {
                        return Err("a frame holds one batch with rows, at its end".into());
                    }
                    let schema = Arc::clone(self.schema.as_ref().ok_or("a batch before any schema")?);
                    let version = MetadataVersion::V5;
                    return reader::read_record_batch(&data, batch, schema, &self.dictionaries, None, &version)
                        .map_err(|e| e.to_string());
                }
                other => return Err(format!("a message of kind {other:?}")),
            }
        }
    }
}

/// The message that begins at `at`, its data, and where the next begins.
fn message_at(body: &Buffer, at: usize) -> Result<(ipc::Message<'_>, Buffer, usize), String> {
    let bytes = body.as_slice().get(at..).unwrap_or_default();
    let word = |at: usize| bytes.get(at..at + 4).and_then(|b| b.try_into().ok()).map(u32::from_le_bytes);
    let (Some(CONTINUATION), Some(length)) = (word(0), word(4)) else {
        return Err("a message is cut off".into());
    };
    let data_at = PREFIX + length as usize;
    let metadata = bytes.get(PREFIX..data_at).ok_or("a message is cut off")?;
    let message = ipc::root_as_message(metadata).map_err(|e| e.to_string())?;
    if message.version() != MetadataVersion::V5 {
        return Err("a message of another version".into());
    }
    let length = usize::try_from(message.bodyLength()).map_err(|e| e.to_string())?;
    if length > bytes.len() - data_at {
        return Err("a message's data are cut off".into());
    }
    Ok((message, body.slice_with_length(at + data_at, length), at + data_at + length))
}

/// Checks what Arrow takes for granted.
fn check(batch: &ipc::RecordBatch<'_>, data: &Buffer) -> Result<(), String> {
    if batch.compression().is_some() {
        return Err("compression within a message".into());
    }
    if !(0..=MOST_ROWS).contains(&batch.length()) {
        return Err(format!("a batch of {} rows", batch.length()));
    }
    for node in batch.nodes().into_iter().flatten() {
        if !(0..=MOST_VALUES).contains(&node.length()) || !(0..=node.length()).contains(&node.null_count()) {
            return Err(format!("a column of {} rows, {} of them NULL", node.length(), node.null_count()));
        }
    }
    for buffer in batch.buffers().into_iter().flatten() {
        let end = buffer.offset().checked_add(buffer.length());
        let fits = buffer.offset() >= 0 && buffer.length() >= 0 && end.is_some_and(|end| end <= data.len() as i64);
        if !fits {
            return Err("a buffer outside the message".into());
        }
    }
    if batch.variadicBufferCounts().into_iter().flatten().any(|count| !(0..=i64::from(u16::MAX)).contains(&count)) {
        return Err("a view column with too many buffers".into());
    }
    Ok(())
}
