//! Snapshots: what is asked for, what was frozen at the cut, and the files it becomes.

mod canonical;
mod frozen;
mod object;
mod physical_rows;
mod request;
mod stored;
mod upload;

pub(crate) use canonical::{CanonicalFile, CanonicalRows, canonical_batch, read_canonical};
pub use frozen::FrozenState;
pub(crate) use frozen::{Content, Outcome, table_handle};
pub(crate) use object::{Section, StateObject};
pub(crate) use physical_rows::{PhysicalRows, physical_batch};
pub use request::{Extent, SnapshotFormat, SnapshotKind, SnapshotRequest};
pub(crate) use stored::{contained, read_stream};
pub use upload::fetch_to_file;
pub(crate) use upload::{Folder, Uploader, fetch};
