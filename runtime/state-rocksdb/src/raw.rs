//! The parts of RocksDB's C interface that the safe binding does not have: file partitioner, export and import.

use std::{
    ffi::{CStr, CString, c_char},
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
    ptr,
};

use librocksdb_sys as ffi;
use rocksdb::{AsColumnFamilyRef, AsRawPtr, ColumnFamily, DB, Options};
use streamkeeper_types::{Code, Error, Result};

/// The comparator of every column family of ours, by RocksDB's name.
const COMPARATOR: &CStr = c"leveldb.BytewiseComparator";

/// What a column family knows of one of its files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SstMeta {
    pub path: PathBuf,
    pub level: u32,
    pub smallest: Vec<u8>,
    pub largest: Vec<u8>,
    pub smallest_seq: u64,
    pub largest_seq: u64,
}

/// Lets compaction end a file where the first `length` bytes of the key change.
pub(crate) fn partition_by_prefix(options: &mut Options, length: usize) {
    // SAFETY: the options are alive and ours alone; the setter copies the factory's shared pointer, so that the
    // factory object itself is destroyed here.
    unsafe {
        let factory = ffi::rocksdb_sst_partitioner_fixed_prefix_factory_create(length);
        ffi::rocksdb_options_set_sst_partitioner_factory(options.as_raw_ptr(), factory);
        ffi::rocksdb_sst_partitioner_factory_destroy(factory);
    }
}

/// Links the files of a column family into the new folder `dir` and tells what they are. The content of the column
/// family is exactly that of these files.
pub(crate) fn export(db: &DB, family: &ColumnFamily, dir: &Path) -> Result<Vec<SstMeta>> {
    let dir = c_path(dir)?;
    // SAFETY: database and column family are alive during the calls; each object that a call creates is destroyed once,
    // and an error leaves a null pointer, which is not used.
    unsafe {
        let checkpoint =
            checked("linking state files", |error| ffi::rocksdb_checkpoint_object_create(db.as_raw_ptr(), error))?;
        let exported = checked("linking state files", |error| {
            ffi::rocksdb_checkpoint_export_column_family(checkpoint, family.inner(), dir.as_ptr(), error)
        });
        ffi::rocksdb_checkpoint_object_destroy(checkpoint);
        let exported = exported?;
        let files = ffi::rocksdb_export_import_files_metadata_get_files(exported);
        let metas = (0..ffi::rocksdb_livefiles_count(files)).map(|index| read_meta(files, index)).collect();
        ffi::rocksdb_livefiles_destroy(files);
        ffi::rocksdb_export_import_files_metadata_destroy(exported);
        Ok(metas)
    }
}

/// Creates a column family of existing files, which are moved in by link. `files` must be consistent: below level 0,
/// no two files of a level overlap; at level 0 the one with higher sequence numbers is newer.
pub(crate) fn import(db: &DB, name: &str, options: &Options, files: &[SstMeta]) -> Result<()> {
    let name = CString::new(name).map_err(|_| Error::internal("a column family's name has a NUL"))?;
    let paths = files.iter().map(|file| split(&file.path)).collect::<Result<Vec<_>>>()?;
    // SAFETY: all pointers come from living objects. `livefiles_add` and `set_files` take over what they are given;
    // the rest is destroyed here once. The new handle is only a reference to the column family and is given back.
    unsafe {
        let list = ffi::rocksdb_livefiles_create();
        for (file, (dir, name)) in files.iter().zip(&paths) {
            ffi::rocksdb_livefiles_add(list, write_meta(file, dir, name));
        }
        let metadata = ffi::rocksdb_export_import_files_metadata_create();
        ffi::rocksdb_export_import_files_metadata_set_db_comparator_name(metadata, COMPARATOR.as_ptr());
        ffi::rocksdb_export_import_files_metadata_set_files(metadata, list);
        let import_options = ffi::rocksdb_import_column_family_options_create();
        ffi::rocksdb_import_column_family_options_set_move_files(import_options, 1);
        let imported = checked("importing state files", |error| {
            ffi::rocksdb_create_column_family_with_import(
                db.as_raw_ptr(),
                options.as_raw_ptr(),
                name.as_ptr(),
                import_options,
                metadata,
                error,
            )
        });
        ffi::rocksdb_import_column_family_options_destroy(import_options);
        ffi::rocksdb_export_import_files_metadata_destroy(metadata);
        ffi::rocksdb_column_family_handle_destroy(imported?);
    }
    Ok(())
}

/// Runs a call that reports errors through a pointer.
///
/// # Safety
/// `call` must follow RocksDB's convention: on an error it stores a text allocated by `malloc`, else it leaves null.
unsafe fn checked<T>(doing: &str, call: impl FnOnce(*mut *mut c_char) -> *mut T) -> Result<*mut T> {
    let mut error: *mut c_char = ptr::null_mut();
    let result = call(&raw mut error);
    if error.is_null() && !result.is_null() {
        return Ok(result);
    }
    if error.is_null() {
        return Err(Error::internal(format!("RocksDB gave nothing while {doing}")));
    }
    // SAFETY: a non-null error is a C string that we own.
    let text = unsafe {
        let text = CStr::from_ptr(error).to_string_lossy().into_owned();
        ffi::rocksdb_free(error.cast());
        text
    };
    if text.contains("No space left") {
        return Err(Error::disk_full(format!("{doing}: {text}")));
    }
    let code = if text.contains("Corruption") { Code::SnapshotCorrupt } else { Code::Storage };
    Err(Error::new(code, format!("RocksDB failed while {doing}: {text}")))
}

/// # Safety
/// `files` is alive and has an entry `index`.
unsafe fn read_meta(files: *const ffi::rocksdb_livefiles_t, index: i32) -> SstMeta {
    // SAFETY: the getters return pointers into the list, which are copied before it goes.
    unsafe {
        let dir = CStr::from_ptr(ffi::rocksdb_livefiles_directory(files, index)).to_bytes();
        let name = CStr::from_ptr(ffi::rocksdb_livefiles_name(files, index)).to_bytes();
        let name = name.strip_prefix(b"/").unwrap_or(name);
        let mut length = 0;
        let smallest = ffi::rocksdb_livefiles_smallestkey(files, index, &raw mut length);
        let smallest = std::slice::from_raw_parts(smallest.cast::<u8>(), length).to_vec();
        let largest = ffi::rocksdb_livefiles_largestkey(files, index, &raw mut length);
        let largest = std::slice::from_raw_parts(largest.cast::<u8>(), length).to_vec();
        SstMeta {
            path: Path::new(std::ffi::OsStr::from_bytes(dir)).join(std::ffi::OsStr::from_bytes(name)),
            level: u32::try_from(ffi::rocksdb_livefiles_level(files, index)).unwrap_or(0),
            smallest,
            largest,
            smallest_seq: ffi::rocksdb_livefiles_smallest_seqno(files, index),
            largest_seq: ffi::rocksdb_livefiles_largest_seqno(files, index),
        }
    }
}

/// A new list entry, which the caller hands over.
///
/// # Safety
/// None beyond the C interface's: all setters copy what they are given.
unsafe fn write_meta(file: &SstMeta, dir: &CStr, name: &CStr) -> *mut ffi::rocksdb_livefile_t {
    // SAFETY: strings are alive during the calls and copied.
    unsafe {
        let meta = ffi::rocksdb_livefile_create();
        ffi::rocksdb_livefile_set_directory(meta, dir.as_ptr());
        ffi::rocksdb_livefile_set_name(meta, name.as_ptr());
        ffi::rocksdb_livefile_set_level(meta, i32::try_from(file.level).unwrap_or(0));
        ffi::rocksdb_livefile_set_smallest_key(meta, file.smallest.as_ptr().cast(), file.smallest.len());
        ffi::rocksdb_livefile_set_largest_key(meta, file.largest.as_ptr().cast(), file.largest.len());
        ffi::rocksdb_livefile_set_smallest_seqno(meta, file.smallest_seq);
        ffi::rocksdb_livefile_set_largest_seqno(meta, file.largest_seq);
        meta
    }
}

fn c_path(path: &Path) -> Result<CString> {
    CString::new(path.as_os_str().as_bytes()).map_err(|_| Error::internal("a path has a NUL"))
}

/// Folder, and name with a leading slash, as RocksDB has them.
fn split(path: &Path) -> Result<(CString, CString)> {
    let (Some(dir), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(Error::internal("a state file has no name"));
    };
    let name = [b"/", name.as_bytes()].concat();
    Ok((c_path(dir)?, CString::new(name).map_err(|_| Error::internal("a path has a NUL"))?))
}
