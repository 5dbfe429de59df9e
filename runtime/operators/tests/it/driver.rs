//! Runs the subtasks of one keyed operator on the test's thread: rows routed by key group, snapshots, restarts.

use std::{collections::BTreeMap, sync::Arc};

use arrow::{
    array::{RecordBatch, UInt32Array},
    compute::take_record_batch,
    datatypes::SchemaRef,
};
use streamkeeper_engine::{
    Clock, ManualClock, Operator, OperatorContext, OperatorFactory, OperatorMetrics, Output, RestoredLists, SubtaskInfo,
};
use streamkeeper_protocol::{Barrier, CheckpointKind};
use streamkeeper_state::{
    DroppedState, Extent, KeyEncoder, KeySchema, KeyedOptions, KeyedState, MemoryBackend, MemoryBudget, SnapshotFormat,
    SnapshotKind, SnapshotRequest,
};
use streamkeeper_storage::MemoryStorage;
use streamkeeper_types::{
    CheckpointId, Millis, OperatorId, Result, SubtaskId, VertexId, Watermark, key_group, snapshot::KeyedHandle,
};
use tempfile::TempDir;

const MAX_PARALLELISM: u32 = 16;

/// All subtasks of one operator, and what they put out.
pub struct Driver {
    factory: Arc<dyn OperatorFactory>,
    subtasks: Vec<Subtask>,
    router: KeyEncoder,
    keys: Vec<usize>,
    pub clock: ManualClock,
    pub output: Vec<RecordBatch>,
    late: u64,
    storage: MemoryStorage,
    work: TempDir,
    attempts: u32,
}

struct Subtask {
    operator: Box<dyn Operator>,
    context: OperatorContext,
}

struct Collect<'a>(&'a mut Vec<RecordBatch>);

impl Output for Collect<'_> {
    fn emit(&mut self, batch: RecordBatch) -> Result<()> {
        assert!(batch.num_rows() > 0, "an empty batch");
        self.0.push(batch);
        Ok(())
    }
}

/// What a restart takes from the subtasks before it.
#[derive(Default)]
struct Snapshot {
    keyed: Vec<KeyedHandle>,
    lists: BTreeMap<String, Vec<Vec<u8>>>,
}

impl Driver {
    /// One subtask, which is given rows of schema `input` by key columns `keys`.
    pub fn new(factory: impl OperatorFactory + 'static, input: &SchemaRef, keys: &[usize]) -> Self {
        let fields = keys.iter().map(|key| input.fields()[*key].clone()).collect();
        let mut driver = Self {
            factory: Arc::new(factory),
            subtasks: Vec::new(),
            router: KeyEncoder::new(KeySchema::new(fields).unwrap(), MAX_PARALLELISM),
            keys: keys.to_vec(),
            clock: ManualClock::new(0),
            output: Vec::new(),
            late: 0,
            storage: MemoryStorage::new(),
            work: TempDir::new().unwrap(),
            attempts: 0,
        };
        driver.start(1, &Snapshot::default());
        driver
    }

    fn start(&mut self, parallelism: u32, snapshot: &Snapshot) {
        self.attempts += 1;
        self.subtasks = (0..parallelism).map(|index| self.open(index, parallelism, snapshot)).collect();
    }

    fn open(&self, index: u32, parallelism: u32, snapshot: &Snapshot) -> Subtask {
        let info = SubtaskInfo {
            operator: OperatorId(1),
            name: "operator".to_owned(),
            subtask: SubtaskId { vertex: VertexId(0), index },
            parallelism,
            max_parallelism: MAX_PARALLELISM,
        };
        let specs = self.factory.tables();
        let state = (!specs.is_empty()).then(|| {
            let options = KeyedOptions {
                range: key_group::range_of(index, parallelism, MAX_PARALLELISM),
                max_parallelism: MAX_PARALLELISM,
                work_dir: self.work.path().join(format!("{}-{index}", self.attempts)),
                fold_every: 3,
                now: self.clock.now(),
                dropped: DroppedState::Refuse,
            };
            let backend = MemoryBackend::new(MemoryBudget::new(usize::MAX));
            KeyedState::open(&backend, options, specs, &snapshot.keyed, &self.storage).unwrap()
        });
        let mut operator = self.factory.create(&info).unwrap();
        let mut context = OperatorContext {
            info,
            state,
            watermark: Watermark::MIN,
            clock: Arc::new(self.clock.clone()),
            metrics: Arc::new(OperatorMetrics::default()),
        };
        let restored = RestoredLists { from: None, lists: snapshot.lists.clone() };
        operator.open(&restored, &mut context).unwrap();
        Subtask { operator, context }
    }

    /// Routes the rows of a batch.
    pub fn process(&mut self, batch: &RecordBatch) {
        self.try_process(batch).unwrap();
    }

    pub fn try_process(&mut self, batch: &RecordBatch) -> Result<()> {
        let columns: Vec<_> = self.keys.iter().map(|key| batch.column(*key).clone()).collect();
        let mut groups = Vec::new();
        self.router.groups(&columns, batch.num_rows(), &mut groups)?;
        let parallelism = u32::try_from(self.subtasks.len()).unwrap();
        for (index, subtask) in (0_u32..).zip(&mut self.subtasks) {
            let rows = (0_u32..).zip(&groups);
            let rows = rows.filter(|(_, group)| key_group::subtask_of(**group, parallelism, MAX_PARALLELISM) == index);
            let rows = UInt32Array::from_iter_values(rows.map(|(row, _)| row));
            if rows.is_empty() {
                continue;
            }
            let part = take_record_batch(batch, &rows).unwrap();
            subtask.operator.process(0, part, &mut subtask.context, &mut Collect(&mut self.output))?;
            subtask.maintain();
        }
        Ok(())
    }

    /// Tells of a watermark if it is higher than the last one since the start; whether it was.
    pub fn watermark(&mut self, millis: Millis) -> bool {
        let watermark = Watermark(millis);
        if self.subtasks.iter().any(|subtask| watermark <= subtask.context.watermark) {
            return false;
        }
        for subtask in &mut self.subtasks {
            subtask.context.watermark = watermark;
            subtask.operator.on_watermark(watermark, &mut subtask.context, &mut Collect(&mut self.output)).unwrap();
            subtask.maintain();
        }
        true
    }

    /// Sets processing time and runs the timers that are due.
    pub fn advance_clock(&mut self, now: Millis) {
        self.clock.set(now);
        for subtask in &mut self.subtasks {
            while subtask.operator.next_timer().is_some_and(|at| at <= now) {
                subtask.operator.on_timer(now, &mut subtask.context, &mut Collect(&mut self.output)).unwrap();
            }
            subtask.maintain();
        }
    }

    /// The end watermark and the end of input.
    pub fn finish(&mut self) {
        self.watermark(Watermark::MAX.0);
        for subtask in &mut self.subtasks {
            subtask.operator.finish(&mut subtask.context, &mut Collect(&mut self.output)).unwrap();
        }
    }

    /// Takes a checkpoint and starts from it. No watermark follows by itself.
    pub fn restart(&mut self, parallelism: u32) {
        let barrier = Barrier {
            id: CheckpointId(u64::from(self.attempts)),
            timestamp: self.clock.now(),
            kind: CheckpointKind::Checkpoint,
            format: streamkeeper_protocol::SnapshotFormat::Native,
            target: format!("chk-{}", self.attempts),
            full: false,
        };
        let mut snapshot = Snapshot::default();
        for (index, subtask) in self.subtasks.iter_mut().enumerate() {
            subtask.operator.before_barrier(&barrier, &mut subtask.context, &mut Collect(&mut self.output)).unwrap();
            for (name, list) in subtask.operator.snapshot_lists(&barrier).unwrap() {
                snapshot.lists.entry(name).or_default().extend(list.items);
            }
            self.late += subtask.context.metrics.late();
            let Some(state) = &mut subtask.context.state else { continue };
            let request = SnapshotRequest {
                id: barrier.id,
                kind: SnapshotKind::Checkpoint,
                format: SnapshotFormat::Native,
                extent: Extent::Incremental,
                target: barrier.target.clone(),
                unique: format!("{}-{index}", self.attempts),
            };
            snapshot.keyed.push(state.freeze(&request).unwrap().upload(&self.storage).unwrap());
        }
        self.start(parallelism, &snapshot);
    }

    /// Late records over all attempts.
    pub fn late(&self) -> u64 {
        self.late + self.subtasks.iter().map(|subtask| subtask.context.metrics.late()).sum::<u64>()
    }

    /// Rows that state holds in its first table.
    pub fn groups(&self) -> usize {
        let state = self.subtasks.iter().filter_map(|subtask| subtask.context.state.as_ref());
        state.map(|state| state.table(0).cached_rows()).sum()
    }
}

impl Subtask {
    fn maintain(&mut self) {
        if let Some(state) = &mut self.context.state {
            state.set_now(self.context.clock.now());
            state.maintain().unwrap();
        }
    }
}
