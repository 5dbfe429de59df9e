//! `scan.rate-limit`: a source puts out so many rows a second at most.

use std::time::{Duration, Instant};

/// One subtask's share of the limit.
#[derive(Debug)]
pub(super) struct RateLimit {
    rows_per_second: f64,
    /// When the next batch may be read.
    next: Instant,
}

/// With a limit, a batch holds the rows of this much time, so that rows come steadily.
const BATCHES_PER_SECOND: u64 = 20;

impl RateLimit {
    pub(super) fn new(rows_per_second: u64, parallelism: u32, now: Instant) -> Self {
        #[expect(clippy::cast_precision_loss, reason = "a limit needs no 53 bits")]
        let rows_per_second = rows_per_second.max(1) as f64 / f64::from(parallelism.max(1));
        Self { rows_per_second, next: now }
    }

    /// Time until the next batch may be read; zero if now.
    pub(super) fn wait(&self, now: Instant) -> Duration {
        self.next.saturating_duration_since(now)
    }

    /// A batch was read. Time in which nothing could be read is not made up for.
    pub(super) fn on_rows(&mut self, rows: usize, now: Instant) {
        #[expect(clippy::cast_precision_loss, reason = "a batch has fewer than 2^53 rows")]
        let pause = Duration::from_secs_f64(rows as f64 / self.rows_per_second);
        self.next = self.next.max(now) + pause;
    }
}

/// Rows that a batch should have under a limit for the whole source.
pub(super) fn batch_rows(limit: Option<u64>, parallelism: u32, wanted: usize) -> usize {
    let Some(limit) = limit else { return wanted };
    let share = limit / u64::from(parallelism.max(1)) / BATCHES_PER_SECOND;
    usize::try_from(share).unwrap_or(wanted).clamp(1, wanted)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_batch_is_paid_for_before_the_next() {
        let start = Instant::now();
        let mut limit = RateLimit::new(1_000, 2, start);
        assert_eq!(limit.wait(start), Duration::ZERO);
        limit.on_rows(50, start);
        assert_eq!(limit.wait(start), Duration::from_millis(100));
        let late = start + Duration::from_secs(5);
        limit.on_rows(50, late);
        assert_eq!(limit.wait(late), Duration::from_millis(100));
    }

    #[test]
    fn batches_are_small_under_a_limit() {
        assert_eq!(batch_rows(None, 4, 8192), 8192);
        assert_eq!(batch_rows(Some(1_000), 2, 8192), 25);
        assert_eq!(batch_rows(Some(1), 2, 8192), 1);
    }
}
