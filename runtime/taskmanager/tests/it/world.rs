//! A job over the small operators, and what tests do with it.

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicI64, Ordering},
    },
    time::Duration,
};

use arrow::array::AsArray;
use streamkeeper_checkpoint::restore::DroppedState;
use streamkeeper_engine::{
    Changelog, Edge, Node, NodeFactory, Partitioning, SourceFactory, StreamGraph, SystemClock, UnreadSplits,
    WatermarkStrategy,
};
use streamkeeper_jobmanager::engine::{
    Bounds, CheckpointOptions, SchedulerOptions,
    failover::{ExponentialDelay, RestartStrategy},
};
use streamkeeper_state::{MemoryBackend, MemoryBudget};
use streamkeeper_storage::{MemoryStorage, Storage};
use streamkeeper_taskmanager::{
    TaskManagerOptions,
    local::{JobHandle, JobSpec, LocalJob, RestoreChoice, run_local},
};
use streamkeeper_types::{OperatorId, Result};
use tempfile::TempDir;

use crate::{
    counting::{COUNTED, Counting},
    mortal::{Fuse, MortalStorage},
    outside::Outside,
    source::Numbers,
};

/// Time after which a test gives up; never waited for when all is well.
pub const LONG: Duration = Duration::from_secs(60);

/// Opens once.
#[derive(Debug, Clone, Default)]
pub struct Gate(Arc<AtomicBool>);

impl Gate {
    pub fn opened() -> Self {
        Self(Arc::new(AtomicBool::new(true)))
    }

    pub fn open(&self) {
        self.0.store(true, Ordering::SeqCst);
    }

    pub fn is_open(&self) -> bool {
        self.0.load(Ordering::SeqCst)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    Error,
    Panic,
    /// Does not come back before [`Faults::resumes`] is open.
    Hang,
}

/// Faults of an operator: after so many batches, one.
#[derive(Debug, Clone)]
pub struct Faults {
    batches: Arc<AtomicI64>,
    fault: Fault,
    pub resumes: Gate,
}

impl Faults {
    pub fn none() -> Self {
        Self::after(i64::MAX, Fault::Error)
    }

    pub fn after(batches: i64, fault: Fault) -> Self {
        Self { batches: Arc::new(AtomicI64::new(batches)), fault, resumes: Gate::default() }
    }

    pub fn take(&self) -> Option<Fault> {
        (self.batches.fetch_sub(1, Ordering::SeqCst) == 0).then_some(self.fault)
    }
}

/// `WATERMARK FOR ts AS ts`
pub fn exact_watermark() -> WatermarkStrategy {
    WatermarkStrategy {
        rowtime_column: 2,
        expression: Arc::new(|batch| {
            let times = batch.column(2).as_primitive::<arrow::datatypes::TimestampMillisecondType>();
            Ok(times.iter().collect())
        }),
        idle_timeout: None,
        min_gap: Duration::ZERO,
        unread_splits: UnreadSplits::Hold,
    }
}

/// Everything that outlives a run.
pub struct World {
    pub storage: Arc<dyn Storage>,
    pub fuse: Fuse,
    pub numbers: Numbers,
    pub outside: Outside,
    pub local: TempDir,
    pub faults: Faults,
    pub interval: Option<Duration>,
    pub restart: RestartStrategy,
}

impl World {
    pub fn new(splits: i64, rows: i64) -> Self {
        let fuse = Fuse::endless();
        Self {
            storage: Arc::new(MortalStorage { inner: Arc::new(MemoryStorage::new()), fuse: fuse.clone() }),
            outside: Outside::new(fuse.clone()),
            fuse,
            numbers: Numbers { splits, rows, keys: 7, gate: Gate::opened() },
            local: TempDir::new().unwrap(),
            faults: Faults::none(),
            interval: Some(Duration::from_millis(20)),
            restart: RestartStrategy::ExponentialDelay(ExponentialDelay {
                initial: Duration::from_millis(1),
                ..ExponentialDelay::default()
            }),
        }
    }

    pub fn graph(&self) -> StreamGraph {
        let node = |id, name: &str, output, factory| Node {
            id: OperatorId(id),
            name: name.into(),
            details: Vec::new(),
            output,
            changelog: Changelog::InsertOnly,
            state: Vec::new(),
            factory,
            parallelism: None,
        };
        let source = NodeFactory::Source {
            source: Arc::new(self.numbers.clone()),
            prelude: None,
            watermark: Some(exact_watermark()),
            rate_limit: None,
            idle_wait: Duration::from_millis(1),
        };
        let counting =
            NodeFactory::Operator(Arc::new(Counting { faults: self.faults.clone(), fuse: self.fuse.clone() }));
        let sink = NodeFactory::Operator(Arc::new(self.outside.clone()));
        StreamGraph {
            nodes: vec![
                node(1, "Source(numbers)", self.numbers.schema(), source),
                node(2, "Count(key)", COUNTED.clone(), counting),
                node(3, "Sink(outside)", COUNTED.clone(), sink),
            ],
            edges: vec![
                Edge { from: 0, to: 1, input: 0, partitioning: Partitioning::Hash(vec![0]) },
                Edge { from: 1, to: 2, input: 0, partitioning: Partitioning::Forward },
            ],
        }
    }

    pub fn job(&self, parallelism: u32) -> LocalJob {
        let checkpoints =
            CheckpointOptions { interval: self.interval, min_pause: Duration::ZERO, ..CheckpointOptions::default() };
        let job = JobSpec {
            namespace: "default".into(),
            name: "test".into(),
            graph: self.graph(),
            program: "count".into(),
            bounds: Bounds::exactly(parallelism),
            scheduler: SchedulerOptions::default(),
            max_parallelism: None,
            checkpoints,
            restart: self.restart.clone(),
            storage: Arc::clone(&self.storage),
            lock: None,
            address: None,
            restore: RestoreChoice::Auto,
            dropped_state: DroppedState::Refuse,
            clock: Arc::new(SystemClock),
        };
        let tasks =
            TaskManagerOptions { batch_rows: 16, ..TaskManagerOptions::new(8, 1 << 20, self.local.path().join("tm")) };
        LocalJob { job, tasks, backend: Arc::new(MemoryBackend::new(MemoryBudget::new(64 << 20))) }
    }

    pub fn start(&self, parallelism: u32) -> Result<JobHandle> {
        run_local(self.job(parallelism))
    }

    /// Every value came out once, and the rows of each key are numbered from 1 without gap: nothing lost or doubled,
    /// neither in the stream nor in the state.
    pub fn check_exactly_once(&self) {
        let rows = self.outside.rows();
        let mut values: Vec<i64> = rows.iter().map(|[_, value, _]| *value).collect();
        values.sort_unstable();
        assert_eq!(values, (0..self.numbers.total()).collect::<Vec<_>>(), "each value once");
        let mut counts: BTreeMap<i64, Vec<i64>> = BTreeMap::new();
        for [key, _, count] in rows {
            counts.entry(key).or_default().push(count);
        }
        for (key, counts) in counts {
            let expected: Vec<i64> = (1..).take(counts.len()).collect();
            assert_eq!(counts.iter().collect::<std::collections::BTreeSet<_>>().len(), counts.len(), "key {key}");
            assert_eq!(
                {
                    let mut c = counts;
                    c.sort_unstable();
                    c
                },
                expected,
                "key {key}"
            );
        }
    }
}
