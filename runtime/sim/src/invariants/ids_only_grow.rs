//! R1: an id is used once, and what is published later has the higher one.

use std::collections::BTreeMap;

use streamkeeper_types::{CheckpointId, Generation};

use super::Verdict;

/// Ids handed out and published, over all reigns.
#[derive(Debug, Default)]
pub struct IdsOnlyGrow {
    allocated: BTreeMap<CheckpointId, Generation>,
    published: Option<(CheckpointId, Generation)>,
}

impl IdsOnlyGrow {
    /// An id was handed out.
    ///
    /// # Errors
    /// It had been before.
    pub fn allocated(&mut self, generation: Generation, id: CheckpointId) -> Verdict {
        match self.allocated.insert(id, generation) {
            Some(before) => Err(format!("id {id} was handed out by generation {before} and again by {generation}")),
            None => Ok(()),
        }
    }

    /// A record became visible.
    ///
    /// # Errors
    /// A higher or the same id was visible before.
    pub fn published(&mut self, generation: Generation, id: CheckpointId) -> Verdict {
        if let Some((last, by)) = self.published.filter(|(last, _)| *last >= id) {
            return Err(format!("generation {generation} published id {id} after {last} of generation {by}"));
        }
        self.published = Some((id, generation));
        Ok(())
    }
}
