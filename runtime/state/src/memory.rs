//! The backend that keeps all state in the caches.

use std::sync::Arc;

use streamkeeper_types::Result;

use crate::{Backend, MemoryBudget, OpenCold, OpenedCold};

/// All state in memory; a snapshot's base is a column file of all rows. The oracle of the other backends.
#[derive(Debug)]
pub struct MemoryBackend {
    budget: Arc<MemoryBudget>,
}

impl MemoryBackend {
    #[must_use]
    pub fn new(budget: Arc<MemoryBudget>) -> Self {
        Self { budget }
    }
}

impl Backend for MemoryBackend {
    fn name(&self) -> &'static str {
        "memory"
    }

    fn budget(&self) -> &Arc<MemoryBudget> {
        &self.budget
    }

    fn open_cold(&self, _request: &OpenCold<'_>) -> Result<Option<OpenedCold>> {
        Ok(None)
    }
}
