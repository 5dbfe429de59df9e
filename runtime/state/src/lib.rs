//! Keyed state: typed tables by key, snapshots of them, and their way back at any parallelism.
//!
//! Three to know: [`KeyedState`] (one operator's state in one subtask), [`Table`] (key → slot → columns),
//! [`KeyEncoder`] (key columns → bytes, hash and key group). A batch goes
//! `encode` → [`Table::lookup`] → columns → [`Table::mark_dirty`] → [`KeyedState::maintain`].
//!
//! Must not know: what an operator computes, when a checkpoint is due, RocksDB (it implements [`Backend`]).

// Slots, offsets and column counts are 32-bit by design; lengths are checked where they come in.
#![expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_possible_wrap)]

mod budget;
mod bytes_store;
mod codec;
mod cold;
mod column;
mod fold;
mod key;
mod keyed;
mod memory;
mod physical;
mod restore;
mod row;
mod snapshot;
mod spec;
mod table;
mod type_text;

pub use budget::{MemoryBudget, Reservation};
pub use cold::{
    Backend, ColdCut, ColdRows, ColdSource, ColdStore, ColdView, CutFile, FoundVisitor, OpenCold, OpenedCold,
    RestoreStep, RowVisitor,
};
pub use column::{Bytes as BytesColumn, Fixed, ValueColumn};
pub use key::{KeyEncoder, KeyPrefix, KeyRows, KeySchema};
pub use keyed::{DroppedState, KeyedOptions, KeyedState};
pub use memory::MemoryBackend;
pub use physical::Physical;
pub use restore::{Migration, migrations};
pub use snapshot::{Extent, FrozenState, SnapshotFormat, SnapshotKind, SnapshotRequest, fetch_to_file};
pub(crate) use spec::SCHEMA_VERSION;
pub use spec::{Initial, TableSpec, Ttl, TtlRefresh, ValueField};
pub(crate) use table::table_bounds;
pub use table::{Missing, Scan, ScanOrder, Slot, Table};
