//! Times, shares and phases as people read them.

use streamkeeper_protocol::rest::{Failure, JobPhaseView};
use streamkeeper_types::Millis;

use crate::{report, rest::error_of, screen::Tone};

/// What stands where nothing is known.
pub(super) const NONE: &str = "–";

pub(super) fn now() -> Millis {
    chrono::Utc::now().timestamp_millis()
}

/// Two units at most: `14 ms`, `3.2 s`, `3 min 5 s`, `4 d 3 h`.
pub(super) fn span(millis: u64) -> String {
    let two = |big: u64, name: &str, small: u64, small_name: &str| match small {
        0 => format!("{big} {name}"),
        small => format!("{big} {name} {small} {small_name}"),
    };
    let seconds = millis / 1_000;
    match seconds {
        0 => format!("{millis} ms"),
        1..10 => format!("{seconds}.{} s", millis % 1_000 / 100),
        10..60 => format!("{seconds} s"),
        60..3_600 => two(seconds / 60, "min", seconds % 60, "s"),
        3_600..86_400 => two(seconds / 3_600, "h", seconds % 3_600 / 60, "min"),
        _ => two(seconds / 86_400, "d", seconds % 86_400 / 3_600, "h"),
    }
}

/// `180 µs`, `3.2 ms`, or as [`span`].
pub(super) fn micros(micros: u64) -> String {
    match micros {
        0..1_000 => format!("{micros} µs"),
        1_000..10_000 => format!("{}.{} ms", micros / 1_000, micros % 1_000 / 100),
        _ => span(micros / 1_000),
    }
}

/// Time since `at`; nothing less than none where the clocks of two machines differ.
pub(super) fn since(at: Millis, now: Millis) -> String {
    span(u64::try_from(now.saturating_sub(at)).unwrap_or(0))
}

/// Thousandths as per cent.
pub(super) fn share(thousandths: u32) -> String {
    format!("{} %", (thousandths + 5) / 10)
}

/// A watermark as a time.
pub(super) fn watermark(watermark: Option<Millis>) -> String {
    match watermark {
        None => NONE.to_owned(),
        Some(i64::MAX) => "end of input".to_owned(),
        Some(millis) => report::time(millis),
    }
}

/// How far event time lags behind the clock.
pub(super) fn lag(watermark: Option<Millis>, now: Millis) -> String {
    match watermark {
        None => NONE.to_owned(),
        Some(i64::MAX) => "end of input".to_owned(),
        Some(millis) => since(millis, now),
    }
}

pub(super) fn phase(phase: JobPhaseView) -> (&'static str, Tone) {
    match phase {
        JobPhaseView::Starting => ("starting", Tone::Pending),
        JobPhaseView::WaitingForSlots => ("waiting for slots", Tone::Pending),
        JobPhaseView::Running => ("running", Tone::Good),
        JobPhaseView::Restarting => ("restarting", Tone::Bad),
        JobPhaseView::Ended => ("ended", Tone::Plain),
    }
}

/// As an error is shown everywhere: code, place, cause, way out.
pub(super) fn failure(failure: &Failure) -> String {
    error_of(failure).to_string()
}

/// `1 restart`, `3 restarts`.
pub(super) fn counted(number: impl Into<u64>, what: &str) -> String {
    match number.into() {
        1 => format!("1 {what}"),
        number => format!("{number} {what}s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_have_two_units_at_most() {
        let spans = [0, 999, 1_000, 9_960, 10_000, 59_999, 185_000, 3_600_000, 10_920_000, 356_400_000];
        let texts = ["0 ms", "999 ms", "1.0 s", "9.9 s", "10 s", "59 s", "3 min 5 s", "1 h", "3 h 2 min", "4 d 3 h"];
        assert_eq!(spans.map(span), texts);
        assert_eq!([7, 999, 3_250, 14_000, 2_500_000].map(micros), ["7 µs", "999 µs", "3.2 ms", "14 ms", "2.5 s"]);
    }

    #[test]
    fn a_clock_ahead_of_ours_gives_no_time_before_zero() {
        assert_eq!(since(2_000, 1_000), "0 ms");
        assert_eq!(lag(Some(i64::MAX), 1_000), "end of input");
        assert_eq!(lag(Some(i64::MIN), i64::MAX), lag(Some(0), i64::MAX));
        assert_eq!([0, 4, 5, 999, 1_000].map(share), ["0 %", "0 %", "1 %", "100 %", "100 %"]);
    }
}
