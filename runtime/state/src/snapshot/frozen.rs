//! What was frozen at a cut, on its way to checkpoint storage.

use std::{
    collections::HashMap,
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError},
};

use arrow::array::RecordBatch;
use streamkeeper_storage::Storage;
use streamkeeper_types::{
    Error, FileRef, KeyGroupRange, Result, hex,
    snapshot::{BaseFile, KeyedHandle, StateFormat, TableHandle},
};

use super::{CanonicalFile, Folder, Section, StateObject, Uploader};
use crate::{
    ColdCut, TableSpec,
    fold::{FoldJob, Kept},
    table::Gathered,
};

/// One subtask's keyed state at a cut. Shares nothing mutable with the running task (R39), apart from the fold that
/// either of them may do.
#[derive(Debug)]
pub struct FrozenState {
    pub(crate) folder: Folder,
    pub(crate) tables: Arc<[TableSpec]>,
    pub(crate) range: KeyGroupRange,
    pub(crate) work_dir: PathBuf,
    pub(crate) content: Content,
    /// Told to the task's state when the upload is done.
    pub(crate) outcome: Arc<Mutex<Option<Outcome>>>,
}

/// Batches of each table.
pub(crate) type TableBatches = Vec<Vec<RecordBatch>>;

#[derive(Debug)]
pub(crate) enum Content {
    /// Changes on top of a confirmed checkpoint's base and deltas.
    Delta { tables: Vec<Gathered>, earlier: KeyedHandle },
    /// All rows, by column.
    Columns(TableBatches),
    /// The cold store's files once the fold is in; those known need no upload.
    Files { fold: Arc<FoldJob>, known: HashMap<u64, FileRef> },
    /// All rows with typed columns.
    Canonical(TableBatches),
    /// All rows of the cold store once the fold is in.
    CanonicalView(Arc<FoldJob>),
}

/// What an upload came to.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub handle: KeyedHandle,
    /// Files of the cold store's base, by identity; `None` if the base is the earlier one.
    pub files: Option<HashMap<u64, FileRef>>,
}

impl FrozenState {
    /// Writes what the snapshot needs and is not there yet, and gives the handle for the manifest. Runs on an upload
    /// thread; an error declines the checkpoint and leaves the task as it is.
    ///
    /// # Errors
    /// Storage and disk errors.
    pub fn upload(self, storage: &dyn Storage) -> Result<KeyedHandle> {
        let uploader = Uploader { storage, folder: &self.folder, work_dir: &self.work_dir };
        let (handle, files) = match &self.content {
            Content::Delta { tables, earlier } => (self.delta(&uploader, tables, earlier)?, None),
            Content::Columns(batches) => (self.columns(&uploader, batches)?, None),
            Content::Files { fold, known } => match fold.take()? {
                Kept::Cut(cut) => {
                    let (handle, files) = self.files(&uploader, cut.as_ref(), known)?;
                    (handle, Some(files))
                }
                _ => return Err(Error::internal("a fold kept no files")),
            },
            Content::Canonical(batches) => (self.canonical(&uploader, batches)?, None),
            Content::CanonicalView(fold) => (self.canonical_view(&uploader, fold)?, None),
        };
        let outcome = Outcome { handle: handle.clone(), files };
        *self.outcome.lock().unwrap_or_else(PoisonError::into_inner) = Some(outcome);
        Ok(handle)
    }

    fn delta(&self, uploader: &Uploader<'_>, tables: &[Gathered], earlier: &KeyedHandle) -> Result<KeyedHandle> {
        let mut sections = Vec::new();
        for (number, gathered) in tables.iter().enumerate() {
            sections.extend(gathered.sections.iter().cloned());
            for batch in &gathered.batches {
                sections.push(Section::encode(number, batch)?);
            }
        }
        let mut handle = earlier.clone();
        if !sections.is_empty() {
            handle.deltas.push(uploader.object(&StateObject::new(self.schemas(), sections), "delta")?);
        }
        Ok(handle)
    }

    fn columns(&self, uploader: &Uploader<'_>, batches: &TableBatches) -> Result<KeyedHandle> {
        let table = |(number, (spec, batches)): (usize, (&TableSpec, &Vec<RecordBatch>))| {
            let encode = |batch| Section::encode(0, batch);
            let sections = batches.iter().map(encode).collect::<Result<Vec<_>>>()?;
            let rows = sections.iter().map(Section::rows).sum();
            if sections.is_empty() {
                return Ok(table_handle(&self.tables[number], Vec::new(), 0));
            }
            let object = StateObject::new(vec![(spec.name().to_owned(), spec.schema())], sections);
            let file = uploader.object(&object, "columns")?;
            Ok(table_handle(spec, vec![self.unordered(file)], rows))
        };
        let tables = self.tables.iter().zip(batches).enumerate().map(table).collect::<Result<_>>()?;
        Ok(self.handle(StateFormat::Columns, tables))
    }

    fn files(
        &self,
        uploader: &Uploader<'_>,
        cut: &dyn ColdCut,
        known: &HashMap<u64, FileRef>,
    ) -> Result<(KeyedHandle, HashMap<u64, FileRef>)> {
        let mut refs = HashMap::new();
        let mut tables = Vec::with_capacity(self.tables.len());
        for (number, spec) in self.tables.iter().enumerate() {
            let mut base = Vec::new();
            for local in cut.files(number) {
                let file = match known.get(&local.identity) {
                    Some(file) => file.clone(),
                    None => uploader.file(&local.path, "sst")?,
                };
                refs.insert(local.identity, file.clone());
                base.push(BaseFile {
                    file,
                    level: local.level,
                    smallest: hex::encode(&local.smallest),
                    largest: hex::encode(&local.largest),
                    smallest_seq: local.smallest_seq,
                    largest_seq: local.largest_seq,
                    visible: self.range,
                });
            }
            tables.push(table_handle(spec, base, 0));
        }
        Ok((self.handle(StateFormat::Rocksdb, tables), refs))
    }

    fn canonical(&self, uploader: &Uploader<'_>, batches: &TableBatches) -> Result<KeyedHandle> {
        let table = |(spec, batches): (&TableSpec, &Vec<RecordBatch>)| {
            self.canonical_file(uploader, spec, |out| batches.iter().try_for_each(|batch| out.write(batch)))
        };
        let tables = self.tables.iter().zip(batches).map(table).collect::<Result<_>>()?;
        Ok(self.handle(StateFormat::Parquet, tables))
    }

    fn canonical_view(&self, uploader: &Uploader<'_>, fold: &FoldJob) -> Result<KeyedHandle> {
        let Kept::View(view) = fold.take()? else {
            return Err(Error::internal("a fold kept no view"));
        };
        let table = |(number, spec): (usize, &TableSpec)| {
            self.canonical_file(uploader, spec, |out| out.write_view(view.as_ref(), number, spec, self.range))
        };
        let tables = self.tables.iter().enumerate().map(table).collect::<Result<_>>()?;
        Ok(self.handle(StateFormat::Parquet, tables))
    }

    fn canonical_file(
        &self,
        uploader: &Uploader<'_>,
        spec: &TableSpec,
        write: impl FnOnce(&mut CanonicalFile) -> Result<()>,
    ) -> Result<TableHandle> {
        let local = uploader.scratch("parquet");
        let mut out = CanonicalFile::create(&local, spec)?;
        write(&mut out)?;
        let rows = out.finish()?;
        let file = uploader.own_file(&local, "parquet")?;
        Ok(table_handle(spec, vec![self.unordered(file)], rows))
    }

    fn schemas(&self) -> Vec<(String, streamkeeper_types::snapshot::TableSchema)> {
        self.tables.iter().map(|spec| (spec.name().to_owned(), spec.schema())).collect()
    }

    fn handle(&self, format: StateFormat, tables: Vec<TableHandle>) -> KeyedHandle {
        KeyedHandle { range: self.range, format, tables, deltas: Vec::new() }
    }

    /// A base file without key order.
    fn unordered(&self, file: FileRef) -> BaseFile {
        BaseFile {
            file,
            level: 0,
            smallest: String::new(),
            largest: String::new(),
            smallest_seq: 0,
            largest_seq: 0,
            visible: self.range,
        }
    }
}

pub(crate) fn table_handle(spec: &TableSpec, base: Vec<BaseFile>, rows: u64) -> TableHandle {
    TableHandle { name: spec.name().to_owned(), alias: spec.alias.clone(), schema: spec.schema(), base, rows }
}
