//! A task between channels that the test holds, with operators that write down what happens to them.

use std::{
    collections::BTreeMap,
    sync::{Arc, mpsc},
    time::Duration,
};

use arrow::{
    array::{Int64Array, RecordBatch},
    datatypes::{DataType, Field, Schema, SchemaRef},
};
use parking_lot::Mutex;
use streamkeeper_engine::{
    Changelog, Node, NodeFactory, Operator, OperatorContext, OperatorFactory, OperatorRestore, Output, Partitioning,
    SubtaskInfo, SystemClock, Vertex,
    task::{OutputEdge, TaskEnvironment, TaskHandle, TaskInput, TaskSpec, TaskWiring, UploadPool, spawn},
};
use streamkeeper_network::{ChannelClosed, ChannelSender, Element, InputGate, Interrupt, LocalSender, Sent};
use streamkeeper_protocol::{
    Barrier, CheckpointKind, DeclineReason, FromTask, SnapshotFormat, TaskReport, TaskState, ToTask,
};
use streamkeeper_state::{MemoryBackend, MemoryBudget};
use streamkeeper_storage::MemoryStorage;
use streamkeeper_types::{
    AttemptId, CheckpointId, Code, Error, Generation, OperatorId, Result, SubtaskId, VertexId, Watermark,
    snapshot::{ListMode, ListState, SubtaskSnapshot},
};
use tempfile::TempDir;

/// Never waited for when all is well.
const LONG: Duration = Duration::from_secs(30);

/// What happened, in order.
#[derive(Debug, Clone, Default)]
pub struct Journal(Arc<Mutex<Vec<String>>>);

impl Journal {
    pub fn write(&self, line: impl Into<String>) {
        self.0.lock().push(line.into());
    }

    /// Everything so far; begins anew.
    pub fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock())
    }
}

/// A task whose `channels` inputs the test feeds.
pub struct Bench {
    pub senders: Vec<LocalSender>,
    pub journal: Journal,
    pub task: TaskHandle,
    reports: mpsc::Receiver<TaskReport>,
    _local: TempDir,
}

impl Bench {
    /// A chain of two writers, `a` and `b`.
    pub fn new(channels: usize) -> Self {
        Self::start(vec![0; channels], BTreeMap::new(), Vec::new())
    }

    /// With what the channels hold before the task begins to read them.
    pub fn filled(channels: usize, elements: Vec<(usize, Element)>) -> Self {
        Self::start(vec![0; channels], BTreeMap::new(), elements)
    }

    /// With the logical input of each channel.
    pub fn with_inputs(logical: &[usize]) -> Self {
        Self::start(logical.to_vec(), BTreeMap::new(), Vec::new())
    }

    pub fn restored(channels: usize, restore: BTreeMap<OperatorId, OperatorRestore>) -> Self {
        Self::start(vec![0; channels], restore, Vec::new())
    }

    fn start(
        logical: Vec<usize>,
        restore: BTreeMap<OperatorId, OperatorRestore>,
        elements: Vec<(usize, Element)>,
    ) -> Self {
        let channels = logical.len();
        let journal = Journal::default();
        let local = TempDir::new().unwrap();
        let gate = InputGate::new(channels, 1 << 20);
        let mut senders: Vec<_> = (0..channels).map(|channel| gate.sender(channel, Interrupt::default())).collect();
        for (channel, element) in elements {
            senders[channel].send(element).unwrap();
        }
        let (sink, reports) = mpsc::channel();
        let sink = Mutex::new(sink);
        let target: Box<dyn ChannelSender> = Box::new(Witness(journal.clone()));
        let output = OutputEdge::new(&Partitioning::Forward, &schema(), vec![target], 0, 128).unwrap();
        let wiring = TaskWiring {
            input: Some(TaskInput { gate, logical }),
            outputs: vec![output],
            interrupt: Interrupt::default(),
        };
        let environment = TaskEnvironment {
            clock: Arc::new(SystemClock),
            backend: Arc::new(MemoryBackend::new(MemoryBudget::new(1 << 20))),
            storage: Arc::new(MemoryStorage::new()),
            local_dir: local.path().to_owned(),
            uploads: UploadPool::start(1).unwrap(),
            reports: Arc::new(move |FromTask { report, .. }| {
                let _ = sink.lock().send(report);
            }),
            batch_rows: 1_000,
            flush_timeout: Duration::from_millis(10),
        };
        let subtask = SubtaskId { vertex: VertexId(0), index: 0 };
        let spec = TaskSpec {
            attempt: AttemptId { generation: Generation(1), subtask, number: 0 },
            vertex: vertex(&journal),
            max_parallelism: 128,
            restore,
        };
        let task = spawn(spec, wiring, environment).unwrap();
        Self { senders, journal, task, reports, _local: local }
    }

    pub fn send(&mut self, channel: usize, element: Element) {
        self.senders[channel].send(element).unwrap();
    }

    pub fn barrier(&mut self, channel: usize, id: u64) {
        self.send(channel, Element::Barrier(barrier(id)));
    }

    /// Waits for a report of interest.
    pub fn report<T>(&self, mut pick: impl FnMut(TaskReport) -> Option<T>) -> T {
        loop {
            if let Some(found) = pick(self.reports.recv_timeout(LONG).unwrap()) {
                return found;
            }
        }
    }

    pub fn ack(&self, wanted: u64) -> SubtaskSnapshot {
        self.report(|report| match report {
            TaskReport::Ack { id, snapshot, .. } if id.0 == wanted => Some(snapshot),
            _ => None,
        })
    }

    pub fn decline(&self) -> (u64, DeclineReason) {
        self.report(|report| match report {
            TaskReport::Decline { id, reason } => Some((id.0, reason)),
            _ => None,
        })
    }

    pub fn state(&self, wanted: &TaskState) {
        self.report(|report| (report == TaskReport::State(wanted.clone())).then_some(()));
    }

    pub fn failure(&self) -> Error {
        self.report(|report| match report {
            TaskReport::State(TaskState::Failed(error)) => Some(error),
            _ => None,
        })
    }

    pub fn complete(&self, id: u64) {
        self.task.send(ToTask::NotifyComplete { id: CheckpointId(id), last_subsumed: None });
    }

    pub fn end_data(&mut self, channel: usize) {
        self.send(channel, Element::Watermark(Watermark::MAX));
        self.send(channel, Element::EndOfData);
    }
}

fn schema() -> SchemaRef {
    Arc::new(Schema::new(vec![Field::new("v", DataType::Int64, false)]))
}

pub fn row(value: i64) -> Element {
    Element::Batch(batch(value))
}

fn batch(value: i64) -> RecordBatch {
    RecordBatch::try_new(schema(), vec![Arc::new(Int64Array::from(vec![value]))]).unwrap()
}

pub fn barrier(id: u64) -> Barrier {
    Barrier {
        id: CheckpointId(id),
        timestamp: 0,
        kind: CheckpointKind::Checkpoint,
        format: SnapshotFormat::Native,
        target: format!("chk-{id}"),
        full: false,
    }
}

fn vertex(journal: &Journal) -> Vertex {
    let node = |id: u128, name: &str| Node {
        id: OperatorId(id),
        name: name.into(),
        details: Vec::new(),
        output: schema(),
        changelog: Changelog::InsertOnly,
        state: Vec::new(),
        factory: NodeFactory::Operator(Arc::new(Writer { name: name.into(), journal: journal.clone() })),
        parallelism: None,
    };
    Vertex { id: VertexId(0), name: "a → b".into(), nodes: vec![node(1, "a"), node(2, "b")], parallelism: 1 }
}

/// The channel behind the task.
struct Witness(Journal);

impl ChannelSender for Witness {
    fn send(&mut self, element: Element) -> std::result::Result<Sent, ChannelClosed> {
        self.0.write(match element {
            Element::Batch(batch) => format!("out: {} rows", batch.num_rows()),
            Element::Watermark(watermark) if watermark == Watermark::MAX => "out: end watermark".into(),
            Element::Watermark(watermark) if watermark == Watermark::MIN => "out: lowest watermark".into(),
            Element::Watermark(watermark) => format!("out: watermark {}", watermark.0),
            Element::Barrier(barrier) => format!("out: barrier {}", barrier.id),
            Element::CancelBarrier(id) => format!("out: cancel {id}"),
            other => format!("out: {other:?}"),
        });
        Ok(Sent::default())
    }
}

/// Passes rows on and writes everything down, late ones too: a row's value is its time. The value 13 fails, 14 panics.
#[derive(Clone)]
struct Writer {
    name: String,
    journal: Journal,
}

impl Writer {
    fn write(&self, what: &str) {
        self.journal.write(format!("{}: {what}", self.name));
    }
}

impl OperatorFactory for Writer {
    fn create(&self, _subtask: &SubtaskInfo) -> Result<Box<dyn Operator>> {
        Ok(Box::new(self.clone()))
    }
}

impl Operator for Writer {
    fn process(
        &mut self,
        input: usize,
        batch: RecordBatch,
        context: &mut OperatorContext,
        output: &mut dyn Output,
    ) -> Result<()> {
        if input > 0 {
            self.write(&format!("input {input}"));
        }
        let values = arrow::array::AsArray::as_primitive::<arrow::datatypes::Int64Type>(batch.column(0)).values();
        for late in values.iter().filter(|value| **value <= context.watermark.0) {
            self.write(&format!("late {late}"));
        }
        assert!(!values.contains(&14), "fourteen");
        if values.contains(&13) {
            return Err(Error::new(Code::Evaluation, "thirteen"));
        }
        output.emit(batch)
    }

    fn on_watermark(&mut self, watermark: Watermark, _: &mut OperatorContext, _: &mut dyn Output) -> Result<()> {
        self.write(if watermark == Watermark::MAX { "end watermark" } else { "watermark" });
        Ok(())
    }

    fn before_barrier(&mut self, _: &Barrier, _: &mut OperatorContext, output: &mut dyn Output) -> Result<()> {
        self.write("before barrier");
        output.emit(batch(0))
    }

    fn snapshot_lists(&mut self, _: &Barrier) -> Result<BTreeMap<String, ListState>> {
        self.write("snapshot");
        let list = ListState { mode: ListMode::Split, items: vec![self.name.clone().into_bytes()] };
        Ok(BTreeMap::from([("name".to_owned(), list)]))
    }

    fn checkpoint_completed(&mut self, id: CheckpointId, _: &mut OperatorContext) -> Result<()> {
        self.write(&format!("completed {id}"));
        if id == CheckpointId(99) { Err(Error::new(Code::SinkFailed, "ninety-nine")) } else { Ok(()) }
    }

    fn finish(&mut self, _: &mut OperatorContext, output: &mut dyn Output) -> Result<()> {
        self.write("finish");
        output.emit(batch(1))
    }
}
