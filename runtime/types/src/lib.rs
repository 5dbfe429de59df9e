//! The words that every part of Streamkeeper shares: ids, key groups, event time, row kinds, durations, errors.
//!
//! Three to know: [`KeyGroup`] (unit in which keyed state is spread and moved), [`CheckpointId`] and
//! [`Generation`] (number of a JobManager's reign), [`Error`] (a stable code, the cause, the way out).
//!
//! Must not know: I/O, Arrow, any other crate of the project.

pub mod duration;
mod error;
mod file;
pub mod hex;
mod ids;
pub mod key_group;
pub mod options;
mod row_kind;
pub mod size;
pub mod snapshot;
mod time;

pub use error::{Code, Error, Fault, Result, ResultExt};
pub use file::{FileRef, FileScope};
pub use ids::{AttemptId, CheckpointId, Generation, OperatorId, SubtaskId, VertexId};
pub use key_group::{KeyGroup, KeyGroupRange};
pub use row_kind::{ROW_KIND_COLUMN, RowKind};
pub use time::{EventTime, Millis, Watermark};
