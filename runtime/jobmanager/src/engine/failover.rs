//! What a failure of the job means: restart after a pause, or give up.

use std::{collections::VecDeque, time::Duration};

use streamkeeper_types::Millis;

use super::options::millis;

/// How a job comes back.
#[derive(Debug, Clone, PartialEq)]
pub enum RestartStrategy {
    /// Not at all.
    None,
    /// `attempts` times, each after `delay`.
    FixedDelay { attempts: u32, delay: Duration },
    /// As long as fewer than `failures` lie within `window`, each after `delay`.
    FailureRate { failures: usize, window: Duration, delay: Duration },
    /// Always; the pause grows with each failure and is reset after a quiet time.
    ExponentialDelay(ExponentialDelay),
}

/// Pauses that grow.
#[derive(Debug, Clone, PartialEq)]
pub struct ExponentialDelay {
    pub initial: Duration,
    pub max: Duration,
    pub multiplier: f64,
    /// Part of the pause by which it varies, so that jobs do not come back together.
    pub jitter: f64,
    /// Time without failure after which the pause begins at `initial` again.
    pub reset_after: Duration,
}

impl Default for ExponentialDelay {
    fn default() -> Self {
        Self {
            initial: Duration::from_millis(100),
            max: Duration::from_secs(60),
            multiplier: 1.5,
            jitter: 0.1,
            reset_after: Duration::from_secs(3600),
        }
    }
}

/// What to do now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    RestartAfter(Duration),
    GiveUp,
}

/// Counts failures and applies the strategy.
#[derive(Debug, Clone)]
pub struct Failover {
    strategy: RestartStrategy,
    /// Times of the failures that still matter.
    failures: VecDeque<Millis>,
    restarts: u32,
    /// The last pause without jitter.
    pause: Option<Duration>,
    /// When the last pause ended or ends.
    resumed: Millis,
}

impl Failover {
    #[must_use]
    pub fn new(strategy: RestartStrategy) -> Self {
        Self { strategy, failures: VecDeque::new(), restarts: 0, pause: None, resumed: 0 }
    }

    /// Restarts so far.
    #[must_use]
    pub fn restarts(&self) -> u32 {
        self.restarts
    }

    /// Judges a failure at `now`. `random` is from −1 to 1.
    #[must_use]
    pub fn on_failure(&mut self, now: Millis, random: f64) -> Verdict {
        let pause = match &self.strategy {
            RestartStrategy::None => None,
            RestartStrategy::FixedDelay { attempts, delay } => (self.restarts < *attempts).then_some(*delay),
            RestartStrategy::FailureRate { failures, window, delay } => {
                let since = now.saturating_sub(millis(*window));
                self.failures.retain(|time| *time > since);
                self.failures.push_back(now);
                (self.failures.len() <= *failures).then_some(*delay)
            }
            RestartStrategy::ExponentialDelay(settings) => {
                let quiet = now.saturating_sub(self.resumed) >= millis(settings.reset_after);
                let pause = match self.pause {
                    Some(last) if !quiet => settings.max.min(last.mul_f64(settings.multiplier.max(1.0))),
                    _ => settings.initial,
                };
                self.pause = Some(pause);
                let jitter = settings.jitter.clamp(0.0, 1.0) * random.clamp(-1.0, 1.0);
                Some(pause.mul_f64(1.0 + jitter))
            }
        };
        let Some(pause) = pause else { return Verdict::GiveUp };
        self.restarts += 1;
        self.resumed = now.saturating_add(millis(pause));
        Verdict::RestartAfter(pause)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Pauses in milliseconds for failures at these times, without jitter; `None` = gives up.
    fn pauses(strategy: RestartStrategy, failures: &[Millis]) -> Vec<Option<u128>> {
        let mut failover = Failover::new(strategy);
        let judge = |time: &Millis| match failover.on_failure(*time, 0.0) {
            Verdict::RestartAfter(pause) => Some(pause.as_millis()),
            Verdict::GiveUp => None,
        };
        failures.iter().map(judge).collect()
    }

    #[test]
    fn each_strategy_pauses_and_gives_up_as_it_says() {
        let second = Duration::from_secs(1);
        assert_eq!(pauses(RestartStrategy::None, &[0]), [None]);
        let fixed = RestartStrategy::FixedDelay { attempts: 2, delay: second };
        assert_eq!(pauses(fixed, &[0, 10, 20]), [Some(1000), Some(1000), None]);
        let rate = RestartStrategy::FailureRate { failures: 2, window: second, delay: Duration::from_millis(5) };
        assert_eq!(pauses(rate.clone(), &[0, 10, 20]), [Some(5), Some(5), None]);
        assert_eq!(pauses(rate, &[0, 10, 1005, 1011]), [Some(5), Some(5), Some(5), Some(5)]);
    }

    #[test]
    fn the_exponential_pause_grows_to_its_bound_and_is_reset_after_a_quiet_time() {
        let settings = ExponentialDelay {
            max: Duration::from_millis(200),
            reset_after: Duration::from_secs(10),
            ..ExponentialDelay::default()
        };
        let times = [0, 200, 400, 600, 20_000, 20_200];
        let expected = [100, 150, 200, 200, 100, 150].map(Some);
        assert_eq!(pauses(RestartStrategy::ExponentialDelay(settings), &times), expected);
    }

    #[test]
    fn jitter_moves_the_pause_both_ways_and_does_not_add_up() {
        let strategy = RestartStrategy::ExponentialDelay(ExponentialDelay::default());
        let mut failover = Failover::new(strategy);
        assert_eq!(failover.on_failure(0, 1.0), Verdict::RestartAfter(Duration::from_millis(110)));
        assert_eq!(failover.on_failure(0, -1.0), Verdict::RestartAfter(Duration::from_millis(135)));
        assert_eq!(failover.restarts(), 2);
    }
}
