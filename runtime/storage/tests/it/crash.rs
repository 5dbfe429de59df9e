//! Crash points, in a child process: this test binary again, running one ignored test.

use std::{env, fs, process::Command};

use bytes::Bytes;
use streamkeeper_storage::{FileStorage, PutMode, Storage, open};
use tempfile::TempDir;

use crate::kinds::{s3_service, s3_url};

/// URL or path of the storage.
const ROOT: &str = "STREAMKEEPER_CRASH_TEST_ROOT";

/// The child: writes three log records, one manifest, and deletes one record.
#[test]
#[ignore = "run by the tests below"]
fn child() {
    let Ok(root) = env::var(ROOT) else { return };
    let storage = open(&root, std::path::Path::new("/")).unwrap();
    for path in ["log/1/0", "log/1/1", "log/1/2", "chk-1/_metadata"] {
        let _ = storage.put(path, Bytes::from_static(b"x"), PutMode::Create).unwrap();
    }
    storage.delete("log/1/1").unwrap();
}

fn child_command(root: &str, variable: &str, value: &str) -> Command {
    let mut command = Command::new(env::current_exe().unwrap());
    command.args(["crash::child", "--exact", "--ignored"]).env(ROOT, root).env(variable, value);
    command
}

fn run_child(root: &TempDir, variable: &str, value: &str) -> bool {
    let root = root.path().join("s");
    child_command(root.to_str().unwrap(), variable, value).output().unwrap().status.success()
}

const POINTS: &str = "put-log-before\nput-log-after\nput-log-before\nput-log-after\nput-log-before\nput-log-after\n\
    put-metadata-before\nput-metadata-after\ndelete-log-before\ndelete-log-after\n";

#[test]
fn every_write_reports_a_point_before_and_after() {
    let root = TempDir::new().unwrap();
    let journal = root.path().join("points");
    assert!(run_child(&root, "STREAMKEEPER_CRASH_POINTS", journal.to_str().unwrap()));
    assert_eq!(fs::read_to_string(journal).unwrap(), POINTS);
}

#[test]
fn the_process_dies_at_the_asked_reach_with_exactly_the_writes_before_it() {
    for (at, survives) in [
        ("put-log-before:2", vec!["log/1/0"]),
        ("put-log-after:2", vec!["log/1/0", "log/1/1"]),
        ("put-metadata-before:1", vec!["log/1/0", "log/1/1", "log/1/2"]),
        ("delete-log-after:1", vec!["chk-1/_metadata", "log/1/0", "log/1/2"]),
    ] {
        let root = TempDir::new().unwrap();
        assert!(!run_child(&root, "STREAMKEEPER_CRASH_AT", at), "{at}");
        let left = FileStorage::new(root.path().join("s")).unwrap().list("").unwrap();
        assert_eq!(left.into_iter().map(|o| o.path).collect::<Vec<_>>(), survives, "{at}");
    }
}

#[test]
fn remote_writes_have_the_same_points() {
    let (service, scratch) = (s3_service(), TempDir::new().unwrap());
    let (url, journal) = (s3_url(service), scratch.path().join("points"));
    let mut whole = child_command(&url, "STREAMKEEPER_CRASH_POINTS", journal.to_str().unwrap());
    assert!(whole.envs(&service.variables).output().unwrap().status.success());
    assert_eq!(fs::read_to_string(journal).unwrap(), POINTS);
    let url = s3_url(service);
    let mut dying = child_command(&url, "STREAMKEEPER_CRASH_AT", "put-log-after:2");
    assert!(!dying.envs(&service.variables).output().unwrap().status.success());
    let left = crate::kinds::at(&url, &service.environment()).list("").unwrap();
    assert_eq!(left.into_iter().map(|o| o.path).collect::<Vec<_>>(), ["log/1/0", "log/1/1"]);
}
