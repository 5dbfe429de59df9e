//! Record batches as bytes: Arrow IPC messages, one frame body a batch.
//!
//! A body is a sequence of encapsulated IPC messages: the schema in front of the first batch and wherever it changes,
//! dictionaries where they changed, then one record batch. Encoding copies each value once, into a body of exactly the
//! needed size; decoding copies nothing, the columns point into the body.

mod compact;
mod decoder;
mod encoder;

pub use decoder::BatchDecoder;
pub use encoder::{BatchEncoder, Body, Compression};
