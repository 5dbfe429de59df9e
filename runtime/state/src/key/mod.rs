//! Keys: which columns, their bytes, their hash, their key group.

mod encoder;
mod rows;
mod schema;
#[cfg(test)]
mod tests;

pub use encoder::KeyEncoder;
pub use rows::KeyRows;
pub(crate) use rows::leading;
pub use schema::{KeyPrefix, KeySchema};
