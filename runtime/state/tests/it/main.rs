//! The contract of keyed state over the memory backend, and what hostile files do to it.

#![allow(clippy::unwrap_used, clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_possible_wrap)]

mod contract;
mod hostile;
mod memory_own;

use std::sync::Arc;

use contract::Fixture;
use streamkeeper_state::{Backend, MemoryBackend, MemoryBudget};

struct Memory;

impl Fixture for Memory {
    fn backend(&self, budget: usize) -> Arc<dyn Backend> {
        // Without a cold store nothing can be evicted.
        Arc::new(MemoryBackend::new(MemoryBudget::new(budget.max(1 << 30))))
    }

    fn walks(&self) -> u64 {
        25
    }
}

contract_tests!(Memory);
