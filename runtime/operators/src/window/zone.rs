//! Wall-clock time of windows.
//!
//! Windows over TIMESTAMP columns count in the column's own time. Windows over TIMESTAMP_LTZ columns are cut by the
//! clock on the wall of the session's zone: days have 23 or 25 hours, and the autumn hour that comes twice is one
//! window. All times are milliseconds.

use chrono::{DateTime, MappedLocalTime, NaiveDateTime, Offset, TimeZone};
use chrono_tz::Tz;
use streamkeeper_types::Millis;

/// Stretch that is assumed to have one offset if both its ends have the same: rules change at most twice a year.
const STRETCH: Millis = 15 * 60 * 1000;
const DAY: Millis = 24 * 60 * 60 * 1000;

/// Translates between instants and what the clock on the wall shows, remembering the offset of the latest stretch.
#[derive(Debug, Clone)]
pub(crate) struct WallClock {
    zone: Option<Tz>,
    stretch: Millis,
    offset: Option<Millis>,
}

impl WallClock {
    /// `None` and UTC: the wall clock shows the instant itself.
    pub(crate) fn new(zone: Option<Tz>) -> Self {
        Self { zone: zone.filter(|z| *z != Tz::UTC), stretch: Millis::MIN, offset: None }
    }

    /// What the wall clock shows at `instant`.
    pub(crate) fn at(&mut self, instant: Millis) -> Millis {
        let Some(zone) = self.zone else { return instant };
        let stretch = instant.div_euclid(STRETCH);
        if stretch != self.stretch {
            let start = stretch.saturating_mul(STRETCH);
            let (first, last) = (offset_at(zone, start), offset_at(zone, start.saturating_add(STRETCH - 1)));
            self.stretch = stretch;
            self.offset = (first == last).then_some(first);
        }
        instant.saturating_add(self.offset.unwrap_or_else(|| offset_at(zone, instant)))
    }

    /// The last instant at which the wall clock shows `wall`; where it never does because clocks go forward, the
    /// instant at which they do. Grows with `wall`.
    pub(crate) fn passed(&self, wall: Millis) -> Millis {
        let Some(zone) = self.zone else { return wall };
        let Some(local) = naive(wall) else { return wall };
        match zone.offset_from_local_datetime(&local) {
            MappedLocalTime::Single(offset) => wall.saturating_sub(millis(&offset)),
            MappedLocalTime::Ambiguous(a, b) => wall.saturating_sub(millis(&a).min(millis(&b))),
            MappedLocalTime::None => forward_change(zone, wall),
        }
    }
}

/// The instant at which clocks went forward over `wall`.
fn forward_change(zone: Tz, wall: Millis) -> Millis {
    let (before, after) = (offset_at(zone, wall.saturating_sub(DAY)), offset_at(zone, wall.saturating_add(DAY)));
    let (mut low, mut high) = (wall.saturating_sub(after), wall.saturating_sub(before));
    // `low` has the old offset, `high` the new one.
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        if offset_at(zone, middle) == before { low = middle } else { high = middle }
    }
    high
}

/// Offset from UTC; 0 outside the years that calendars know.
fn offset_at(zone: Tz, instant: Millis) -> Millis {
    naive(instant).map_or(0, |utc| millis(&zone.offset_from_utc_datetime(&utc)))
}

fn naive(at: Millis) -> Option<NaiveDateTime> {
    DateTime::from_timestamp_millis(at).map(|t| t.naive_utc())
}

fn millis(offset: &impl Offset) -> Millis {
    Millis::from(offset.fix().local_minus_utc()) * 1000
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use proptest::prelude::*;

    use super::*;

    fn at(text: &str) -> Millis {
        DateTime::parse_from_rfc3339(text).unwrap().timestamp_millis()
    }

    fn wall(text: &str) -> Millis {
        at(&format!("{text}Z"))
    }

    #[test]
    fn the_autumn_hour_that_comes_twice_is_passed_when_it_has_come_twice() {
        let mut berlin = WallClock::new(Some(Tz::Europe__Berlin));
        assert_eq!(berlin.at(at("2024-10-27T00:30:00Z")), wall("2024-10-27T02:30:00"));
        assert_eq!(berlin.at(at("2024-10-27T01:30:00Z")), wall("2024-10-27T02:30:00"));
        assert_eq!(berlin.passed(wall("2024-10-27T02:30:00")), at("2024-10-27T01:30:00Z"));
    }

    #[test]
    fn a_time_that_spring_skips_is_passed_when_clocks_go_forward() {
        let mut berlin = WallClock::new(Some(Tz::Europe__Berlin));
        let change = at("2024-03-31T01:00:00Z");
        assert_eq!(berlin.at(change - 1), wall("2024-03-31T02:00:00") - 1);
        assert_eq!(berlin.at(change), wall("2024-03-31T03:00:00"));
        for skipped in ["2024-03-31T02:00:00", "2024-03-31T02:30:00", "2024-03-31T02:59:59"] {
            assert_eq!(berlin.passed(wall(skipped)), change, "{skipped}");
        }
        assert_eq!(berlin.passed(wall("2024-03-31T03:00:00")), change);
    }

    proptest! {
        #[test]
        fn every_instant_is_at_or_before_the_passing_of_its_wall_time(
            instant in at("1900-01-01T00:00:00Z")..at("2100-01-01T00:00:00Z"),
            zone in prop::sample::select(vec![
                Tz::Europe__Berlin, Tz::America__New_York, Tz::Asia__Kathmandu, Tz::Australia__Lord_Howe, Tz::UTC,
            ]),
        ) {
            let mut clock = WallClock::new(Some(zone));
            let wall = clock.at(instant);
            prop_assert!(instant <= clock.passed(wall));
            prop_assert!(clock.passed(wall) <= clock.passed(wall + 1));
            prop_assert_eq!(clock.at(instant), WallClock::new(Some(zone)).at(instant));
        }

        #[test]
        fn no_time_panics(instant in any::<i64>()) {
            let mut clock = WallClock::new(Some(Tz::Europe__Berlin));
            clock.at(instant);
            clock.passed(instant);
        }
    }
}
