//! What a task and a JobManager do with a connector, step by step and without threads.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    sync::Arc,
};

use arrow::{
    array::{Array, ArrayRef, RecordBatch},
    datatypes::{DataType, Field, Schema, SchemaRef},
    util::display::{ArrayFormatter, FormatOptions},
};
use streamkeeper_connectors::{SinkInput, TableDefinition, connector};
use streamkeeper_engine::{
    Changelog, ManualClock, Operator, OperatorContext, OperatorMetrics, Output, Polled, RestoredLists, SourceContext,
    SourceFactory, SourceReader, Split, SplitCoordinator, SplitRequest, SubtaskInfo,
};
use streamkeeper_protocol::{Barrier, CheckpointKind, SnapshotFormat};
use streamkeeper_types::{CheckpointId, OperatorId, Result, SubtaskId, VertexId, Watermark};

pub fn schema(columns: &[(&str, DataType)]) -> SchemaRef {
    let field = |(name, data_type): &(&str, DataType)| Field::new(*name, data_type.clone(), true);
    Arc::new(Schema::new(columns.iter().map(field).collect::<Vec<_>>()))
}

pub fn table(base: &Path, schema: SchemaRef, options: &[(&str, &str)]) -> TableDefinition {
    let mut all = BTreeMap::from([("connector".to_owned(), "filesystem".to_owned())]);
    all.extend(options.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())));
    TableDefinition {
        name: "t".to_owned(),
        job: "default/job".to_owned(),
        schema,
        options: all,
        partitioned_by: Vec::new(),
        primary_key: Vec::new(),
        base_dir: base.to_owned(),
        has_watermark: false,
    }
}

pub fn subtask(index: u32, parallelism: u32) -> SubtaskInfo {
    SubtaskInfo {
        operator: OperatorId(0x1234_5678_9abc_def0_1234_5678_9abc_def0),
        name: "t".to_owned(),
        subtask: SubtaskId { vertex: VertexId(0), index },
        parallelism,
        max_parallelism: 128,
    }
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

/// One row as text, columns joined by `|`, NULL as `∅`.
pub fn rows(batch: &RecordBatch) -> Vec<String> {
    let options = FormatOptions::default().with_null("∅");
    let columns: Vec<ArrayFormatter<'_>> =
        batch.columns().iter().map(|c| ArrayFormatter::try_new(c, &options).unwrap()).collect();
    let row = |row| columns.iter().map(|c| c.value(row).to_string()).collect::<Vec<_>>().join("|");
    (0..batch.num_rows()).map(row).collect()
}

/// A source with its readers and coordinator, at one parallelism.
pub struct Running {
    pub coordinator: Box<dyn SplitCoordinator>,
    pub readers: Vec<Box<dyn SourceReader>>,
    pub metrics: Arc<OperatorMetrics>,
    done: Vec<bool>,
}

/// What a checkpoint holds of a source.
#[derive(Clone)]
pub struct SourceCut {
    coordinator: Vec<u8>,
    splits: Vec<Split>,
    extra: Vec<Vec<u8>>,
}

pub fn source(table: &TableDefinition) -> Arc<dyn SourceFactory> {
    connector(&table.options["connector"]).unwrap().source(table).unwrap()
}

impl Running {
    pub fn start(source: &Arc<dyn SourceFactory>, parallelism: u32, batch_rows: usize) -> Result<Self> {
        let metrics = Arc::new(OperatorMetrics::default());
        let context = SourceContext { clock: Arc::new(ManualClock::new(0)), metrics: Arc::clone(&metrics), batch_rows };
        let readers = (0..parallelism).map(|index| source.reader(&subtask(index, parallelism), context.clone()));
        let mut coordinator = source.coordinator(parallelism)?;
        coordinator.reset(parallelism);
        let readers = readers.collect::<Result<Vec<_>>>()?;
        Ok(Self { coordinator, readers, metrics, done: vec![false; parallelism as usize] })
    }

    pub fn restore(
        source: &Arc<dyn SourceFactory>,
        parallelism: u32,
        batch_rows: usize,
        cut: &SourceCut,
    ) -> Result<Self> {
        let mut running = Self::start(source, parallelism, batch_rows)?;
        running.coordinator = source.coordinator(parallelism)?;
        running.coordinator.restore(&cut.coordinator)?;
        running.coordinator.reset(parallelism);
        for (index, reader) in running.readers.iter_mut().enumerate() {
            let ours = |number: usize| number % parallelism as usize == index;
            let mine = |(number, item): (usize, &Vec<u8>)| ours(number).then(|| item.clone());
            reader.restore_extra(&cut.extra.iter().enumerate().filter_map(mine).collect::<Vec<_>>())?;
            let splits = cut.splits.iter().enumerate().filter(|(n, _)| ours(*n)).map(|(_, s)| s.clone());
            reader.add_splits(splits.collect())?;
        }
        Ok(running)
    }

    /// One poll of one reader: its rows, or `None` if it has ended.
    pub fn step(&mut self, reader: usize) -> Result<Option<Vec<String>>> {
        if self.done[reader] {
            return Ok(None);
        }
        let polled = self.readers[reader].poll()?;
        self.report(reader)?;
        match polled {
            Polled::Batch { batch, .. } => return Ok(Some(rows(&batch))),
            Polled::NeedSplits => {
                for assignment in self.coordinator.on_request(SplitRequest { reader: reader as u32 })? {
                    self.done[reader] = assignment.no_more && assignment.splits.is_empty();
                    self.readers[reader].add_splits(assignment.splits)?;
                }
            }
            Polled::SplitFinished(_) | Polled::Wait(_) => {}
        }
        Ok(Some(Vec::new()))
    }

    /// What a task does between two polls.
    pub fn report(&mut self, reader: usize) -> Result<()> {
        match self.readers[reader].report() {
            Some(report) => self.coordinator.on_report(reader as u32, &report),
            None => Ok(()),
        }
    }

    /// Looks for new files; the readers get what is found. Returns how many splits that is.
    pub fn discover(&mut self) -> Result<usize> {
        let mut found = 0;
        for assignment in self.coordinator.discover(0)? {
            assert!(!assignment.no_more, "a monitored folder never ends");
            found += assignment.splits.len();
            self.readers[assignment.reader as usize].add_splits(assignment.splits)?;
        }
        Ok(found)
    }

    /// Reads everything, readers in turn.
    pub fn finish(&mut self) -> Result<Vec<String>> {
        let mut found = Vec::new();
        while !self.done.iter().all(|done| *done) {
            for reader in 0..self.readers.len() {
                found.extend(self.step(reader)?.unwrap_or_default());
            }
        }
        Ok(found)
    }

    pub fn cut(&mut self, id: u64) -> SourceCut {
        for reader in &mut self.readers {
            reader.before_barrier(&barrier(id)).unwrap();
        }
        SourceCut {
            coordinator: self.coordinator.snapshot().unwrap(),
            splits: self.readers.iter().flat_map(|reader| reader.snapshot()).collect(),
            extra: self.readers.iter().flat_map(|reader| reader.extra_state()).collect(),
        }
    }

    pub fn complete(&mut self, id: u64) {
        self.readers.iter_mut().for_each(|reader| reader.checkpoint_completed(CheckpointId(id)).unwrap());
    }
}

/// All rows of a table, read by one reader.
pub fn read_all(table: &TableDefinition) -> Result<Vec<String>> {
    Running::start(&source(table), 1, 1_000)?.finish()
}

/// The sink operators of a table, at one parallelism.
pub struct Sinks {
    operators: Vec<Box<dyn Operator>>,
    contexts: Vec<OperatorContext>,
}

struct Nowhere;

impl Output for Nowhere {
    fn emit(&mut self, _batch: RecordBatch) -> Result<()> {
        Ok(())
    }
}

pub fn sink_input(table: &TableDefinition, changelog: Changelog) -> SinkInput {
    SinkInput {
        schema: Arc::clone(&table.schema),
        changelog,
        primary_key: Vec::new(),
        operator: OperatorId(1),
        name: "sink".to_owned(),
    }
}

impl Sinks {
    /// Opens with what a checkpoint held: items are dealt out in turn.
    pub fn open(table: &TableDefinition, parallelism: u32, restored: &[Vec<u8>]) -> Result<Self> {
        let factory =
            connector(&table.options["connector"]).unwrap().sink(table, &sink_input(table, Changelog::InsertOnly))?;
        let mut sinks = Self { operators: Vec::new(), contexts: Vec::new() };
        for index in 0..parallelism {
            let mut context = OperatorContext {
                info: subtask(index, parallelism),
                state: None,
                watermark: Watermark::MIN,
                clock: Arc::new(ManualClock::new(0)),
                metrics: Arc::default(),
            };
            let mut operator = factory.create(&context.info)?;
            let ours = restored.iter().enumerate().filter(|(n, _)| n % parallelism as usize == index as usize);
            let items = ours.map(|(_, item)| item.clone()).collect();
            let lists = RestoredLists {
                from: (!restored.is_empty()).then_some(CheckpointId(1)),
                lists: BTreeMap::from([("committables".to_owned(), items)]),
            };
            operator.open(&lists, &mut context)?;
            sinks.operators.push(operator);
            sinks.contexts.push(context);
        }
        Ok(sinks)
    }

    pub fn write(&mut self, subtask: usize, batch: &RecordBatch) -> Result<()> {
        self.operators[subtask].process(0, batch.clone(), &mut self.contexts[subtask], &mut Nowhere)
    }

    /// The barrier passes all subtasks; the committables of the snapshot.
    pub fn cut(&mut self, barrier: &Barrier) -> Result<Vec<Vec<u8>>> {
        let mut items = Vec::new();
        for (operator, context) in self.operators.iter_mut().zip(&mut self.contexts) {
            operator.before_barrier(barrier, context, &mut Nowhere)?;
            items.extend(operator.snapshot_lists(barrier)?.remove("committables").unwrap().items);
        }
        Ok(items)
    }

    pub fn complete(&mut self, subtask: usize, id: u64) -> Result<()> {
        self.operators[subtask].checkpoint_completed(CheckpointId(id), &mut self.contexts[subtask])
    }

    pub fn complete_all(&mut self, id: u64) {
        (0..self.operators.len()).for_each(|subtask| self.complete(subtask, id).unwrap());
    }
}

/// Every file below a folder that is not hidden.
pub fn visible(folder: &Path) -> Vec<PathBuf> {
    files(folder, &|name| !name.starts_with('.'))
}

/// Every file below a folder.
pub fn everything(folder: &Path) -> Vec<PathBuf> {
    files(folder, &|_| true)
}

fn files(folder: &Path, keep: &dyn Fn(&str) -> bool) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).into_iter().flatten() {
        let entry = entry.unwrap();
        if !keep(&entry.file_name().to_string_lossy()) {
            continue;
        }
        if entry.path().is_dir() {
            found.extend(files(&entry.path(), keep));
        } else {
            found.push(entry.path());
        }
    }
    found.sort();
    found
}

/// Lines of all visible files, sorted.
pub fn lines(folder: &Path) -> Vec<String> {
    let text = |path: &PathBuf| fs::read_to_string(path).unwrap();
    let mut lines: Vec<String> =
        visible(folder).iter().flat_map(|p| text(p).lines().map(str::to_owned).collect::<Vec<_>>()).collect();
    lines.sort();
    lines
}

pub fn batch(columns: Vec<(&str, ArrayRef)>) -> RecordBatch {
    let fields = columns.iter().map(|(name, array)| Field::new(*name, array.data_type().clone(), true));
    let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
    RecordBatch::try_new(schema, columns.into_iter().map(|(_, array)| array).collect()).unwrap()
}
