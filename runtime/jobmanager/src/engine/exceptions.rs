//! Failures of a job, for people.

use std::collections::VecDeque;

use streamkeeper_types::{AttemptId, Error, Millis};

/// Failures that are remembered.
const REMEMBERED: usize = 32;

/// One failure of the job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exception {
    pub at: Millis,
    pub error: Error,
    /// The task that failed first; `None` if it was none of them, as when there are no slots.
    pub task: Option<AttemptId>,
    /// Whether the job was restarted because of it; else it ended.
    pub restarted: bool,
}

/// The newest failures, and how many there were.
#[derive(Debug, Clone, Default)]
pub struct ExceptionHistory {
    entries: VecDeque<Exception>,
    total: u64,
}

impl ExceptionHistory {
    /// Newest last.
    pub fn entries(&self) -> impl DoubleEndedIterator<Item = &Exception> {
        self.entries.iter()
    }

    /// Failures so far, also those that are not kept.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.total
    }

    pub(super) fn record(&mut self, exception: Exception) {
        self.total += 1;
        self.entries.push_back(exception);
        while self.entries.len() > REMEMBERED {
            self.entries.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_failures_are_kept_and_all_are_counted() {
        let mut history = ExceptionHistory::default();
        for at in 0..40 {
            history.record(Exception { at, error: Error::internal("x"), task: None, restarted: true });
        }
        let kept: Vec<Millis> = history.entries().map(|exception| exception.at).collect();
        assert_eq!((kept, history.total()), ((8..40).collect(), 40));
    }
}
