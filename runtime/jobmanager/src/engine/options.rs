//! Checkpoint options (runtime-rules.md §1.3).

use std::time::Duration;

use streamkeeper_types::Millis;

/// Options of periodic and requested checkpoints.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckpointOptions {
    /// Time between periodic triggers. `None`: only on request, and the final one.
    pub interval: Option<Duration>,
    /// Least time from a completion to the next periodic trigger.
    pub min_pause: Duration,
    /// How long one checkpoint may take.
    pub timeout: Duration,
    /// Checkpoints under way at once, and replaced ones waiting for their deletion.
    pub max_concurrent: usize,
    /// Consecutive failures that the job survives.
    pub tolerable_failures: u32,
    /// Completed checkpoints kept, at least 1.
    pub retained: usize,
    /// Requests that may wait.
    pub max_queued: usize,
    /// Statistics kept.
    pub history: usize,
    /// Whether a checkpoint may refer to files of earlier ones.
    pub sharing: Sharing,
}

/// Whether a checkpoint may refer to files of earlier ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sharing {
    Incremental,
    Full,
}

impl Default for CheckpointOptions {
    fn default() -> Self {
        Self {
            interval: Some(Duration::from_secs(10)),
            min_pause: Duration::from_millis(500),
            timeout: Duration::from_secs(600),
            max_concurrent: 1,
            tolerable_failures: 3,
            retained: 2,
            max_queued: 1_000,
            history: 50,
            sharing: Sharing::Incremental,
        }
    }
}

impl CheckpointOptions {
    /// Delay of the first periodic trigger, in [min-pause, interval], so that jobs do not align. `random` is from 0 to
    /// 1.
    #[must_use]
    pub fn first_delay(&self, random: f64) -> Duration {
        let interval = self.interval.unwrap_or_default();
        let least = self.min_pause.min(interval);
        least + (interval - least).mul_f64(random.clamp(0.0, 1.0))
    }
}

/// A duration in the engine's unit of time.
pub(crate) fn millis(duration: Duration) -> Millis {
    Millis::try_from(duration.as_millis()).unwrap_or(Millis::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_delay_lies_between_min_pause_and_interval() {
        let options = CheckpointOptions::default();
        assert_eq!(options.first_delay(0.0), Duration::from_millis(500));
        assert_eq!(options.first_delay(1.0), Duration::from_secs(10));
        let short = CheckpointOptions { interval: Some(Duration::from_millis(100)), ..options };
        assert_eq!(short.first_delay(0.5), Duration::from_millis(100));
    }
}
