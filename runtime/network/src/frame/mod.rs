//! What travels between two TaskManagers, byte by byte.
//!
//! ```text
//!  0      2       3     4      6        8        12      16        24             28
//! ┌──────┬───────┬─────┬──────┬────────┬────────┬───────┬─────────┬──────────────┬────────────────┐
//! │ "SK" │version│kind │flags │reserved│channel │length │sequence │body checksum │header checksum │ body …
//! └──────┴───────┴─────┴──────┴────────┴────────┴───────┴─────────┴──────────────┴────────────────┘
//! ```
//! Numbers are little-endian. The sequence counts all frames of one direction of a connection, so that a lost, doubled
//! or reordered frame is seen at once. Both checksums are the low half of XXH3-64.

mod body;
mod fault;
mod header;

pub use body::{ChannelEvent, ChannelKey, CloseReason, Hello, PeerId, Refusal, Welcome};
pub use fault::Fault;
pub use header::{Flags, HEADER_LEN, Header, Kind, VERSION, checksum};

pub(crate) use body::{decode, encode};
