//! R25: no process runs tasks of a generation after those of a higher one.

use std::collections::BTreeMap;

use streamkeeper_types::Generation;

use super::Verdict;

/// The highest generation that each TaskManager, told apart by number and life, has run.
#[derive(Debug, Default)]
pub struct GenerationsOnlyGrow {
    highest: BTreeMap<(usize, u64), Generation>,
}

impl GenerationsOnlyGrow {
    /// A deployment was accepted.
    ///
    /// # Errors
    /// A higher generation had deployed there.
    pub fn ran(&mut self, task_manager: (usize, u64), generation: Generation) -> Verdict {
        let highest = self.highest.entry(task_manager).or_insert(generation);
        if *highest > generation {
            let (id, _) = task_manager;
            return Err(format!("TaskManager {id} runs tasks of generation {generation} after those of {highest}"));
        }
        *highest = generation;
        Ok(())
    }
}
