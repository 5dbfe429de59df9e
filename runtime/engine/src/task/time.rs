//! How a task's life divides into busy, idle and back-pressured time, and when its figures are due.

use std::time::{Duration, Instant};

use streamkeeper_protocol::TaskTime;

/// How often a task reports its metrics.
const REPORT_EVERY: Duration = Duration::from_millis(500);

#[derive(Debug)]
pub(super) struct TimeSheet {
    started: Instant,
    idle: Duration,
    reported: Instant,
}

impl TimeSheet {
    pub(super) fn start(now: Instant) -> Self {
        Self { started: now, idle: Duration::ZERO, reported: now }
    }

    /// The task waited for input or commands.
    pub(super) fn add_idle(&mut self, time: Duration) {
        self.idle += time;
    }

    /// Whether a report is due; if so, the next one is due an interval later.
    pub(super) fn take_due(&mut self, now: Instant) -> bool {
        let due = now - self.reported >= REPORT_EVERY;
        if due {
            self.reported = now;
        }
        due
    }

    /// Time until a report is due.
    pub(super) fn until_due(&self, now: Instant) -> Duration {
        REPORT_EVERY.saturating_sub(now - self.reported)
    }

    /// What is neither idle nor back-pressured is busy.
    pub(super) fn total(&self, back_pressured: Duration, now: Instant) -> TaskTime {
        let busy = (now - self.started).saturating_sub(self.idle).saturating_sub(back_pressured);
        TaskTime { busy_us: micros(busy), idle_us: micros(self.idle), back_pressured_us: micros(back_pressured) }
    }
}

/// Microseconds, saturating.
pub(super) fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn busy_idle_and_back_pressured_time_add_up_to_the_tasks_life() {
        let start = Instant::now();
        let mut sheet = TimeSheet::start(start);
        sheet.add_idle(Duration::from_millis(300));
        let time = sheet.total(Duration::from_millis(200), start + Duration::from_secs(1));
        assert_eq!(time, TaskTime { busy_us: 500_000, idle_us: 300_000, back_pressured_us: 200_000 });
    }

    #[test]
    fn a_report_is_due_once_an_interval() {
        let start = Instant::now();
        let mut sheet = TimeSheet::start(start);
        assert!(!sheet.take_due(start));
        assert!(sheet.take_due(start + REPORT_EVERY));
        assert!(!sheet.take_due(start + REPORT_EVERY));
        assert_eq!(sheet.until_due(start + REPORT_EVERY), REPORT_EVERY);
    }
}
