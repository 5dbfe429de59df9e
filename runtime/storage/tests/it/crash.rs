//! Crash points, in a child process: this test binary again, running one ignored test.

use std::{env, fs, process::Command};

use bytes::Bytes;
use streamkeeper_storage::{FileStorage, PutMode, Storage};
use tempfile::TempDir;

const ROOT: &str = "STREAMKEEPER_CRASH_TEST_ROOT";

/// The child: writes three log records, one manifest, and deletes one record.
#[test]
#[ignore = "run by the tests below"]
fn child() {
    let Ok(root) = env::var(ROOT) else { return };
    let storage = FileStorage::new(root).unwrap();
    for path in ["log/1/0", "log/1/1", "log/1/2", "chk-1/_metadata"] {
        let _ = storage.put(path, Bytes::from_static(b"x"), PutMode::Create).unwrap();
    }
    storage.delete("log/1/1").unwrap();
}

fn run_child(root: &TempDir, variable: &str, value: &str) -> bool {
    let mut command = Command::new(env::current_exe().unwrap());
    command.args(["crash::child", "--exact", "--ignored"]).env(ROOT, root.path().join("s")).env(variable, value);
    command.output().unwrap().status.success()
}

#[test]
fn every_write_reports_a_point_before_and_after() {
    let root = TempDir::new().unwrap();
    let journal = root.path().join("points");
    assert!(run_child(&root, "STREAMKEEPER_CRASH_POINTS", journal.to_str().unwrap()));
    let expected = "put-log-before\nput-log-after\n".repeat(3)
        + "put-metadata-before\nput-metadata-after\ndelete-log-before\ndelete-log-after\n";
    assert_eq!(fs::read_to_string(journal).unwrap(), expected);
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
