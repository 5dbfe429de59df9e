//! The keyed state of one stateful operator in one subtask: its tables, and their snapshots.

use std::{
    collections::HashMap,
    fs,
    path::PathBuf,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicI64, Ordering},
    },
};

use streamkeeper_storage::Storage;
use streamkeeper_types::{
    CheckpointId, Code, Error, FileRef, KeyGroupRange, Millis, Result,
    snapshot::{KeyedHandle, StateFormat},
};

use crate::{
    Backend, ColdStore, Extent, FrozenState, KeyEncoder, MemoryBudget, RestoreStep, SnapshotFormat, SnapshotKind,
    SnapshotRequest, Table, TableSpec,
    fold::{FoldJob, Keep},
    snapshot::{Content, Folder, Outcome, canonical_batch, table_handle},
    table::BATCH_ROWS,
};

/// What a subtask's keyed state is opened with.
#[derive(Debug, Clone)]
pub struct KeyedOptions {
    /// Key groups that this subtask owns.
    pub range: KeyGroupRange,
    pub max_parallelism: u32,
    /// A folder of the local machine for this state alone; created if needed. What an earlier attempt left is removed.
    pub work_dir: PathBuf,
    /// `state.delta.fold-every`: deltas of confirmed checkpoints before the next one is a base.
    pub fold_every: u32,
    /// The clock at the start, in milliseconds since 1970.
    pub now: Millis,
    pub dropped: DroppedState,
}

/// What happens to state of a snapshot that the operator does not declare any more.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum DroppedState {
    /// `STATE_INCOMPATIBLE`.
    #[default]
    Refuse,
    /// It is forgotten: somebody agreed.
    Allow,
}

/// Keyed state of one operator in one subtask. Used by the task's thread alone; what is frozen goes elsewhere.
#[derive(Debug)]
pub struct KeyedState {
    pub(crate) options: KeyedOptions,
    pub(crate) specs: Arc<[TableSpec]>,
    pub(crate) tables: Vec<Table>,
    pub(crate) cold: Option<Arc<dyn ColdStore>>,
    pub(crate) clock: Arc<AtomicI64>,
    budget: Arc<MemoryBudget>,
    /// The last confirmed checkpoint: what the next may refer to.
    pub(crate) confirmed: KeyedHandle,
    /// Uploaded files of confirmed checkpoints, by identity of the local file.
    pub(crate) known: HashMap<u64, FileRef>,
    pub(crate) restored_by: Vec<RestoreStep>,
    pending: Vec<Pending>,
    fold: Option<Arc<FoldJob>>,
}

/// A checkpoint that is not confirmed yet.
#[derive(Debug)]
struct Pending {
    id: CheckpointId,
    /// The epoch that it ended, by table.
    epochs: Vec<u32>,
    outcome: Arc<Mutex<Option<Outcome>>>,
}

impl KeyedState {
    /// Opens the state: empty without `handles`, else with the rows of our key groups in them, whatever parallelism
    /// and format they were written with. `handles` are those of all old subtasks of the operator.
    ///
    /// # Errors
    /// `STATE_INCOMPATIBLE` if the tables do not fit, `SNAPSHOT_CORRUPT` if a file is missing or torn, storage and disk
    /// errors. Nothing outside `work_dir` was changed then.
    pub fn open(
        backend: &dyn Backend,
        options: KeyedOptions,
        specs: Vec<TableSpec>,
        handles: &[KeyedHandle],
        storage: &dyn Storage,
    ) -> Result<Self> {
        let io = |error: std::io::Error| Error::io(Code::NotWritable, options.work_dir.display(), &error);
        if options.work_dir.exists() {
            fs::remove_dir_all(&options.work_dir).map_err(io)?;
        }
        fs::create_dir_all(&options.work_dir).map_err(io)?;
        crate::restore::open(backend, options, specs.into(), handles, storage)
    }

    pub(crate) fn assemble(
        options: KeyedOptions,
        specs: Arc<[TableSpec]>,
        cold: Option<Arc<dyn ColdStore>>,
        clock: Arc<AtomicI64>,
        backend: &dyn Backend,
    ) -> Self {
        let table = |(number, spec): (usize, &TableSpec)| {
            let work_dir = options.work_dir.clone();
            Table::new(spec.clone(), number, options.range, cold.clone(), backend.budget(), options.now, work_dir)
        };
        let tables = specs.iter().enumerate().map(table).collect();
        let format = if cold.is_some() { StateFormat::Rocksdb } else { StateFormat::Columns };
        let empty = specs.iter().map(|spec| table_handle(spec, Vec::new(), 0)).collect();
        let confirmed = KeyedHandle { range: options.range, format, tables: empty, deltas: Vec::new() };
        Self {
            options,
            specs,
            tables,
            cold,
            clock,
            budget: backend.budget().clone(),
            confirmed,
            known: HashMap::new(),
            restored_by: Vec::new(),
            pending: Vec::new(),
            fold: None,
        }
    }

    #[must_use]
    pub fn range(&self) -> KeyGroupRange {
        self.options.range
    }

    /// The table declared as number `number`.
    ///
    /// # Panics
    /// If there is none: operators count their own tables.
    #[must_use]
    pub fn table(&self, number: usize) -> &Table {
        &self.tables[number]
    }

    /// As [`Self::table`].
    #[must_use]
    pub fn table_mut(&mut self, number: usize) -> &mut Table {
        &mut self.tables[number]
    }

    /// All tables in the order of declaration, to borrow several at once.
    #[must_use]
    pub fn tables_mut(&mut self) -> &mut [Table] {
        &mut self.tables
    }

    /// An encoder for the keys of table `number`.
    #[must_use]
    pub fn key_encoder(&self, number: usize) -> KeyEncoder {
        KeyEncoder::new(self.specs[number].key().clone(), self.options.max_parallelism)
    }

    /// How each table's base was restored.
    #[must_use]
    pub fn restored_by(&self) -> &[RestoreStep] {
        &self.restored_by
    }

    /// Sets the processing-time clock by which TTL is judged, in milliseconds since 1970.
    pub fn set_now(&mut self, now: Millis) {
        self.clock.store(now, Ordering::Relaxed);
        self.tables.iter_mut().for_each(|table| table.set_now(now));
    }

    /// To be called between batches; see [`Table::maintain`].
    ///
    /// # Errors
    /// As [`Table::maintain`].
    pub fn maintain(&mut self) -> Result<()> {
        self.tables.iter_mut().try_for_each(Table::maintain)
    }

    /// Bytes in memory and on the local disk.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        let cached: usize = self.tables.iter().map(Table::cached_bytes).sum();
        cached as u64 + self.cold.as_ref().map_or(0, |cold| cold.disk_bytes())
    }

    /// The synchronous part of a snapshot: copies what changed and goes on. Costs as much as there are changed rows;
    /// as all rows for savepoints of the memory backend.
    ///
    /// # Errors
    /// `INTERNAL`, or storage errors of an earlier fold; the task must fail then (S5).
    pub fn freeze(&mut self, request: &SnapshotRequest) -> Result<FrozenState> {
        let epochs = match request.kind {
            SnapshotKind::Checkpoint => self.tables.iter_mut().map(Table::close_epoch).collect(),
            SnapshotKind::Savepoint => Vec::new(),
        };
        let content = match (request.format, self.cold.clone()) {
            (SnapshotFormat::Native, _) if self.delta_suffices(request) => self.delta()?,
            (SnapshotFormat::Native, None) => {
                Content::Columns(self.tables.iter().map(Table::gather_all).collect::<Result<_>>()?)
            }
            (SnapshotFormat::Native, Some(cold)) => {
                let fold = self.fold(cold, Keep::Cut)?;
                let known = match (request.kind, request.extent) {
                    (SnapshotKind::Checkpoint, Extent::Incremental) => self.known.clone(),
                    _ => HashMap::new(),
                };
                Content::Files { fold, known }
            }
            (SnapshotFormat::Canonical, None) => Content::Canonical(self.canonical_batches()?),
            (SnapshotFormat::Canonical, Some(cold)) => Content::CanonicalView(self.fold(cold, Keep::View)?),
        };
        let outcome = Arc::new(Mutex::new(None));
        if request.kind == SnapshotKind::Checkpoint {
            self.pending.push(Pending { id: request.id, epochs, outcome: outcome.clone() });
        }
        Ok(FrozenState {
            folder: Folder::of(request),
            tables: self.specs.clone(),
            range: self.options.range,
            work_dir: self.options.work_dir.clone(),
            content,
            outcome,
        })
    }

    /// Checkpoint `id` completed: later ones may refer to its files and need not tell its changes. An id that is not
    /// known, as of a notification that came twice, changes nothing.
    ///
    /// # Errors
    /// `INTERNAL` if the checkpoint was never uploaded.
    pub fn confirmed(&mut self, id: CheckpointId) -> Result<()> {
        let Some(position) = self.pending.iter().position(|pending| pending.id == id) else { return Ok(()) };
        let pending = self.pending.remove(position);
        self.pending.retain(|other| other.id > id);
        let outcome = pending.outcome.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(outcome) = outcome else {
            return Err(Error::internal(format!("checkpoint {id} was confirmed before its upload ended")));
        };
        self.confirmed = outcome.handle;
        if let Some(files) = outcome.files {
            self.known = files;
        }
        for (table, epoch) in self.tables.iter_mut().zip(&pending.epochs) {
            table.confirm_epoch(*epoch);
        }
        Ok(())
    }

    /// Checkpoint `id` will not complete: the next one carries its changes too.
    pub fn aborted(&mut self, id: CheckpointId) {
        self.pending.retain(|pending| pending.id != id);
    }

    fn delta_suffices(&self, request: &SnapshotRequest) -> bool {
        request.kind == SnapshotKind::Checkpoint
            && request.extent == Extent::Incremental
            && self.confirmed.deltas.len() < self.options.fold_every as usize
            && self.tables.iter().all(Table::can_delta)
    }

    fn delta(&self) -> Result<Content> {
        let tables = self.tables.iter().map(Table::gather_changes).collect::<Result<_>>()?;
        Ok(Content::Delta { tables, earlier: self.confirmed.clone() })
    }

    /// Takes out what the cold store does not have yet. Until the fold is done, evictions wait for it or do it.
    fn fold(&mut self, cold: Arc<dyn ColdStore>, keep: Keep) -> Result<Arc<FoldJob>> {
        if let Some(earlier) = self.fold.take() {
            earlier.complete()?;
        }
        let rows = self.tables.iter_mut().map(Table::take_cold_dirty).collect();
        let fold = FoldJob::new(cold, rows, keep, &self.budget);
        self.tables.iter_mut().for_each(|table| table.wait_for(fold.clone()));
        self.fold = Some(fold.clone());
        Ok(fold)
    }

    fn canonical_batches(&self) -> Result<Vec<Vec<arrow::array::RecordBatch>>> {
        let batches = |table: &Table| {
            let slots = table.live_slots();
            slots.chunks(BATCH_ROWS).map(|slots| canonical_batch(table, slots)).collect::<Result<Vec<_>>>()
        };
        self.tables.iter().map(batches).collect()
    }
}
