//! Once faults have ended, the job comes to its end.

use streamkeeper_types::Millis;

use super::Verdict;

/// # Errors
/// The job needed more steps than any healthy run.
pub fn ends_within(steps: usize, limit: usize, doing: impl FnOnce() -> String) -> Verdict {
    if steps < limit { Ok(()) } else { Err(format!("{limit} steps after healing the job has not ended: {}", doing())) }
}

/// As [`ends_within`], in simulated milliseconds since the healing.
///
/// # Errors
/// The job needed longer than any healthy run.
pub fn ends_in_time(time: Millis, limit: Millis, doing: impl FnOnce() -> String) -> Verdict {
    if time < limit { Ok(()) } else { Err(format!("{limit} ms after healing the job has not ended: {}", doing())) }
}
