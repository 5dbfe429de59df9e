//! How calls to remote storage are bounded.

use std::time::Duration;

use streamkeeper_types::{Code, Error, Result};

/// Least part size that S3 accepts.
const LEAST_PART: u64 = 5 << 20;

/// Limits for calls to remote storage; `file://` does not need them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StorageOptions {
    /// How long one call may take, its retries included; one try gets a third of it. Both grow by a second for each
    /// MiB that is moved, and each part of a large object counts on its own.
    pub timeout: Duration,
    /// Tries after the first.
    pub retries: u32,
    /// Bytes of one part of a large upload.
    pub part_size: u64,
}

impl Default for StorageOptions {
    fn default() -> Self {
        Self { timeout: Duration::from_secs(30), retries: 4, part_size: 8 << 20 }
    }
}

impl StorageOptions {
    /// Refuses limits that no call could keep.
    ///
    /// # Errors
    /// `OPTION_INVALID` with the option's name.
    pub fn check(&self) -> Result<()> {
        if self.timeout < Duration::from_secs(1) {
            return Err(invalid("storage.timeout", "it must be 1s at least"));
        }
        if self.part_size < LEAST_PART {
            return Err(invalid("storage.part-size", "S3 takes no parts below 5MiB"));
        }
        Ok(())
    }
}

fn invalid(key: &str, cause: &str) -> Error {
    Error::new(Code::OptionInvalid, format!("{key}: {cause}"))
}
