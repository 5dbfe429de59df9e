//! From batches of a source to batches and watermarks in their final order.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use arrow::array::RecordBatch;
use streamkeeper_types::{Result, Watermark};

use super::{
    lateness::{self, Before, Cut},
    split_watermarks::{Combined, SplitWatermarks},
};
use crate::{UnreadSplits, WatermarkStrategy};

/// What leaves the source, in order.
#[derive(Debug)]
pub(super) enum Piece {
    Batch(RecordBatch),
    Watermark(Watermark),
    Idle,
}

/// Watermarks of one source subtask.
pub(super) struct SourceWatermarks {
    strategy: WatermarkStrategy,
    splits: SplitWatermarks,
    emitted: Watermark,
    /// What the splits had reached together when the last of them ended; it leaves before idleness is said.
    reached: Watermark,
    emitted_at: Option<Instant>,
    idle: bool,
    cuts: Vec<Cut>,
}

impl SourceWatermarks {
    pub(super) fn new(strategy: WatermarkStrategy) -> Self {
        let mut splits = SplitWatermarks::new(strategy.idle_timeout);
        splits.hold_for_unread(strategy.unread_splits == UnreadSplits::Hold);
        let (emitted, reached) = (Watermark::MIN, Watermark::MIN);
        Self { strategy, splits, emitted, reached, emitted_at: None, idle: false, cuts: Vec::new() }
    }

    /// The last watermark that left, if any did.
    pub(super) fn emitted(&self) -> Option<Watermark> {
        (self.emitted > Watermark::MIN).then_some(self.emitted)
    }

    /// A split was assigned; `watermark` is what it had reached before a restore.
    pub(super) fn add_split(&mut self, split: Arc<str>, watermark: Watermark) {
        if self.strategy.unread_splits == UnreadSplits::Hold || watermark > Watermark::MIN {
            self.splits.add(split, watermark);
        }
    }

    /// A split's own watermark.
    pub(super) fn of(&self, split: &str) -> Watermark {
        self.splits.of(split)
    }

    pub(super) fn finish_split(&mut self, split: &str) {
        if let Combined::At(watermark) = self.splits.combined() {
            self.reached = self.reached.max(watermark);
        }
        self.splits.finish(split);
    }

    /// Whether the coordinator still has splits that no reader reads.
    pub(super) fn set_unread_elsewhere(&mut self, unread: bool) {
        self.splits.hold_for_unread(unread && self.strategy.unread_splits == UnreadSplits::Hold);
    }

    /// For `time`, the reader could be read and yielded nothing.
    pub(super) fn on_quiet(&mut self, time: Duration) {
        self.splits.on_quiet(time);
    }

    /// Passes a batch of one split on, with the watermarks that must lie between its rows.
    pub(super) fn on_batch(
        &mut self,
        batch: RecordBatch,
        split: &Arc<str>,
        emit: &mut dyn FnMut(Piece) -> Result<()>,
    ) -> Result<()> {
        let times =
            lateness::rowtimes(batch.column(self.strategy.rowtime_column)).map_err(lateness::at_split(split))?;
        let marks = lateness::marks((self.strategy.expression)(&batch).map_err(lateness::at_split(split))?);
        // A split that had been set aside is active again; it does not lower what left already.
        self.splits.on_records(split, Watermark::MIN);
        self.idle = false;
        let before =
            Before { split: self.splits.of(split), others: self.splits.bound_of_others(split), emitted: self.emitted };
        let after = lateness::cuts(&times, &marks, before, &mut self.cuts);
        let mut from = 0;
        for cut in &self.cuts {
            if cut.row > from {
                emit(Piece::Batch(batch.slice(from, cut.row - from)))?;
            }
            emit(Piece::Watermark(cut.watermark))?;
            self.emitted = cut.watermark;
            from = cut.row;
        }
        let rest = if from == 0 { batch } else { batch.slice(from, batch.num_rows() - from) };
        emit(Piece::Batch(rest))?;
        self.splits.on_records(split, after);
        Ok(())
    }

    /// Whether the source says that it is idle before it says anything else: it has no split, and none waits for a
    /// reader. It is taken as said.
    pub(super) fn begins_idle(&mut self) -> bool {
        self.idle = self.splits.combined() == Combined::Idle;
        self.idle
    }

    /// The watermark that is due, if any: it rose, and the last one is `min_gap` old.
    pub(super) fn due(&mut self, now: Instant) -> Option<Piece> {
        let wait = self.emitted_at.map_or(Duration::ZERO, |at| self.strategy.min_gap.saturating_sub(now - at));
        if wait.is_zero() { self.risen(now) } else { None }
    }

    /// The watermark before a barrier, whatever the gap: what operators store of it at the cut must not depend on the
    /// clock, or a row that is late without a crash would be on time after one.
    pub(super) fn at_barrier(&mut self, now: Instant) -> Option<Piece> {
        self.risen(now)
    }

    fn risen(&mut self, now: Instant) -> Option<Piece> {
        match self.splits.combined() {
            Combined::At(watermark) if watermark > self.emitted => {
                self.emitted = watermark;
                self.emitted_at = Some(now);
                self.idle = false;
                Some(Piece::Watermark(watermark))
            }
            Combined::Idle if self.reached > self.emitted => {
                self.emitted = self.reached;
                self.emitted_at = Some(now);
                Some(Piece::Watermark(self.reached))
            }
            Combined::Idle if !self.idle => {
                self.idle = true;
                Some(Piece::Idle)
            }
            Combined::At(_) | Combined::Idle => None,
        }
    }

    /// How long the source may pause: a watermark that waits for its gap bounds it, and so does idleness.
    pub(super) fn wait(&self) -> Option<Duration> {
        let rises = matches!(self.splits.combined(), Combined::At(watermark) if watermark > self.emitted);
        let gap = rises.then_some(self.strategy.min_gap.max(Duration::from_millis(1)));
        gap.into_iter().chain(self.strategy.idle_timeout.map(|timeout| timeout / 4)).min()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use arrow::{
        array::{ArrayRef, AsArray, Int64Array, TimestampMillisecondArray},
        datatypes::{DataType, Field, Schema, TimeUnit, TimestampMillisecondType},
    };
    use proptest::prelude::*;
    use streamkeeper_types::Code;

    use super::*;

    /// `WATERMARK FOR ts AS ts - INTERVAL '5' MILLISECOND`
    fn strategy(min_gap: Duration) -> WatermarkStrategy {
        WatermarkStrategy {
            rowtime_column: 0,
            expression: Arc::new(|batch| {
                let times = batch.column(0).as_primitive::<TimestampMillisecondType>();
                Ok(times.iter().map(|t| t.map(|t| t - 5)).collect())
            }),
            idle_timeout: None,
            min_gap,
            unread_splits: UnreadSplits::Hold,
        }
    }

    fn batch(times: &[Option<i64>]) -> RecordBatch {
        let schema = Schema::new(vec![Field::new("ts", DataType::Timestamp(TimeUnit::Millisecond, None), true)]);
        let column: ArrayRef = Arc::new(TimestampMillisecondArray::from(times.to_vec()));
        RecordBatch::try_new(Arc::new(schema), vec![column]).unwrap()
    }

    fn ready(min_gap: Duration, splits: &[&str]) -> SourceWatermarks {
        let mut source = SourceWatermarks::new(strategy(min_gap));
        source.set_unread_elsewhere(false);
        for split in splits {
            source.add_split(Arc::from(*split), Watermark::MIN);
        }
        source
    }

    /// Each row with the verdict of an operator behind the source.
    fn verdicts(rows: &[(usize, i64)], sizes: &[usize], min_gap: Duration) -> Vec<(i64, bool)> {
        let names: Vec<Arc<str>> = ["a", "b"].map(Arc::from).to_vec();
        let mut source = ready(min_gap, &["a", "b"]);
        let mut seen = Vec::new();
        let mut watermark = i64::MIN;
        let mut see = |piece: Piece| {
            match piece {
                Piece::Batch(batch) => {
                    let times = batch.column(0).as_primitive::<TimestampMillisecondType>();
                    seen.extend(times.values().iter().map(|t| (*t, *t <= watermark)));
                }
                Piece::Watermark(w) => {
                    assert!(w.0 > watermark);
                    watermark = w.0;
                }
                Piece::Idle => {}
            }
            Ok(())
        };
        let mut from = 0;
        let mut sizes = sizes.iter().cycle();
        let start = Instant::now();
        while from < rows.len() {
            let split = rows[from].0;
            let same = rows[from..].iter().take_while(|(s, _)| *s == split).count();
            let take = (*sizes.next().unwrap()).min(same);
            let times: Vec<Option<i64>> = rows[from..from + take].iter().map(|(_, t)| Some(*t)).collect();
            source.on_batch(batch(&times), &names[split], &mut see).unwrap();
            if let Some(piece) = source.due(start) {
                see(piece).unwrap();
            }
            from += take;
        }
        seen
    }

    /// A watermark after each row, by definition.
    fn oracle(rows: &[(usize, i64)]) -> Vec<(i64, bool)> {
        let mut splits = [i64::MIN; 2];
        let judge = |(split, time): &(usize, i64)| {
            let late = *time <= splits[0].min(splits[1]);
            splits[*split] = splits[*split].max(time - 5);
            (*time, late)
        };
        rows.iter().map(judge).collect()
    }

    proptest! {
        #[test]
        fn d13_lateness_depends_neither_on_batch_size_nor_on_the_gap(
            rows in prop::collection::vec((0usize..2, 0i64..60), 0..80),
            sizes in prop::collection::vec(1usize..20, 1..6),
            gap in prop::sample::select(vec![0u64, 10_000]),
        ) {
            prop_assert_eq!(verdicts(&rows, &sizes, Duration::from_millis(gap)), oracle(&rows));
        }
    }

    #[test]
    fn a_null_rowtime_fails_the_job_and_names_the_split() {
        let mut source = ready(Duration::ZERO, &["a"]);
        let error = source.on_batch(batch(&[Some(1), None]), &Arc::from("a"), &mut |_| Ok(())).unwrap_err();
        assert_eq!(error.code, Code::RecordInvalid);
        assert_eq!(error.place, ["split a"]);
    }

    #[test]
    fn a_watermark_waits_for_the_gap_and_is_then_due() {
        let mut source = ready(Duration::from_millis(10), &["a"]);
        let start = Instant::now();
        let mut none = |_| Ok(());
        source.on_batch(batch(&[Some(10)]), &Arc::from("a"), &mut none).unwrap();
        assert!(matches!(source.due(start), Some(Piece::Watermark(Watermark(5)))));
        source.on_batch(batch(&[Some(20)]), &Arc::from("a"), &mut none).unwrap();
        assert!(source.due(start + Duration::from_millis(9)).is_none());
        assert!(matches!(source.due(start + Duration::from_millis(10)), Some(Piece::Watermark(Watermark(15)))));
    }

    #[test]
    fn d13_a_barrier_does_not_wait_for_the_gap() {
        let mut source = ready(Duration::from_secs(10), &["a"]);
        let start = Instant::now();
        let mut none = |_| Ok(());
        source.on_batch(batch(&[Some(10)]), &Arc::from("a"), &mut none).unwrap();
        assert!(source.due(start).is_some());
        source.on_batch(batch(&[Some(20)]), &Arc::from("a"), &mut none).unwrap();
        assert!(source.due(start).is_none());
        assert!(matches!(source.at_barrier(start), Some(Piece::Watermark(Watermark(15)))));
    }

    #[test]
    fn b67_a_source_without_splits_becomes_idle_and_promises_nothing() {
        let mut source = ready(Duration::ZERO, &[]);
        assert!(matches!(source.due(Instant::now()), Some(Piece::Idle)));
        assert!(source.due(Instant::now()).is_none());
        assert_eq!(source.emitted(), None);
    }

    #[test]
    fn what_a_split_had_reached_at_its_end_leaves_before_idleness_does() {
        let mut source = ready(Duration::from_secs(10), &["a"]);
        let start = Instant::now();
        let mut none = |_| Ok(());
        source.on_batch(batch(&[Some(10)]), &Arc::from("a"), &mut none).unwrap();
        assert!(source.due(start).is_some());
        source.on_batch(batch(&[Some(20)]), &Arc::from("a"), &mut none).unwrap();
        source.finish_split("a");
        assert!(matches!(source.at_barrier(start), Some(Piece::Watermark(Watermark(15)))));
        assert!(matches!(source.at_barrier(start), Some(Piece::Idle)));
    }

    #[test]
    fn a_source_begins_idle_only_when_no_split_waits_for_a_reader() {
        let mut source = SourceWatermarks::new(strategy(Duration::ZERO));
        assert!(!source.begins_idle(), "a split that nobody reads may come");
        source.set_unread_elsewhere(false);
        assert!(source.begins_idle());
        assert!(source.due(Instant::now()).is_none(), "it is said once");
        assert!(!ready(Duration::ZERO, &["a"]).begins_idle());
    }

    #[test]
    fn expression_without_value_promises_nothing() {
        let values = lateness::marks(Int64Array::from(vec![Some(3), None]));
        assert_eq!(values.as_ref(), [3, i64::MIN]);
    }
}
