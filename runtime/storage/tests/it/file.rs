//! What only files have: links, temporary files, permissions.

use std::{
    fs::{self, File},
    os::unix::fs::MetadataExt,
    time::{Duration, SystemTime},
};

use bytes::Bytes;
use streamkeeper_storage::{FileStorage, PutMode, Storage};
use streamkeeper_types::Code;
use tempfile::TempDir;

#[test]
fn leaves_no_temporary_file_and_lists_none() {
    let scratch = TempDir::new().unwrap();
    let storage = FileStorage::new(scratch.path()).unwrap();
    for mode in [PutMode::Create, PutMode::Create, PutMode::Overwrite] {
        let _ = storage.put("a/b", Bytes::from_static(b"x"), mode).unwrap();
    }
    assert_eq!(fs::read_dir(scratch.path().join(".tmp")).unwrap().count(), 0);
    fs::write(scratch.path().join(".tmp/half"), "half").unwrap();
    assert_eq!(storage.list("").unwrap().len(), 1);
}

#[test]
fn torn_temporary_files_are_removed_at_a_start_when_no_writer_can_be_at_them_any_more() {
    let scratch = TempDir::new().unwrap();
    drop(FileStorage::new(scratch.path()).unwrap());
    let temporary = |name: &str, age: Duration| {
        let path = scratch.path().join(".tmp").join(name);
        File::create(&path).unwrap().set_modified(SystemTime::now() - age).unwrap();
        path
    };
    let hour = Duration::from_secs(3600);
    let (young, old) = (temporary("young", hour), temporary("old", 25 * hour));
    let storage = FileStorage::new(scratch.path()).unwrap();
    assert!(young.exists() && !old.exists());
    assert_eq!(storage.list("").unwrap(), []);
}

#[test]
fn a_local_file_that_is_missing_is_named() {
    let scratch = TempDir::new().unwrap();
    let storage = FileStorage::new(scratch.path().join("storage")).unwrap();
    let error = storage.put_file("shared/1", &scratch.path().join("1.sst"), PutMode::Create).unwrap_err();
    assert!(error.to_string().contains("1.sst"), "{error}");
    assert_eq!(storage.list("").unwrap(), []);
}

#[test]
fn a_local_file_is_linked_where_the_file_system_can() {
    let scratch = TempDir::new().unwrap();
    let storage = FileStorage::new(scratch.path().join("storage")).unwrap();
    let local = scratch.path().join("1.sst");
    fs::write(&local, "x").unwrap();
    let _ = storage.put_file("shared/1", &local, PutMode::Create).unwrap();
    assert_eq!(
        fs::metadata(&local).unwrap().ino(),
        fs::metadata(scratch.path().join("storage/shared/1")).unwrap().ino()
    );
}

#[test]
fn the_last_object_takes_its_folder_with_it() {
    let scratch = TempDir::new().unwrap();
    let storage = FileStorage::new(scratch.path()).unwrap();
    for path in ["chk-1/a", "chk-1/b"] {
        let _ = storage.put(path, Bytes::new(), PutMode::Create).unwrap();
    }
    storage.delete("chk-1/a").unwrap();
    assert!(scratch.path().join("chk-1").exists());
    storage.delete("chk-1/b").unwrap();
    assert!(!scratch.path().join("chk-1").exists());
    assert!(scratch.path().exists());
}

#[test]
fn a_folder_that_cannot_be_made_names_itself() {
    let scratch = TempDir::new().unwrap();
    fs::write(scratch.path().join("taken"), "a file").unwrap();
    let error = FileStorage::new(scratch.path().join("taken/storage")).unwrap_err();
    assert!(matches!(error.code, Code::Storage | Code::NotWritable), "{error}");
    assert!(error.cause.contains("taken"), "{error}");
}
