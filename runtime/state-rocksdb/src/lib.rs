//! RocksDB below the cache of keyed state: one database a subtask, one column family a table, no write-ahead log.
//!
//! Two to know: [`RocksdbBackend`] (shared by the process: block cache and write buffers within the one memory
//! budget), and behind it the store of one subtask, which is written by sorted files only: no memtable is ever used.
//! Restore follows the ladder of runtime-rules.md X7: files as they are where possible, else rows scanned and written
//! anew.
//!
//! Must not know: what rows mean (they are bytes), when a checkpoint is due.

mod backend;
mod cut;
mod options;
mod raw;
mod restore;
mod sst;
mod store;
mod view;

pub use backend::RocksdbBackend;
