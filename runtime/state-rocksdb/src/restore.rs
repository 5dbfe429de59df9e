//! Base files of old subtasks to the database of a new one (runtime-rules.md §5.2).

mod fetch;
mod plan;

use std::{
    collections::HashMap,
    fs,
    ops::ControlFlow,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

use rocksdb::{ColumnFamilyDescriptor, DB, Options};
use streamkeeper_state::{OpenCold, OpenedCold, RestoreStep};
use streamkeeper_types::{Code, Error, FileRef, KeyGroupRange, Result};

use crate::{
    backend::Shared,
    cut::file_number,
    options::{self, Garbage, Partition},
    raw::{self, SstMeta},
    sst::SstFile,
    store::{Inner, Store, failed, family_name},
    view,
};
use fetch::Fetched;
use plan::{Plan, Source};

pub(crate) fn open(shared: &Shared, most_files: u64, request: &OpenCold<'_>) -> Result<OpenedCold> {
    let scratch = request.dir.with_extension("files");
    for dir in [request.dir, &scratch] {
        fs::create_dir_all(dir).map_err(|error| Error::io(Code::NotWritable, dir.display(), &error))?;
    }
    let plans = request.sources.iter().map(|sources| Plan::new(sources, request.range)).collect::<Result<Vec<_>>>()?;
    let fetched = fetch::all(request.storage, plans.iter().flat_map(Plan::files), &scratch)?;

    let bytes: u64 = plans.iter().flat_map(Plan::files).map(|file| file.size).sum();
    let partition = Partition::for_size(bytes, request.range, most_files);
    let families: Vec<Options> =
        (0..request.tables.len()).map(|table| family(shared, request, table, partition)).collect();
    import_direct(shared, request.dir, &families, &plans, &fetched)?;

    let descriptors = (0..request.tables.len())
        .map(|table| ColumnFamilyDescriptor::new(family_name(table), family(shared, request, table, partition)));
    let db = DB::open_cf_descriptors(&options::database(shared), request.dir, descriptors)
        .map_err(|error| failed("opening a database", &error))?;
    let inner = Inner::new(db, families, options::small_file(shared), scratch);
    for (table, plan) in plans.iter().enumerate() {
        for source in &plan.rewrite {
            rewrite(shared, request, table, &inner, source, &fetched)?;
        }
    }
    let known = known_files(&inner, request.dir, &fetched)?;
    let steps: Vec<RestoreStep> = plans.iter().map(|plan| plan.step).collect();
    if steps.iter().any(|step| *step != RestoreStep::Empty) {
        tracing::info!(?steps, bytes, files = fetched.len(), "state restored from RocksDB files");
    }
    Ok(OpenedCold { store: std::sync::Arc::new(Store::new(inner, most_files)), known, steps })
}

fn family(shared: &Shared, request: &OpenCold<'_>, table: usize, partition: Partition) -> Options {
    let spec = &request.tables[table];
    let range = (!request.sources[table].is_empty()).then_some(request.range);
    let garbage = Garbage { range, ttl: spec.ttl(), clock: request.clock.clone() };
    options::column_family(shared, spec, garbage, partition)
}

/// Steps (a) to (c): creates the column families whose files come in as they are.
fn import_direct(
    shared: &Shared,
    dir: &Path,
    families: &[Options],
    plans: &[Plan<'_>],
    fetched: &Fetched,
) -> Result<()> {
    if plans.iter().all(|plan| plan.direct.is_empty()) {
        return Ok(());
    }
    let db = DB::open(&options::database(shared), dir).map_err(|error| failed("opening a database", &error))?;
    for (table, (plan, options)) in plans.iter().zip(families).enumerate() {
        if plan.direct.is_empty() {
            continue;
        }
        let metas = plan.direct.iter().map(|file| meta(file, fetched)).collect::<Result<Vec<_>>>()?;
        raw::import(&db, &family_name(table), options, &metas)?;
    }
    Ok(())
}

fn meta(file: &plan::File<'_>, fetched: &Fetched) -> Result<SstMeta> {
    Ok(SstMeta {
        path: fetched.link(&file.base.file)?,
        level: file.base.level,
        smallest: file.smallest.clone(),
        largest: file.largest.clone(),
        smallest_seq: file.base.smallest_seq,
        largest_seq: file.base.largest_seq,
    })
}

/// Step (d): the visible rows of one old subtask, read from a database of its files alone and written anew.
fn rewrite(
    shared: &Shared,
    request: &OpenCold<'_>,
    table: usize,
    inner: &Inner,
    source: &Source<'_>,
    fetched: &Fetched,
) -> Result<()> {
    let dir = inner.scratch_path("old");
    let rewritten = read_apart(shared, request, table, source, fetched, &dir).and_then(|old| {
        let path = inner.scratch_path("sst");
        match write_visible(&old, source.visible, &inner.options[table], &path)? {
            0 => Ok(()),
            _ => inner.ingest(table, &path),
        }
    });
    // A failed restore removes the whole work folder later.
    if let Err(error) = fs::remove_dir_all(&dir) {
        tracing::debug!(path = %dir.display(), %error, "a temporary database could not be removed");
    }
    rewritten
}

fn read_apart(
    shared: &Shared,
    request: &OpenCold<'_>,
    table: usize,
    source: &Source<'_>,
    fetched: &Fetched,
    dir: &Path,
) -> Result<DB> {
    let quiet = || {
        let mut options = family(shared, request, table, Partition::No);
        options.set_disable_auto_compactions(true);
        options
    };
    let database = options::database(shared);
    let metas = source.files.iter().map(|file| meta(file, fetched)).collect::<Result<Vec<_>>>()?;
    let db = DB::open(&database, dir).map_err(|error| failed("opening a database", &error))?;
    raw::import(&db, &family_name(0), &quiet(), &metas)?;
    drop(db);
    DB::open_cf_descriptors(&database, dir, [ColumnFamilyDescriptor::new(family_name(0), quiet())])
        .map_err(|error| failed("opening a database", &error))
}

/// Writes the rows in the key groups to an SST file and gives their number; without any there is no file.
fn write_visible(old: &DB, visible: KeyGroupRange, options: &Options, path: &Path) -> Result<u64> {
    let family =
        old.cf_handle(&family_name(0)).ok_or_else(|| Error::internal("a column family that was just made is gone"))?;
    let (from, to) = group_bounds(visible);
    let mut bounds = options::bounded(&from, &to);
    bounds.fill_cache(false);
    let mut file = SstFile::create(options, path)?;
    let mut written = Ok(());
    view::scan(old, family, bounds, &from, &mut |key, value| {
        written = file.put(key, value);
        if written.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    })?;
    written?;
    let rows = file.rows();
    if rows > 0 {
        file.finish()?;
    }
    Ok(rows)
}

fn group_bounds(range: KeyGroupRange) -> (Vec<u8>, Vec<u8>) {
    let end = u16::try_from(range.end()).unwrap_or(u16::MAX);
    (range.start().to_be_bytes().to_vec(), end.to_be_bytes().to_vec())
}

/// Files of the database that are fetched ones, by file number. Compared by inode while both are sure to exist.
fn known_files(inner: &Inner, dir: &Path, fetched: &Fetched) -> Result<Vec<(u64, FileRef)>> {
    if fetched.len() == 0 {
        return Ok(Vec::new());
    }
    let by_inode: HashMap<u64, &FileRef> = fetched.inodes().collect();
    let live = inner.db.live_files().map_err(|error| failed("listing files", &error))?;
    let mut known = Vec::new();
    for file in live {
        let path: PathBuf = dir.join(file.name.trim_start_matches('/'));
        // A compaction may have removed it since the listing: then nobody asks for it either.
        let Ok(metadata) = fs::metadata(&path) else { continue };
        if let Some((file, number)) = by_inode.get(&metadata.ino()).copied().zip(file_number(&path)) {
            known.push((number, file.clone()));
        }
    }
    Ok(known)
}
