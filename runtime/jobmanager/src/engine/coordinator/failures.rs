//! Counts consecutive failures of checkpoints.

use std::collections::BTreeSet;

use streamkeeper_types::CheckpointId;

/// Each id counts once; an id at or below the last success does not count any more (R32, B4).
#[derive(Debug)]
pub(super) struct FailureCounter {
    tolerable: u32,
    consecutive: u32,
    counted: BTreeSet<CheckpointId>,
    last_success: Option<CheckpointId>,
}

/// Whether the job survives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tolerance {
    Tolerated,
    Exceeded,
}

impl FailureCounter {
    pub(super) fn new(tolerable: u32) -> Self {
        Self { tolerable, consecutive: 0, counted: BTreeSet::new(), last_success: None }
    }

    /// A checkpoint completed.
    pub(super) fn success(&mut self, id: CheckpointId) {
        self.last_success = self.last_success.max(Some(id));
        self.reset();
    }

    /// The job was restarted.
    pub(super) fn reset(&mut self) {
        self.consecutive = 0;
        self.counted.clear();
    }

    /// One failed; `None` if it did not even get an id (B5).
    pub(super) fn failure(&mut self, id: Option<CheckpointId>) -> Tolerance {
        let is_old = id.is_some() && id <= self.last_success;
        if is_old || id.is_some_and(|id| !self.counted.insert(id)) {
            return Tolerance::Tolerated;
        }
        self.consecutive += 1;
        if self.consecutive > self.tolerable { Tolerance::Exceeded } else { Tolerance::Tolerated }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(id: u64) -> Option<CheckpointId> {
        Some(CheckpointId(id))
    }

    #[test]
    fn b4_r32_failures_of_older_ids_after_a_success_do_not_count() {
        let mut failures = FailureCounter::new(2);
        failures.success(CheckpointId(2));
        for _ in 0..3 {
            assert_eq!(failures.failure(id(1)), Tolerance::Tolerated);
        }
        assert_eq!(failures.failure(id(3)), Tolerance::Tolerated);
        assert_eq!(failures.failure(id(4)), Tolerance::Tolerated);
        assert_eq!(failures.failure(id(5)), Tolerance::Exceeded);
    }

    #[test]
    fn one_id_counts_once_and_a_success_starts_anew() {
        let mut failures = FailureCounter::new(1);
        assert_eq!(failures.failure(id(1)), Tolerance::Tolerated);
        assert_eq!(failures.failure(id(1)), Tolerance::Tolerated);
        failures.success(CheckpointId(2));
        assert_eq!(failures.failure(id(3)), Tolerance::Tolerated);
        assert_eq!(failures.failure(id(4)), Tolerance::Exceeded);
    }

    #[test]
    fn b5_failures_before_an_id_exists_count() {
        let mut failures = FailureCounter::new(1);
        assert_eq!(failures.failure(None), Tolerance::Tolerated);
        assert_eq!(failures.failure(None), Tolerance::Exceeded);
    }
}
