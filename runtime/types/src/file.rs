//! A reference to one immutable file in checkpoint storage.

use serde::{Deserialize, Serialize};

/// Who may use a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum FileScope {
    /// Several checkpoints may name it; the shared registry decides when it goes (R20).
    Shared,
    /// One checkpoint or savepoint alone.
    Private,
}

/// One immutable file that a snapshot consists of. Its path is unique for all time (R22) and so is its identity.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct FileRef {
    /// Relative to the job's folder, with `/` between parts.
    pub path: String,
    /// Bytes.
    pub size: u64,
    /// XXH3-64 of the whole content.
    pub checksum: u64,
    pub scope: FileScope,
}
