//! The watermark of a source subtask: the minimum over its assigned splits (B69).
//!
//! A split enters when it is assigned, before it was read, and holds the watermark from then on; it leaves when it is
//! finished. A split that yields nothing for the idle timeout is set aside, and only time in which it could have been
//! read counts towards that (B70). The output never goes down.

use std::{collections::HashMap, sync::Arc, time::Duration};

use streamkeeper_types::Watermark;

#[derive(Debug, Clone, Copy)]
struct State {
    watermark: Watermark,
    /// Readable time since the last record.
    quiet: Duration,
    idle: bool,
}

/// What the splits say together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Combined {
    /// No record with a time at or below it will follow.
    At(Watermark),
    /// There are splits, all of them set aside; or there is no split at all (B67).
    Idle,
}

#[derive(Debug)]
pub(super) struct SplitWatermarks {
    splits: HashMap<Arc<str>, State>,
    idle_timeout: Option<Duration>,
    /// Splits exist that no reader has (decision 14): nothing can be promised.
    unread_elsewhere: bool,
}

impl SplitWatermarks {
    pub(super) fn new(idle_timeout: Option<Duration>) -> Self {
        Self { splits: HashMap::new(), idle_timeout, unread_elsewhere: false }
    }

    pub(super) fn add(&mut self, split: Arc<str>, watermark: Watermark) {
        let state = State { watermark, quiet: Duration::ZERO, idle: false };
        self.splits.entry(split).or_insert(state);
    }

    pub(super) fn finish(&mut self, split: &str) {
        self.splits.remove(split);
    }

    pub(super) fn hold_for_unread(&mut self, unread_elsewhere: bool) {
        self.unread_elsewhere = unread_elsewhere;
    }

    /// The split's own watermark.
    pub(super) fn of(&self, split: &str) -> Watermark {
        self.splits.get(split).map_or(Watermark::MIN, |s| s.watermark)
    }

    /// The least watermark of all other active splits: how far the output can rise by reading `split` alone.
    pub(super) fn bound_of_others(&self, split: &str) -> Watermark {
        if self.unread_elsewhere {
            return Watermark::MIN;
        }
        let others = self.splits.iter().filter(|(id, state)| id.as_ref() != split && !state.idle);
        others.map(|(_, state)| state.watermark).min().unwrap_or(Watermark::MAX)
    }

    /// Records of a split were read; its watermark is now `watermark`, or still higher.
    pub(super) fn on_records(&mut self, split: &Arc<str>, watermark: Watermark) {
        let entry = self.splits.entry(Arc::clone(split));
        let state = entry.or_insert(State { watermark, quiet: Duration::ZERO, idle: false });
        state.watermark = state.watermark.max(watermark);
        state.quiet = Duration::ZERO;
        state.idle = false;
    }

    /// For `time`, all splits could be read and yielded nothing.
    pub(super) fn on_quiet(&mut self, time: Duration) {
        let Some(timeout) = self.idle_timeout else { return };
        for state in self.splits.values_mut() {
            state.quiet = state.quiet.saturating_add(time);
            state.idle = state.quiet >= timeout;
        }
    }

    pub(super) fn combined(&self) -> Combined {
        if self.unread_elsewhere {
            return Combined::At(Watermark::MIN);
        }
        let active = self.splits.values().filter(|s| !s.idle);
        active.map(|s| s.watermark).min().map_or(Combined::Idle, Combined::At)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(splits: &SplitWatermarks, expected: i64) {
        assert_eq!(splits.combined(), Combined::At(Watermark(expected)));
    }

    fn with(names: &[&str], idle_timeout: Option<Duration>) -> SplitWatermarks {
        let mut splits = SplitWatermarks::new(idle_timeout);
        for name in names {
            splits.add(Arc::from(*name), Watermark::MIN);
        }
        splits
    }

    #[test]
    fn b67_without_splits_a_source_is_idle_and_promises_nothing() {
        assert_eq!(with(&[], None).combined(), Combined::Idle);
    }

    #[test]
    fn b69_a_quiet_split_counts_from_its_assignment() {
        let mut splits = with(&["a", "b"], None);
        splits.on_records(&Arc::from("a"), Watermark(100));
        check(&splits, i64::MIN);
        splits.on_records(&Arc::from("b"), Watermark(40));
        check(&splits, 40);
        assert_eq!(splits.bound_of_others("a"), Watermark(40));
        assert_eq!(splits.bound_of_others("b"), Watermark(100));
    }

    #[test]
    fn b70_finished_splits_leave() {
        let mut splits = with(&["a", "b"], None);
        splits.on_records(&Arc::from("a"), Watermark(100));
        splits.finish("b");
        check(&splits, 100);
        splits.finish("a");
        assert_eq!(splits.combined(), Combined::Idle);
    }

    #[test]
    fn b70_only_readable_time_counts_towards_idleness() {
        let mut splits = with(&["a", "b"], Some(Duration::from_secs(1)));
        splits.on_records(&Arc::from("a"), Watermark(100));
        splits.on_quiet(Duration::from_millis(600));
        splits.on_records(&Arc::from("a"), Watermark(110));
        check(&splits, i64::MIN);
        splits.on_quiet(Duration::from_millis(600));
        check(&splits, 110);
        splits.on_records(&Arc::from("b"), Watermark(7));
        check(&splits, 7);
        splits.on_quiet(Duration::from_secs(1));
        assert_eq!(splits.combined(), Combined::Idle);
    }

    #[test]
    fn unread_splits_elsewhere_hold_the_watermark() {
        let mut splits = with(&["a"], None);
        splits.on_records(&Arc::from("a"), Watermark(100));
        splits.hold_for_unread(true);
        check(&splits, i64::MIN);
        assert_eq!(splits.bound_of_others("a"), Watermark::MIN);
        splits.hold_for_unread(false);
        check(&splits, 100);
    }
}
