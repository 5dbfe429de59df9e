//! Which barriers arrived on which channels, and what follows: the aligned cut of a task with inputs (S2).
//!
//! A value that decides and touches nothing: the task loop does what each [`Step`] says.
//!
//! ```text
//!  channel 0 ──▶ … batch │ batch …      ← its barrier came: blocked, not read on
//!  channel 1 ──▶ … batch batch │ …      ← still read; when its barrier comes too, the cut is complete
//!  channel 2 ──▶ end of partition       ← counts as a barrier (R5)
//! ```

use std::time::Instant;

use streamkeeper_protocol::Barrier;
use streamkeeper_types::CheckpointId;

use super::aborted::AbortedIds;

/// What the task has to do, in the order of the fields.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Step {
    /// A checkpoint will not be taken here, because a newer barrier came first: decline it (R4).
    pub subsumed: Option<Subsumed>,
    /// Read all channels again.
    pub unblock: bool,
    /// Tell the tasks behind that this checkpoint is off (R6).
    pub forward_cancel: Option<CheckpointId>,
    /// Stop reading this channel.
    pub block: Option<usize>,
    /// Every channel delivered: take the snapshot now, then read all channels again.
    pub complete: Option<Aligned>,
}

/// A checkpoint that gave way to a newer one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Subsumed {
    pub id: CheckpointId,
    pub by: CheckpointId,
}

/// A completed alignment.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Aligned {
    pub barrier: Barrier,
    /// When its first barrier (or trigger) came.
    pub started: Instant,
}

#[derive(Debug)]
struct Current {
    barrier: Barrier,
    arrived: Vec<bool>,
    /// Open channels whose barrier has not come.
    missing: usize,
    started: Instant,
}

#[derive(Debug)]
pub(super) struct Alignment {
    open: Vec<bool>,
    open_count: usize,
    current: Option<Current>,
    /// Highest checkpoint that was taken, cancelled or given up here.
    last: CheckpointId,
    aborted: AbortedIds,
}

impl Alignment {
    pub(super) fn new(channels: usize) -> Self {
        Self {
            open: vec![true; channels],
            open_count: channels,
            current: None,
            last: CheckpointId(0),
            aborted: AbortedIds::default(),
        }
    }

    /// Channels that have not reached the end of their partition.
    pub(super) fn open_channels(&self) -> usize {
        self.open_count
    }

    /// A barrier came on a channel.
    pub(super) fn on_barrier(&mut self, channel: usize, barrier: &Barrier, now: Instant) -> Step {
        let Some(mut step) = self.begin(barrier, now) else { return Step::default() };
        let Some(current) = self.current.as_mut() else { return step };
        if self.open[channel] && !current.arrived[channel] {
            current.arrived[channel] = true;
            current.missing -= 1;
            step.block = Some(channel);
        }
        self.finish_if_complete(step)
    }

    /// The JobManager itself triggers, since no task before this one runs. Channels may still hold their end (R7).
    pub(super) fn on_trigger(&mut self, barrier: &Barrier, now: Instant) -> Step {
        match self.begin(barrier, now) {
            Some(step) => self.finish_if_complete(step),
            None => Step::default(),
        }
    }

    /// Nothing follows on this channel (R5).
    pub(super) fn on_end_of_partition(&mut self, channel: usize) -> Step {
        if !std::mem::replace(&mut self.open[channel], false) {
            return Step::default();
        }
        self.open_count -= 1;
        if let Some(current) = self.current.as_mut()
            && !current.arrived[channel]
        {
            current.missing -= 1;
        }
        self.finish_if_complete(Step::default())
    }

    /// A cancel marker came on a channel (R6).
    pub(super) fn on_cancel(&mut self, id: CheckpointId) -> Step {
        if id <= self.last {
            return Step::default();
        }
        match self.current.as_ref().map(|c| c.barrier.id) {
            Some(current) if current > id => Step::default(),
            Some(current) => {
                self.current = None;
                self.last = id;
                Step {
                    subsumed: (current < id).then_some(Subsumed { id: current, by: id }),
                    unblock: true,
                    forward_cancel: Some(id),
                    ..Step::default()
                }
            }
            None => {
                self.last = id;
                Step { forward_cancel: Some(id), ..Step::default() }
            }
        }
    }

    /// The JobManager gave `id` up.
    pub(super) fn on_aborted(&mut self, id: CheckpointId) -> Step {
        if self.current.as_ref().is_some_and(|c| c.barrier.id == id) {
            self.current = None;
            self.last = id;
            return Step { unblock: true, forward_cancel: Some(id), ..Step::default() };
        }
        if id > self.last {
            self.aborted.insert(id);
        }
        Step::default()
    }

    /// Makes `barrier` the current one. `None` if it is late.
    fn begin(&mut self, barrier: &Barrier, now: Instant) -> Option<Step> {
        let id = barrier.id;
        if id <= self.last {
            return None;
        }
        let mut step = Step::default();
        match self.current.as_ref().map(|c| c.barrier.id) {
            Some(current) if current > id => return None,
            Some(current) if current == id => return Some(step),
            Some(older) => {
                step.subsumed = Some(Subsumed { id: older, by: id });
                step.unblock = true;
                self.current = None;
                self.last = older;
            }
            None => {}
        }
        if self.aborted.contains(id) {
            self.last = id;
            step.forward_cancel = Some(id);
            return Some(step);
        }
        self.current = Some(Current {
            barrier: barrier.clone(),
            arrived: vec![false; self.open.len()],
            missing: self.open_count,
            started: now,
        });
        Some(step)
    }

    fn finish_if_complete(&mut self, mut step: Step) -> Step {
        if let Some(current) = self.current.take_if(|c| c.missing == 0) {
            self.last = current.barrier.id;
            step.block = None;
            step.complete = Some(Aligned { barrier: current.barrier, started: current.started });
        }
        step
    }
}

#[cfg(test)]
mod tests {
    use streamkeeper_protocol::{CheckpointKind, SnapshotFormat};

    use super::*;

    fn barrier(id: u64) -> Barrier {
        Barrier {
            id: CheckpointId(id),
            timestamp: 0,
            kind: CheckpointKind::Checkpoint,
            format: SnapshotFormat::Native,
            target: format!("chk-{id}"),
            full: false,
        }
    }

    /// Events in short form: barriers by channel and id, and the ids that completed.
    struct Check {
        alignment: Alignment,
        now: Instant,
    }

    impl Check {
        fn new(channels: usize) -> Self {
            Self { alignment: Alignment::new(channels), now: Instant::now() }
        }

        fn barrier(&mut self, channel: usize, id: u64) -> Step {
            self.alignment.on_barrier(channel, &barrier(id), self.now)
        }
    }

    fn subsumed(id: u64, by: u64) -> Subsumed {
        Subsumed { id: CheckpointId(id), by: CheckpointId(by) }
    }

    fn completed(step: &Step) -> Option<u64> {
        step.complete.as_ref().map(|a| a.barrier.id.0)
    }

    #[test]
    fn s2_each_channel_blocks_at_its_barrier_and_the_last_one_completes() {
        let mut check = Check::new(3);
        assert_eq!(check.barrier(0, 1), Step { block: Some(0), ..Step::default() });
        assert_eq!(check.barrier(2, 1), Step { block: Some(2), ..Step::default() });
        assert_eq!(completed(&check.barrier(1, 1)), Some(1));
        assert_eq!(completed(&check.barrier(0, 2)), None);
    }

    #[test]
    fn r4_a_newer_barrier_ends_the_older_alignment_and_frees_its_channels() {
        let mut check = Check::new(2);
        check.barrier(0, 1);
        let step = check.barrier(1, 2);
        assert_eq!(step, Step { subsumed: Some(subsumed(1, 2)), unblock: true, block: Some(1), ..Step::default() });
        assert_eq!(completed(&check.barrier(0, 2)), Some(2));
    }

    #[test]
    fn r4_a_late_barrier_is_ignored_and_does_not_block_its_channel() {
        let mut check = Check::new(2);
        check.barrier(1, 2);
        assert_eq!(check.barrier(0, 1), Step::default());
        assert_eq!(completed(&check.barrier(0, 2)), Some(2));
        assert_eq!(check.barrier(1, 2), Step::default());
        assert_eq!(check.barrier(1, 1), Step::default());
    }

    #[test]
    fn r5_end_of_partition_counts_as_barrier_and_only_once() {
        let mut check = Check::new(3);
        check.barrier(0, 1);
        assert_eq!(completed(&check.alignment.on_end_of_partition(1)), None);
        assert_eq!(check.alignment.on_end_of_partition(1), Step::default());
        assert_eq!(check.alignment.open_channels(), 2);
        assert_eq!(completed(&check.alignment.on_end_of_partition(2)), Some(1));
        assert_eq!(completed(&check.barrier(0, 2)), Some(2), "one channel is left");
    }

    #[test]
    fn r5_a_channel_that_ends_behind_its_barrier_is_not_counted_twice() {
        let mut check = Check::new(2);
        check.barrier(0, 1);
        assert_eq!(completed(&check.alignment.on_end_of_partition(0)), None, "channel 1 is still awaited");
        assert_eq!(completed(&check.barrier(1, 1)), Some(1));
    }

    #[test]
    fn r6_a_cancel_marker_frees_the_channels_and_goes_on_downstream_once() {
        let mut check = Check::new(2);
        check.barrier(0, 1);
        let step = check.alignment.on_cancel(CheckpointId(1));
        assert_eq!(step, Step { unblock: true, forward_cancel: Some(CheckpointId(1)), ..Step::default() });
        assert_eq!(check.alignment.on_cancel(CheckpointId(1)), Step::default());
        assert_eq!(check.barrier(1, 1), Step::default(), "its late barrier blocks nothing");
        check.barrier(0, 2);
        assert_eq!(completed(&check.barrier(1, 2)), Some(2));
    }

    #[test]
    fn r6_a_cancel_marker_of_a_newer_id_ends_the_older_alignment() {
        let mut check = Check::new(2);
        check.barrier(0, 1);
        let step = check.alignment.on_cancel(CheckpointId(2));
        assert_eq!(step.subsumed, Some(subsumed(1, 2)));
        assert!(step.unblock);
        assert_eq!(check.barrier(1, 1), Step::default());
    }

    #[test]
    fn r7_a_trigger_without_open_channels_completes_at_once() {
        let mut check = Check::new(2);
        check.alignment.on_end_of_partition(0);
        assert_eq!(completed(&check.alignment.on_trigger(&barrier(1), check.now)), None, "one end is still under way");
        assert_eq!(completed(&check.alignment.on_end_of_partition(1)), Some(1));
        assert_eq!(completed(&check.alignment.on_trigger(&barrier(2), check.now)), Some(2));
        assert_eq!(check.alignment.on_trigger(&barrier(2), check.now), Step::default());
    }

    #[test]
    fn a2_an_abort_that_comes_before_the_barrier_turns_it_into_a_cancel_marker() {
        let mut check = Check::new(2);
        assert_eq!(check.alignment.on_aborted(CheckpointId(3)), Step::default());
        assert_eq!(check.barrier(0, 3), Step { forward_cancel: Some(CheckpointId(3)), ..Step::default() });
        assert_eq!(check.barrier(1, 3), Step::default());
    }

    #[test]
    fn a2_an_abort_during_alignment_frees_the_channels() {
        let mut check = Check::new(2);
        check.barrier(0, 3);
        let step = check.alignment.on_aborted(CheckpointId(3));
        assert!(step.unblock);
        assert_eq!(step.forward_cancel, Some(CheckpointId(3)));
    }
}
