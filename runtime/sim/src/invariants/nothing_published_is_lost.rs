//! What a reign got confirmed, and sinks may have committed, is known to every later reign that begins.

use std::collections::{BTreeMap, BTreeSet};

use streamkeeper_types::{CheckpointId, Generation};

use super::Verdict;

/// Confirmations and begins of all reigns.
#[derive(Debug, Default)]
pub struct NothingPublishedIsLost {
    confirmed: BTreeMap<CheckpointId, Generation>,
    begins: Vec<(Generation, BTreeSet<CheckpointId>)>,
}

impl NothingPublishedIsLost {
    /// A reign learnt that its record is in the log.
    ///
    /// # Errors
    /// Another reign got the same id confirmed, so one of them went on from older state; or a reign that began already
    /// does not know it.
    pub fn confirmed(&mut self, generation: Generation, id: CheckpointId) -> Verdict {
        let before = self.confirmed.insert(id, generation).filter(|before| *before != generation);
        if let Some(before) = before {
            return Err(format!("id {id} was confirmed to generation {before} and to {generation}"));
        }
        self.begins.iter().try_for_each(|(begun, known)| check(*begun, known, generation, id))
    }

    /// A reign began with these checkpoints.
    ///
    /// # Errors
    /// One that a lower reign got confirmed is not among them.
    pub fn began(&mut self, generation: Generation, known: BTreeSet<CheckpointId>) -> Verdict {
        self.confirmed.iter().try_for_each(|(id, by)| check(generation, &known, *by, *id))?;
        self.begins.push((generation, known));
        Ok(())
    }
}

fn check(begun: Generation, known: &BTreeSet<CheckpointId>, by: Generation, id: CheckpointId) -> Verdict {
    if by < begun && !known.contains(&id) {
        return Err(format!("generation {begun} began without checkpoint {id}, which {by} had published"));
    }
    Ok(())
}
