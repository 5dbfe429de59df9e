//! Handles of old subtasks to the state of a new one.

use std::{
    path::Path,
    sync::{Arc, atomic::AtomicI64},
};

use serde::Serialize;
use streamkeeper_storage::Storage;
use streamkeeper_types::{
    Code, Error, FileRef, KeyGroupRange, Result,
    snapshot::{FieldSchema, KeyedHandle, StateFormat, TableHandle, TableSchema},
};

use crate::{
    Backend, ColdSource, DroppedState, KeyEncoder, KeyRows, KeyedOptions, KeyedState, OpenCold, RestoreStep,
    SCHEMA_VERSION, TableSpec,
    snapshot::{CanonicalRows, StateObject, fetch, fetch_to_file, read_canonical},
};

pub(crate) fn open(
    backend: &dyn Backend,
    options: KeyedOptions,
    specs: Arc<[TableSpec]>,
    handles: &[KeyedHandle],
    storage: &dyn Storage,
) -> Result<KeyedState> {
    let ours: Vec<(&KeyedHandle, KeyGroupRange)> = handles
        .iter()
        .map(|handle| (handle, handle.range.intersect(&options.range)))
        .filter(|(_, visible)| !visible.is_empty())
        .collect();
    ours.iter().try_for_each(|(handle, _)| migrations(handle, &specs, options.dropped).map(drop))?;

    let clock = Arc::new(AtomicI64::new(options.now));
    let sources: Vec<Vec<ColdSource<'_>>> = specs.iter().map(|spec| cold_sources(&ours, spec)).collect();
    let wants_cold = sources.iter().any(|sources| !sources.is_empty());
    let dir = options.work_dir.join("db");
    let request = OpenCold { tables: &specs, range: options.range, dir: &dir, sources, storage, clock: clock.clone() };
    let opened = backend.open_cold(&request)?;
    if opened.is_none() && wants_cold {
        return Err(Error::new(
            Code::StateIncompatible,
            format!("the snapshot holds files of RocksDB, which the {} backend cannot read", backend.name()),
        )
        .way_out("change the backend by way of a canonical savepoint"));
    }
    let cold = opened.as_ref().map(|opened| opened.store.clone());
    let mut state = KeyedState::assemble(options, specs, cold, clock, backend);
    match opened {
        Some(opened) => {
            state.known = opened.known.into_iter().collect();
            state.restored_by = opened.steps;
            let restored = state.tables.iter_mut().zip(&state.restored_by);
            restored
                .filter(|(_, step)| **step != RestoreStep::Empty)
                .for_each(|(table, _)| table.begin_with_cold_rows());
        }
        None => state.restored_by = vec![RestoreStep::Empty; state.tables.len()],
    }
    for (handle, visible) in &ours {
        load(&mut state, handle, *visible, storage)?;
    }
    state.tables.iter_mut().try_for_each(crate::Table::discover_prefixes)?;
    take_lineage(&mut state, &ours);
    Ok(state)
}

/// If our state is that of one old subtask in our backend's own format, the next checkpoint may build upon it; else it
/// is a base, which still refers to files taken over as they are.
fn take_lineage(state: &mut KeyedState, ours: &[(&KeyedHandle, KeyGroupRange)]) {
    if ours.is_empty() {
        return;
    }
    let own_format = state.confirmed.format;
    if let [(handle, _)] = ours
        && handle.range == state.range()
        && handle.format == own_format
        && handle.tables.len() == state.tables.len()
        && handle
            .tables
            .iter()
            .zip(state.specs.iter())
            .all(|(table, spec)| table.name == spec.name() && table.schema == spec.schema())
        && handle.files().all(|file| file.scope == streamkeeper_types::FileScope::Shared)
    {
        state.confirmed = (*handle).clone();
        return;
    }
    state.known.retain(|_, file| file.scope == streamkeeper_types::FileScope::Shared);
    state.tables.iter_mut().for_each(crate::Table::lose_changes);
}

fn cold_sources<'a>(ours: &[(&'a KeyedHandle, KeyGroupRange)], spec: &TableSpec) -> Vec<ColdSource<'a>> {
    let of_table = |(handle, visible): &(&'a KeyedHandle, KeyGroupRange)| {
        let table = handle.tables.iter().find(|table| table.name == spec.name())?;
        (!table.base.is_empty()).then_some(ColdSource { files: &table.base, visible: *visible })
    };
    ours.iter().filter(|(handle, _)| handle.format == StateFormat::Rocksdb).filter_map(of_table).collect()
}

/// Everything of a handle but the files that the cold store took over.
fn load(state: &mut KeyedState, handle: &KeyedHandle, visible: KeyGroupRange, storage: &dyn Storage) -> Result<()> {
    for table in &handle.tables {
        for base in &table.base {
            let visible = visible.intersect(&base.visible);
            match handle.format {
                StateFormat::Rocksdb => {}
                StateFormat::Columns => load_object(state, &base.file, visible, storage)?,
                StateFormat::Parquet => load_canonical(state, table, &base.file, visible, storage)?,
            }
        }
    }
    handle.deltas.iter().try_for_each(|delta| load_object(state, delta, visible, storage))
}

fn load_object(state: &mut KeyedState, file: &FileRef, visible: KeyGroupRange, storage: &dyn Storage) -> Result<()> {
    let named = |error: Error| error.at(format!("state file `{}`", file.path));
    let object = StateObject::read(&fetch(storage, file)?).map_err(named)?;
    let specs = state.specs.clone();
    for (name, schema) in object.tables() {
        if let Some(spec) = specs.iter().find(|spec| spec.name() == name) {
            check_schema(name, schema, &spec.schema(), Reading::ByPosition, DroppedState::Refuse).map_err(named)?;
        }
    }
    object
        .for_each_batch(|name, batch| {
            let Some(number) = specs.iter().position(|spec| spec.name() == name) else { return Ok(()) };
            state.tables[number].load(batch, visible)?;
            state.tables[number].maintain()
        })
        .map_err(named)
}

fn load_canonical(
    state: &mut KeyedState,
    table: &TableHandle,
    file: &FileRef,
    visible: KeyGroupRange,
    storage: &dyn Storage,
) -> Result<()> {
    let Some(number) = state.specs.iter().position(|spec| spec.name() == table.name) else { return Ok(()) };
    if keeps_nothing(&table.schema, &state.specs[number].schema()) {
        return Ok(());
    }
    let local = state.options.work_dir.join("savepoint.parquet");
    fetch_to_file(storage, file, &local)?;
    let loaded = load_parquet(state, number, &local, visible);
    std::fs::remove_file(&local).map_err(|error| Error::io(Code::NotWritable, local.display(), &error))?;
    loaded.map_err(|error| error.at(format!("state file `{}`", file.path)))
}

fn load_parquet(state: &mut KeyedState, number: usize, local: &Path, visible: KeyGroupRange) -> Result<()> {
    let spec = state.specs[number].clone();
    let mut encoder = KeyEncoder::new(spec.key().clone(), state.options.max_parallelism);
    let mut keys = KeyRows::new();
    let table = &mut state.tables[number];
    read_canonical(local, |batch| {
        let rows = CanonicalRows::new(batch, &spec)?;
        encoder.encode(&rows.keys, batch.num_rows(), &mut keys)?;
        table.load_canonical(&keys, &rows, visible)?;
        table.maintain()
    })
}

/// How a table's stored rows find their columns.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Reading {
    ByPosition,
    ByName,
}

/// What becomes of one table of a snapshot whose columns are not those that the operator declares.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Migration {
    /// The name of the table within the operator.
    pub table: String,
    /// Columns that the snapshot does not have: they start empty.
    pub added: Vec<String>,
    /// Columns that the operator does not have any more: they are dropped.
    pub removed: Vec<String>,
}

/// How the tables of `handle` become those that an operator declares: one entry for each that changes. Pure, so that a
/// plan and the restore itself cannot differ.
///
/// # Errors
/// `STATE_INCOMPATIBLE` if they do not fit, or if something would be dropped although `dropped` refuses it.
pub fn migrations(handle: &KeyedHandle, specs: &[TableSpec], dropped: DroppedState) -> Result<Vec<Migration>> {
    let reading = if handle.format == StateFormat::Parquet { Reading::ByName } else { Reading::ByPosition };
    let mut changed = Vec::new();
    for table in &handle.tables {
        match specs.iter().find(|spec| spec.name() == table.name) {
            Some(spec) => {
                let declared = spec.schema();
                check_schema(&table.name, &table.schema, &declared, reading, dropped)?;
                let rows_with_ttl = handle.format == StateFormat::Rocksdb && !table.base.is_empty();
                if rows_with_ttl && table.schema.ttl != spec.ttl().is_some() {
                    return Err(incompatible(&table.name, "TTL was switched on or off")
                        .way_out("change TTL by way of a canonical savepoint"));
                }
                let added = without(&declared.values, &table.schema.values);
                let removed = without(&table.schema.values, &declared.values);
                if !added.is_empty() || !removed.is_empty() {
                    changed.push(Migration { table: table.name.clone(), added, removed });
                }
            }
            None if dropped == DroppedState::Allow => {
                let removed = table.schema.values.iter().map(|field| field.name.clone()).collect();
                changed.push(Migration { table: table.name.clone(), added: Vec::new(), removed });
            }
            None => {
                return Err(incompatible(&table.name, "the job does not have this table any more")
                    .way_out("agree to drop it with --allow-dropped-state, or restore into the job that has it"));
            }
        }
    }
    Ok(changed)
}

/// Names of the columns that `others` does not have.
fn without(fields: &[FieldSchema], others: &[FieldSchema]) -> Vec<String> {
    let is_missing = |field: &&FieldSchema| !others.iter().any(|other| other.name == field.name);
    fields.iter().filter(is_missing).map(|field| field.name.clone()).collect()
}

/// Whether a row would keep nothing but its key: all its columns were dropped by consent. Such rows begin anew, since
/// what they stood for is gone.
fn keeps_nothing(stored: &TableSchema, declared: &TableSchema) -> bool {
    !stored.values.is_empty() && without(&stored.values, &declared.values).len() == stored.values.len()
}

fn check_schema(
    name: &str,
    stored: &TableSchema,
    declared: &TableSchema,
    reading: Reading,
    dropped: DroppedState,
) -> Result<()> {
    if stored.version != SCHEMA_VERSION {
        let cause = format!("state table {name} has version {} of the state format", stored.version);
        return Err(Error::new(Code::SnapshotForeign, cause).way_out("use the program version that wrote it"));
    }
    let same_key = stored.key == declared.key && stored.prefix == declared.prefix && stored.hashed == declared.hashed;
    if !same_key {
        let keys = |fields: &[FieldSchema]| fields.iter().map(text).collect::<Vec<_>>().join(", ");
        let cause = format!("its key was ({}) and is ({}) now", keys(&stored.key), keys(&declared.key));
        return Err(incompatible(name, &cause));
    }
    let stored_as = |field: &FieldSchema| stored.values.iter().find(|other| other.name == field.name);
    if let Some((field, other)) = declared
        .values
        .iter()
        .filter_map(|field| Some((field, stored_as(field)?)))
        .find(|(field, other)| field.data_type != other.data_type)
    {
        let cause = format!("column {} was {} and is {} now", field.name, other.data_type, field.data_type);
        return Err(incompatible(name, &cause));
    }
    let names = |fields: Vec<&FieldSchema>| fields.iter().map(|field| text(field)).collect::<Vec<_>>().join(", ");
    let added: Vec<_> = declared.values.iter().filter(|field| stored_as(field).is_none()).collect();
    let removed: Vec<_> = stored.values.iter().filter(|field| !declared.values.contains(field)).collect();
    if reading == Reading::ByName {
        if removed.is_empty() || dropped == DroppedState::Allow {
            return Ok(());
        }
        return Err(incompatible(name, &format!("the job does not have these columns any more: {}", names(removed)))
            .way_out("agree to drop them with --allow-dropped-state, or restore into the job that has them"));
    }
    if !added.is_empty() || !removed.is_empty() {
        let mut cause = Vec::new();
        cause.extend((!added.is_empty()).then(|| format!("new columns: {}", names(added))));
        cause.extend((!removed.is_empty()).then(|| format!("columns that are gone: {}", names(removed))));
        return Err(incompatible(name, &cause.join("; "))
            .way_out("only a canonical savepoint can be restored with other columns"));
    }
    if stored.values != declared.values {
        return Err(incompatible(name, "its columns have another order"));
    }
    Ok(())
}

fn text(field: &FieldSchema) -> String {
    format!("{} {}", field.name, field.data_type)
}

fn incompatible(table: &str, cause: &str) -> Error {
    Error::new(Code::StateIncompatible, format!("state table {table} does not fit the job: {cause}"))
}
