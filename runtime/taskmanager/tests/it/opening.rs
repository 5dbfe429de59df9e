//! Late rows at the start of a job: a reader that comes late changes no verdict, and nobody waits for ever.

use std::{
    collections::{BTreeSet, VecDeque},
    sync::Arc,
};

use arrow::{
    array::{AsArray, Int64Array, RecordBatch, TimestampMillisecondArray},
    datatypes::{SchemaRef, TimestampMillisecondType},
};
use parking_lot::{Condvar, Mutex};
use streamkeeper_engine::{
    Changelog, Edge, Node, NodeFactory, Operator, OperatorContext, OperatorFactory, Output, Partitioning, Polled,
    SourceContext, SourceFactory, SourceReader, Split, SplitCoordinator, StreamGraph, SubtaskInfo,
};
use streamkeeper_taskmanager::local::{JobOutcome, run_local};
use streamkeeper_types::{OperatorId, Result};

use crate::{
    source::Numbers,
    world::{LONG, World, exact_watermark},
};

/// Batches read so far by all readers; whoever waits is woken by each.
#[derive(Default)]
struct Read {
    count: Mutex<u64>,
    more: Condvar,
}

impl Read {
    fn add(&self) {
        *self.count.lock() += 1;
        self.more.notify_all();
    }

    fn wait_for(&self, count: u64) {
        let mut read = self.count.lock();
        let reached = !self.more.wait_while_for(&mut read, |read| *read < count, LONG).timed_out();
        assert!(reached, "the first reader stands still after {read} batches");
    }
}

/// Batches of times. The reader of subtask 1 comes up only when the other one has read so many.
#[derive(Clone)]
struct Script {
    splits: Arc<Vec<Vec<Vec<i64>>>>,
    second_after: u64,
    read: Arc<Read>,
    /// Deals the splits out one by one.
    dealer: Numbers,
}

impl Script {
    fn new(splits: Vec<Vec<Vec<i64>>>, second_after: u64) -> Self {
        let dealer = Numbers { splits: i64::try_from(splits.len()).unwrap(), ..World::new(0, 0).numbers };
        Self { splits: Arc::new(splits), second_after, read: Arc::default(), dealer }
    }

    /// Rows at or behind an earlier one of their own split.
    fn late(&self) -> BTreeSet<i64> {
        let mut late = BTreeSet::new();
        for split in self.splits.iter() {
            let mut highest = i64::MIN;
            for time in split.iter().flatten() {
                if *time <= highest {
                    late.insert(*time);
                }
                highest = highest.max(*time);
            }
        }
        late
    }
}

impl SourceFactory for Script {
    fn schema(&self) -> SchemaRef {
        self.dealer.schema()
    }

    fn coordinator(&self, parallelism: u32) -> Result<Box<dyn SplitCoordinator>> {
        self.dealer.coordinator(parallelism)
    }

    fn reader(&self, info: &SubtaskInfo, _: SourceContext) -> Result<Box<dyn SourceReader>> {
        if info.subtask.index == 1 {
            self.read.wait_for(self.second_after);
        }
        Ok(Box::new(Reader { script: self.clone(), open: VecDeque::new() }))
    }
}

struct Reader {
    script: Script,
    /// Split, next batch.
    open: VecDeque<(usize, usize)>,
}

impl SourceReader for Reader {
    fn add_splits(&mut self, splits: Vec<Split>) -> Result<()> {
        self.open.extend(splits.iter().map(|split| (split.id.parse::<usize>().unwrap(), 0)));
        Ok(())
    }

    fn poll(&mut self) -> Result<Polled> {
        let Some((split, next)) = self.open.front_mut() else { return Ok(Polled::NeedSplits) };
        let id: Arc<str> = Arc::from(split.to_string());
        let Some(times) = self.script.splits[*split].get(*next) else {
            self.open.pop_front();
            return Ok(Polled::SplitFinished(id));
        };
        *next += 1;
        self.script.read.add();
        let batch = RecordBatch::try_new(
            self.script.schema(),
            vec![
                Arc::new(Int64Array::from_iter_values(times.iter().map(|time| time % 7))),
                Arc::new(Int64Array::from_iter_values(times.iter().map(|time| time % 11))),
                Arc::new(TimestampMillisecondArray::from_iter_values(times.iter().copied())),
            ],
        );
        Ok(Polled::Batch { batch: batch.unwrap(), split: id })
    }

    fn snapshot(&self) -> Vec<Split> {
        self.open.iter().map(|(split, _)| Split { id: split.to_string(), state: Vec::new() }).collect()
    }
}

/// Passes rows on and keeps the times of those that are late.
#[derive(Clone, Default)]
struct Judge {
    late: Arc<Mutex<BTreeSet<i64>>>,
    rows: Arc<Mutex<usize>>,
}

impl OperatorFactory for Judge {
    fn create(&self, _: &SubtaskInfo) -> Result<Box<dyn Operator>> {
        Ok(Box::new(self.clone()))
    }
}

impl Operator for Judge {
    fn process(
        &mut self,
        _: usize,
        batch: RecordBatch,
        context: &mut OperatorContext,
        output: &mut dyn Output,
    ) -> Result<()> {
        let times = batch.column(2).as_primitive::<TimestampMillisecondType>().values();
        self.late.lock().extend(times.iter().filter(|time| **time <= context.watermark.0));
        *self.rows.lock() += times.len();
        output.emit(batch)
    }
}

/// source ─key─▶ first ─value─▶ second, each with two subtasks.
fn graph(script: &Script, first: &Judge, second: &Judge) -> StreamGraph {
    let node = |id, name: &str, factory| Node {
        id: OperatorId(id),
        name: name.into(),
        details: Vec::new(),
        output: script.schema(),
        changelog: Changelog::InsertOnly,
        state: Vec::new(),
        factory,
        parallelism: None,
    };
    let source = NodeFactory::Source {
        source: Arc::new(script.clone()),
        prelude: None,
        watermark: Some(exact_watermark()),
        rate_limit: None,
        idle_wait: std::time::Duration::from_millis(1),
    };
    let edge = |from, to, column| Edge { from, to, input: 0, partitioning: Partitioning::Hash(vec![column]) };
    StreamGraph {
        nodes: vec![
            node(1, "Source(script)", source),
            node(2, "Judge(key)", NodeFactory::Operator(Arc::new(first.clone()))),
            node(3, "Judge(value)", NodeFactory::Operator(Arc::new(second.clone()))),
        ],
        edges: vec![edge(0, 1, 0), edge(1, 2, 1)],
    }
}

/// Runs the job; gives the times that were late behind the first exchange, and behind the second.
fn late(script: &Script) -> [BTreeSet<i64>; 2] {
    let (first, second) = (Judge::default(), Judge::default());
    let mut job = World { interval: None, ..World::new(0, 0) }.job(2);
    job.job.graph = graph(script, &first, &second);
    assert_eq!(run_local(job).unwrap().join().unwrap(), JobOutcome::Finished);
    let total: usize = script.splits.iter().flatten().map(Vec::len).sum();
    assert_eq!([*first.rows.lock(), *second.rows.lock()], [total; 2]);
    [first, second].map(|judge| judge.late.lock().clone())
}

/// `batches` batches of `rows` rows each, the last of which is late.
fn split(from: i64, batches: i64, rows: i64) -> Vec<Vec<i64>> {
    let batch = |number: i64| {
        let start = from + number * rows * 2;
        (1..rows).map(|row| start + row * 2).chain([start + 3]).collect()
    };
    (0..batches).map(batch).collect()
}

#[test]
fn d13_late_rows_of_a_lone_split_are_late_whenever_the_reader_without_split_comes_up() {
    for second_after in [0, 1, 20, 40] {
        let script = Script::new(vec![split(0, 40, 5)], second_after);
        let [first, second] = late(&script);
        assert_eq!(first, script.late(), "reader 1 after {second_after} batches");
        assert!(second.is_subset(&script.late()), "behind a second exchange no other row is late");
    }
}

#[test]
fn d14_with_several_splits_no_row_is_late_that_is_not_behind_its_own_split() {
    for second_after in [0, 2, 9] {
        let script = Script::new(vec![split(10_000, 8, 5), split(0, 8, 5), split(500, 3, 4)], second_after);
        for late in late(&script) {
            assert!(late.is_subset(&script.late()), "{late:?}");
        }
    }
}

#[test]
fn full_channels_before_the_last_reader_has_spoken_stop_nobody_for_ever() {
    // Each batch is larger than a channel: what follows the first one waits for room, while reader 1 comes up.
    let script = Script::new(vec![split(0, 6, 60_000)], 1);
    let [first, _] = late(&script);
    assert_eq!(first, script.late());
}
