//! The encoded keys of one batch, in buffers that are used again for the next.

use streamkeeper_types::KeyGroup;

/// Keys of one batch, one a row: bytes, hash and key group.
#[derive(Debug, Clone, Default)]
pub struct KeyRows {
    pub(super) bytes: Vec<u8>,
    /// One more than rows; row `i` is `bytes[offsets[i]..offsets[i + 1]]`.
    pub(super) offsets: Vec<u32>,
    pub(super) hashes: Vec<u64>,
    pub(super) groups: Vec<KeyGroup>,
}

impl KeyRows {
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    #[must_use]
    pub fn len(&self) -> usize {
        self.hashes.len()
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.hashes.is_empty()
    }

    /// Row bytes: key group (u16, big-endian), then the columns.
    #[must_use]
    #[inline]
    pub fn key(&self, row: usize) -> &[u8] {
        &self.bytes[self.offsets[row] as usize..self.offsets[row + 1] as usize]
    }

    /// XXH3-64 of all columns' bytes, without the key group.
    #[must_use]
    pub fn hashes(&self) -> &[u64] {
        &self.hashes
    }

    #[must_use]
    pub fn groups(&self) -> &[KeyGroup] {
        &self.groups
    }
}

/// The first 16 bytes of a key as a number that orders as they do; shorter keys end in zeros. Only keys whose numbers
/// are equal need to be compared as bytes.
#[inline]
pub(crate) fn leading(key: &[u8]) -> u128 {
    if let Some(bytes) = key.first_chunk() {
        return u128::from_be_bytes(*bytes);
    }
    let mut bytes = [0; 16];
    bytes[..key.len()].copy_from_slice(key);
    u128::from_be_bytes(bytes)
}
