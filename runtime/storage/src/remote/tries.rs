//! One call's tries: each with a time limit, with growing random waits between them, all before one deadline.

use std::time::Duration;

use tokio::time::{Instant, sleep, timeout};

use super::failure::Failure;
use crate::StorageOptions;

/// The slowest connection that is still waited for: a second for each MiB.
const LEAST_RATE: u64 = 1 << 20;

/// Parts of the call's time that one try may take.
const TRIES_IN_TIME: u32 = 3;

const FIRST_WAIT: Duration = Duration::from_millis(100);
const LONGEST_WAIT: Duration = Duration::from_secs(5);

#[derive(Debug)]
pub(super) struct Tries {
    options: StorageOptions,
    limit: Duration,
    end: Instant,
    done: u32,
}

impl Tries {
    /// For a call that moves `bytes`.
    pub(super) fn new(options: &StorageOptions, bytes: u64) -> Self {
        let extra = Duration::from_secs(bytes / LEAST_RATE);
        Self {
            options: *options,
            limit: options.timeout / TRIES_IN_TIME + extra,
            end: Instant::now() + options.timeout + extra,
            done: 0,
        }
    }

    /// One request under the limit of a try; past it, the request is dropped and its outcome is unclear.
    pub(super) async fn run<T>(&self, request: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
        let limit = self.limit.min(self.end.saturating_duration_since(Instant::now()));
        let result = timeout(limit, request).await.unwrap_or_else(|_| Err(Failure::no_answer(limit)));
        if let Err(Failure::Busy(error) | Failure::Unclear(error)) = &result {
            tracing::debug!(%error, tries = self.done + 1, "a storage request failed");
        }
        result
    }

    /// Waits before the next try; `false` if none is left or its time would be over.
    pub(super) async fn again(&mut self) -> bool {
        let wait = wait(self.done, rand::random());
        if self.done >= self.options.retries || Instant::now() + wait >= self.end {
            return false;
        }
        self.done += 1;
        sleep(wait).await;
        true
    }

    /// A part of a long answer has arrived: there is time anew, for the `bytes` to come. The tries left stay the same.
    pub(super) fn more_time(&mut self, bytes: u64) {
        self.end = Instant::now() + self.options.timeout + Duration::from_secs(bytes / LEAST_RATE);
    }

    /// As [`Tries::more_time`], and the tries start anew: the next one goes on behind what has arrived.
    pub(super) fn progress(&mut self, bytes: u64) {
        self.done = 0;
        self.more_time(bytes);
    }
}

/// Before try `done` + 2: doubles each time, from half of it to all of it by `dice` from 0 to 1.
fn wait(done: u32, dice: f64) -> Duration {
    let full = FIRST_WAIT.saturating_mul(1 << done.min(10)).min(LONGEST_WAIT);
    full.mul_f64(0.5 + dice / 2.0)
}

/// Tries a request that may be repeated, until it succeeds, is refused, or tries or time are over. Once a try was
/// unclear, no later failure makes the whole clear again.
pub(super) async fn repeat<T, F>(options: &StorageOptions, bytes: u64, request: impl Fn() -> F) -> Result<T, Failure>
where
    F: Future<Output = Result<T, Failure>>,
{
    let mut tries = Tries::new(options, bytes);
    let mut unclear = false;
    loop {
        let failure = match tries.run(request()).await {
            Err(failure) => failure,
            done => return done,
        };
        unclear |= matches!(failure, Failure::Unclear(_));
        let over = match &failure {
            Failure::Unclear(_) | Failure::Busy(_) | Failure::Conflict(_) => !tries.again().await,
            Failure::NotFound(_) | Failure::Exists(_) | Failure::Changed(_) | Failure::Refused(_) => true,
        };
        if !over {
            continue;
        }
        return Err(match failure {
            Failure::Busy(error) | Failure::Refused(error) | Failure::Conflict(error) if unclear => {
                Failure::Unclear(error)
            }
            other => other,
        });
    }
}

#[cfg(test)]
mod tests {
    use std::{cell::Cell, future::ready};

    use streamkeeper_types::{Code, Error};

    use super::*;

    const OPTIONS: StorageOptions = StorageOptions { timeout: Duration::from_secs(30), retries: 3, part_size: 8 << 20 };

    fn error() -> Error {
        Error::new(Code::Storage, "x")
    }

    /// The answers of a request in turn, and how many were taken.
    async fn answers(answers: &[Result<u8, Failure>]) -> (Result<u8, Failure>, usize) {
        let next = Cell::new(0);
        let result = repeat(&OPTIONS, 0, || {
            next.set(next.get() + 1);
            ready(answers[next.get() - 1].clone())
        })
        .await;
        (result, next.get())
    }

    #[tokio::test(start_paused = true)]
    async fn what_may_help_is_tried_again_and_what_cannot_is_not() {
        let (busy, unclear, refused) = (Failure::Busy(error()), Failure::Unclear(error()), Failure::Refused(error()));
        assert_eq!(answers(&[Err(busy.clone()), Err(unclear.clone()), Ok(7)]).await, (Ok(7), 3));
        assert_eq!(answers(&[Err(refused.clone())]).await, (Err(refused.clone()), 1));
        assert_eq!(answers(&vec![Err(busy.clone()); 4]).await, (Err(busy.clone()), 4), "one try and three retries");
        assert_eq!(answers(&[Err(unclear.clone()), Err(refused)]).await, (Err(unclear.clone()), 2));
        assert_eq!(
            answers(&[Err(unclear.clone()), Err(busy.clone()), Err(busy.clone()), Err(busy)]).await.0,
            Err(unclear)
        );
    }

    #[tokio::test(start_paused = true)]
    async fn a_request_without_answer_is_dropped_and_no_call_outlives_its_deadline() {
        let began = Instant::now();
        let result = repeat(&OPTIONS, 0, std::future::pending::<Result<u8, Failure>>).await;
        assert!(matches!(result, Err(Failure::Unclear(error)) if error.cause.starts_with("no answer within")));
        assert!(began.elapsed() <= OPTIONS.timeout);
        let began = Instant::now();
        let _ = repeat(&OPTIONS, 60 << 20, std::future::pending::<Result<u8, Failure>>).await;
        assert!(
            began.elapsed() > OPTIONS.timeout && began.elapsed() <= Duration::from_secs(90),
            "a second for each MiB"
        );
    }

    #[test]
    fn waits_double_up_to_the_longest_and_are_spread() {
        assert_eq!(wait(0, 1.0), Duration::from_millis(100));
        assert_eq!(wait(0, 0.0), Duration::from_millis(50));
        assert_eq!(wait(3, 1.0), Duration::from_millis(800));
        assert_eq!(wait(60, 1.0), LONGEST_WAIT);
    }
}
