//! Sources that compute their rows: row `i` is a function of `i`, so a position is a number and nothing is stored.
//!
//! The rows are dealt out interleaved: split `k` of `n` has the rows `k`, `k + n`, `k + 2n`, …, so that parallel readers
//! yield the same set at any parallelism and their event times rise together. `n` is fixed at the first start.

use std::{sync::Arc, time::Duration};

use arrow::{array::RecordBatch, datatypes::SchemaRef};
use serde::{Deserialize, Serialize};
use streamkeeper_engine::{
    Assignment, Paused, Polled, SourceContext, SourceFactory, SourceReader, Split, SplitCoordinator, SplitRequest,
    SubtaskInfo,
};
use streamkeeper_types::{Millis, Result};

use crate::versioned;

/// Computes rows.
pub(crate) trait Generator: Send + Sync {
    fn schema(&self) -> SchemaRef;

    /// Rows of the whole table; `None`: without end.
    fn rows(&self) -> Option<u64>;

    /// Rows per second of the whole table; `None`: as fast as they are taken.
    fn rows_per_second(&self) -> Option<u64>;

    /// # Errors
    /// When a row cannot be computed.
    fn batch(&self, rows: RowRange, now: Millis) -> Result<RecordBatch>;
}

/// The row numbers `first`, `first + step`, …, `count` of them.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RowRange {
    pub(crate) first: u64,
    pub(crate) step: u64,
    pub(crate) count: usize,
}

impl RowRange {
    pub(crate) fn iter(self) -> impl Iterator<Item = u64> + Clone {
        (0..self.count as u64).map(move |k| self.first + k * self.step)
    }
}

/// A generator as a source.
pub(crate) struct GeneratorSource<G>(pub(crate) Arc<G>);

impl<G: Generator + 'static> SourceFactory for GeneratorSource<G> {
    fn schema(&self) -> SchemaRef {
        self.0.schema()
    }

    fn coordinator(&self, parallelism: u32) -> Result<Box<dyn SplitCoordinator>> {
        Ok(Box::new(Dealer(Dealt { splits: parallelism.max(1), next: 0 })))
    }

    fn reader(&self, _subtask: &SubtaskInfo, context: SourceContext) -> Result<Box<dyn SourceReader>> {
        Ok(Box::new(Reader { generator: Arc::clone(&self.0), context, splits: Vec::new(), turn: 0 }))
    }
}

const VERSION: u8 = 1;

/// The coordinator's state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
struct Dealt {
    splits: u32,
    /// Splits below it are with readers.
    next: u32,
}

struct Dealer(Dealt);

impl SplitCoordinator for Dealer {
    fn reset(&mut self, _readers: u32) {}

    fn on_request(&mut self, request: SplitRequest) -> Result<Vec<Assignment>> {
        let Dealt { splits, next } = &mut self.0;
        let mut dealt = Vec::new();
        if next < splits {
            let position = Position { split: *next, splits: *splits, done: 0 };
            dealt.push(position.to_split()?);
            *next += 1;
        }
        Ok(vec![Assignment { reader: request.reader, splits: dealt, no_more: next == splits }])
    }

    fn has_unread_splits(&self) -> bool {
        self.0.next < self.0.splits
    }

    fn snapshot(&mut self) -> Result<Vec<u8>> {
        versioned::encode(VERSION, &self.0)
    }

    fn restore(&mut self, bytes: &[u8]) -> Result<()> {
        self.0 = versioned::decode(VERSION, bytes, "split coordinator of a generated table")?;
        Ok(())
    }
}

/// A split with how far it was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
struct Position {
    split: u32,
    splits: u32,
    /// Rows of this split that were yielded.
    done: u64,
}

impl Position {
    fn to_split(self) -> Result<Split> {
        Ok(Split { id: format!("{}/{}", self.split, self.splits), state: versioned::encode(VERSION, &self)? })
    }

    /// Rows of this split if the table has `rows`.
    fn rows(self, rows: u64) -> u64 {
        rows.saturating_sub(u64::from(self.split)).div_ceil(u64::from(self.splits.max(1)))
    }
}

struct Reader<G> {
    generator: Arc<G>,
    context: SourceContext,
    splits: Vec<Active>,
    /// Which split is next.
    turn: usize,
}

struct Active {
    id: Arc<str>,
    position: Position,
    paused: Paused,
    /// When this attempt began to read it, and how many rows it had then.
    started: Millis,
    done_at_start: u64,
}

impl Active {
    /// Rows that the rate allows now, at most `limit`; else how long to wait for the next one.
    fn due(&self, rows_per_second: Option<u64>, now: Millis, limit: u64) -> Result<u64, Duration> {
        let Some(rate) = rows_per_second else { return Ok(limit) };
        // Per split: rate / splits rows a second.
        let per_row = u128::from(self.position.splits) * 1_000;
        let elapsed = u128::try_from(now - self.started).unwrap_or(0);
        let allowed = elapsed * u128::from(rate) / per_row;
        let done = u128::from(self.position.done - self.done_at_start);
        match allowed.saturating_sub(done) {
            0 => {
                let at = ((done + 1) * per_row).div_ceil(u128::from(rate.max(1)));
                let wait = u64::try_from(at.saturating_sub(elapsed)).unwrap_or(u64::MAX);
                Err(Duration::from_millis(wait.max(1)))
            }
            due => Ok(u64::try_from(due).unwrap_or(limit).min(limit)),
        }
    }
}

impl<G: Generator + 'static> SourceReader for Reader<G> {
    fn add_splits(&mut self, splits: Vec<Split>) -> Result<()> {
        for split in splits {
            let position: Position = versioned::decode(VERSION, &split.state, "split of a generated table")?;
            self.splits.push(Active {
                id: split.id.into(),
                position,
                paused: Paused::No,
                started: self.context.clock.now(),
                done_at_start: position.done,
            });
        }
        Ok(())
    }

    fn poll(&mut self) -> Result<Polled> {
        if self.splits.is_empty() {
            return Ok(Polled::NeedSplits);
        }
        let now = self.context.clock.now();
        let mut shortest_wait = Duration::from_millis(10);
        for _ in 0..self.splits.len() {
            self.turn = (self.turn + 1) % self.splits.len();
            let active = &mut self.splits[self.turn];
            if active.paused == Paused::Yes {
                continue;
            }
            let mut limit = self.context.batch_rows as u64;
            if let Some(rows) = self.generator.rows() {
                limit = limit.min(active.position.rows(rows).saturating_sub(active.position.done));
                if limit == 0 {
                    return Ok(Polled::SplitFinished(self.splits.remove(self.turn).id));
                }
            }
            let count = match active.due(self.generator.rows_per_second(), now, limit) {
                Ok(count) => count,
                Err(wait) => {
                    shortest_wait = shortest_wait.min(wait);
                    continue;
                }
            };
            let Position { split, splits, done } = active.position;
            let step = u64::from(splits);
            let range = RowRange { first: u64::from(split) + done * step, step, count: count as usize };
            let batch = self.generator.batch(range, now)?;
            active.position.done += count;
            return Ok(Polled::Batch { batch, split: Arc::clone(&active.id) });
        }
        Ok(Polled::Wait(shortest_wait))
    }

    fn snapshot(&self) -> Vec<Split> {
        // The only failure of this encoding would be a bug that `add_splits` had met before.
        self.splits.iter().filter_map(|active| active.position.to_split().ok()).collect()
    }

    fn set_paused(&mut self, split: &str, paused: Paused) {
        if let Some(active) = self.splits.iter_mut().find(|active| &*active.id == split) {
            active.paused = paused;
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use arrow::{
        array::AsArray,
        array::Int64Array,
        datatypes::{DataType, Field, Int64Type, Schema},
    };
    use proptest::prelude::*;
    use streamkeeper_engine::{ManualClock, OperatorMetrics};
    use streamkeeper_types::{OperatorId, SubtaskId, VertexId};

    use super::*;

    struct Numbers {
        rows: Option<u64>,
        rate: Option<u64>,
    }

    impl Generator for Numbers {
        fn schema(&self) -> SchemaRef {
            Arc::new(Schema::new(vec![Field::new("n", DataType::Int64, false)]))
        }

        fn rows(&self) -> Option<u64> {
            self.rows
        }

        fn rows_per_second(&self) -> Option<u64> {
            self.rate
        }

        fn batch(&self, rows: RowRange, _now: Millis) -> Result<RecordBatch> {
            let numbers = Int64Array::from_iter_values(rows.iter().map(|n| n as i64));
            Ok(RecordBatch::try_new(self.schema(), vec![Arc::new(numbers)]).unwrap())
        }
    }

    fn reader(source: &GeneratorSource<Numbers>, clock: &ManualClock) -> Box<dyn SourceReader> {
        let info = SubtaskInfo {
            operator: OperatorId(1),
            name: String::new(),
            subtask: SubtaskId { vertex: VertexId(0), index: 0 },
            parallelism: 1,
            max_parallelism: 128,
        };
        let context = SourceContext {
            clock: Arc::new(clock.clone()),
            metrics: Arc::new(OperatorMetrics::default()),
            batch_rows: 7,
        };
        source.reader(&info, context).unwrap()
    }

    fn numbers(batch: &RecordBatch) -> Vec<i64> {
        batch.column(0).as_primitive::<Int64Type>().values().to_vec()
    }

    proptest! {
        #[test]
        fn every_row_comes_once_over_a_restore_at_another_parallelism(
            rows in 0_u64..200, before in 1_u32..6, after in 1_usize..6, polls in 0_usize..20,
        ) {
            let source = GeneratorSource(Arc::new(Numbers { rows: Some(rows), rate: None }));
            let clock = ManualClock::new(0);
            let mut coordinator = source.coordinator(before).unwrap();
            let mut found = Vec::new();
            let mut first: Vec<_> = (0..before).map(|_| reader(&source, &clock)).collect();
            for k in 0..polls {
                let index = k % before as usize;
                match first[index].poll().unwrap() {
                    Polled::Batch { batch, .. } => found.extend(numbers(&batch)),
                    Polled::NeedSplits => {
                        for a in coordinator.on_request(SplitRequest { reader: index as u32 }).unwrap() {
                            first[index].add_splits(a.splits).unwrap();
                        }
                    }
                    _ => {}
                }
            }
            let cut = coordinator.snapshot().unwrap();
            let splits: Vec<Split> = first.iter().flat_map(|r| r.snapshot()).collect();
            let mut coordinator = source.coordinator(after as u32).unwrap();
            coordinator.restore(&cut).unwrap();
            coordinator.reset(after as u32);
            let mut second: Vec<_> = (0..after).map(|_| reader(&source, &clock)).collect();
            for (k, split) in splits.into_iter().enumerate() {
                second[k % after].add_splits(vec![split]).unwrap();
            }
            for (index, reader) in second.iter_mut().enumerate() {
                loop {
                    match reader.poll().unwrap() {
                        Polled::Batch { batch, .. } => found.extend(numbers(&batch)),
                        Polled::NeedSplits => {
                            let mut dealt = coordinator.on_request(SplitRequest { reader: index as u32 }).unwrap();
                            let assignment = dealt.pop().unwrap();
                            if assignment.splits.is_empty() {
                                prop_assert!(assignment.no_more);
                                break;
                            }
                            reader.add_splits(assignment.splits).unwrap();
                        }
                        _ => {}
                    }
                }
            }
            found.sort_unstable();
            prop_assert_eq!(found, (0..rows as i64).collect::<Vec<_>>());
        }
    }

    #[test]
    fn a_rate_is_kept_and_waited_for() {
        let source = GeneratorSource(Arc::new(Numbers { rows: None, rate: Some(10) }));
        let clock = ManualClock::new(0);
        let mut reader = reader(&source, &clock);
        let mut coordinator = source.coordinator(1).unwrap();
        for a in coordinator.on_request(SplitRequest { reader: 0 }).unwrap() {
            reader.add_splits(a.splits).unwrap();
        }
        assert!(matches!(reader.poll().unwrap(), Polled::Wait(_)));
        clock.set(250);
        let Polled::Batch { batch, .. } = reader.poll().unwrap() else { panic!("rows are due") };
        assert_eq!(batch.num_rows(), 2);
        assert!(matches!(reader.poll().unwrap(), Polled::Wait(_)));
    }
}
