//! The contract of keyed state over RocksDB, and what is RocksDB's own: steps of the restore ladder, budget, backends.

#![allow(clippy::unwrap_used, clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_possible_wrap)]

#[path = "../../../state/tests/it/contract/mod.rs"]
mod contract;
mod rocksdb_own;

use std::sync::Arc;

use contract::Fixture;
use streamkeeper_state::{Backend, MemoryBudget};
use streamkeeper_state_rocksdb::RocksdbBackend;

struct Rocksdb;

impl Fixture for Rocksdb {
    fn backend(&self, budget: usize) -> Arc<dyn Backend> {
        Arc::new(RocksdbBackend::new(MemoryBudget::new(budget)))
    }

    fn walks(&self) -> u64 {
        3
    }
}

contract_tests!(Rocksdb);
