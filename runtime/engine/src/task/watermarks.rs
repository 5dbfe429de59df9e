//! The watermark of a task with inputs: the minimum over the channels that count.
//!
//! A channel counts while it is active and has caught up with what was put out. Idle channels do not hold the others
//! back, and one that becomes active again never lowers the output: until its watermark reaches the output, it does
//! not count. When every channel is idle, the maximum over all is put out once, then idleness.

use streamkeeper_types::Watermark;

/// What the channels say together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Merged {
    /// The output rose to this.
    Watermark(Watermark),
    /// Every channel is idle. A last rise comes first.
    Idle(Option<Watermark>),
    /// Active again; the output stays as it was.
    Active,
}

#[derive(Debug, Clone, Copy)]
struct Channel {
    watermark: Watermark,
    idle: bool,
    /// Active, and not behind the output.
    counts: bool,
}

#[derive(Debug)]
pub(super) struct WatermarkMerge {
    channels: Vec<Channel>,
    output: Watermark,
    idle: bool,
}

impl WatermarkMerge {
    pub(super) fn new(channels: usize) -> Self {
        let channel = Channel { watermark: Watermark::MIN, idle: false, counts: true };
        Self { channels: vec![channel; channels], output: Watermark::MIN, idle: false }
    }

    /// A watermark came on a channel; it makes the channel active.
    pub(super) fn on_watermark(&mut self, index: usize, watermark: Watermark) -> Option<Merged> {
        let became_active = self.activate(index);
        let channel = &mut self.channels[index];
        if watermark > channel.watermark {
            channel.watermark = watermark;
            channel.counts = watermark >= self.output;
        }
        self.rise().or(became_active)
    }

    /// Records came on a channel that was idle.
    pub(super) fn on_records(&mut self, index: usize) -> Option<Merged> {
        if !self.channels[index].idle {
            return None;
        }
        self.activate(index)
    }

    /// A channel no longer counts, for now.
    pub(super) fn on_idle(&mut self, index: usize) -> Option<Merged> {
        let channel = &mut self.channels[index];
        if std::mem::replace(&mut channel.idle, true) {
            return None;
        }
        channel.counts = false;
        if !self.channels.iter().all(|c| c.idle) {
            return self.rise();
        }
        self.idle = true;
        let highest = self.channels.iter().map(|c| c.watermark).max()?;
        let rise = (highest > self.output).then_some(highest);
        self.output = self.output.max(highest);
        Some(Merged::Idle(rise))
    }

    fn activate(&mut self, index: usize) -> Option<Merged> {
        let channel = &mut self.channels[index];
        if channel.idle {
            channel.idle = false;
            channel.counts = channel.watermark >= self.output;
        }
        std::mem::take(&mut self.idle).then_some(Merged::Active)
    }

    fn rise(&mut self) -> Option<Merged> {
        let lowest = self.channels.iter().filter(|c| c.counts).map(|c| c.watermark).min()?;
        if lowest <= self.output {
            return None;
        }
        self.output = lowest;
        Some(Merged::Watermark(lowest))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn up(to: i64) -> Option<Merged> {
        Some(Merged::Watermark(Watermark(to)))
    }

    #[test]
    fn the_output_is_the_minimum_over_the_channels() {
        let mut merge = WatermarkMerge::new(2);
        assert_eq!(merge.on_watermark(0, Watermark(5)), None);
        assert_eq!(merge.on_watermark(1, Watermark(3)), up(3));
        assert_eq!(merge.on_watermark(1, Watermark(9)), up(5));
        assert_eq!(merge.on_watermark(1, Watermark(7)), None, "a channel never goes back");
        assert_eq!(merge.on_watermark(0, Watermark::MAX), up(9));
        assert_eq!(merge.on_watermark(1, Watermark::MAX), Some(Merged::Watermark(Watermark::MAX)));
    }

    #[test]
    fn b67_a_channel_that_is_idle_from_the_start_holds_nothing_back() {
        let mut merge = WatermarkMerge::new(2);
        assert_eq!(merge.on_watermark(0, Watermark(5)), None);
        assert_eq!(merge.on_idle(1), up(5));
        assert_eq!(merge.on_watermark(0, Watermark(6)), up(6));
    }

    #[test]
    fn a_channel_that_wakes_up_behind_the_output_counts_only_when_it_has_caught_up() {
        let mut merge = WatermarkMerge::new(2);
        merge.on_watermark(0, Watermark(2));
        merge.on_watermark(1, Watermark(2));
        merge.on_idle(1);
        assert_eq!(merge.on_watermark(0, Watermark(10)), up(10));
        assert_eq!(merge.on_watermark(1, Watermark(4)), None);
        assert_eq!(merge.on_watermark(0, Watermark(12)), up(12), "channel 1 is behind and does not count");
        assert_eq!(merge.on_watermark(1, Watermark(12)), None);
        assert_eq!(merge.on_watermark(0, Watermark(20)), None, "now it counts");
        assert_eq!(merge.on_watermark(1, Watermark(15)), up(15));
    }

    #[test]
    fn when_the_last_channel_becomes_idle_the_maximum_comes_out_once() {
        let mut merge = WatermarkMerge::new(2);
        merge.on_watermark(0, Watermark(5));
        merge.on_watermark(1, Watermark(8));
        assert_eq!(merge.on_idle(0), up(8));
        assert_eq!(merge.on_idle(1), Some(Merged::Idle(None)));
        assert_eq!(merge.on_records(0), Some(Merged::Active));
        assert_eq!(merge.on_records(0), None);
        assert_eq!(merge.on_idle(0), Some(Merged::Idle(None)));

        let mut merge = WatermarkMerge::new(2);
        merge.on_watermark(0, Watermark(5));
        merge.on_watermark(1, Watermark(8));
        merge.on_idle(1);
        assert_eq!(merge.on_idle(0), Some(Merged::Idle(Some(Watermark(8)))));
    }

    proptest! {
        #[test]
        fn the_output_only_rises_and_never_passes_an_active_channel_that_had_caught_up(
            events in prop::collection::vec((0usize..3, prop::option::weighted(0.8, -50i64..50)), 0..60),
        ) {
            let mut merge = WatermarkMerge::new(3);
            let mut last = Watermark::MIN;
            for (channel, event) in events {
                let before = merge.channels.clone();
                let merged = match event {
                    Some(time) => merge.on_watermark(channel, Watermark(time)),
                    None => merge.on_idle(channel),
                };
                if let Some(Merged::Watermark(out)) = merged {
                    prop_assert!(out > last);
                    for (index, was) in before.iter().enumerate() {
                        let now = merge.channels[index];
                        let held = !now.idle && !was.idle && was.watermark >= last;
                        prop_assert!(!held || now.watermark >= out, "channel {index} is passed: {was:?} {now:?} by {out:?}");
                    }
                    last = out;
                } else if let Some(Merged::Idle(Some(out))) = merged {
                    prop_assert!(out > last);
                    last = out;
                }
            }
        }
    }
}
