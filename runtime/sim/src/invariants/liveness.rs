//! Once faults have ended, the job comes to its end.

use super::Verdict;

/// # Errors
/// The job needed more steps than any healthy run.
pub fn ends_within(steps: usize, limit: usize, doing: impl FnOnce() -> String) -> Verdict {
    if steps < limit { Ok(()) } else { Err(format!("{limit} steps after healing the job has not ended: {}", doing())) }
}
