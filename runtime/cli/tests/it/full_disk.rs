//! A disk without space is one clear error, and once there is space the same command ends with the right rows.

use std::{
    collections::BTreeSet,
    fs::{self, File},
    path::{Path, PathBuf},
    process::{Command, Output},
};

use crate::{
    example::{BINARY, assert_success, root, rows_below},
    tiny_disk::TinyDisk,
};

const ROWS: usize = 80_000;
/// With this rate a run takes four seconds, so that checkpoints of each second lie in it.
const SLOW: &str = ", 'scan.rate-limit' = '20000'";

/// A job that keeps each row once, by a key that makes its state as long as wanted.
struct Job {
    folder: tempfile::TempDir,
    storage: PathBuf,
    output: PathBuf,
    key: &'static str,
}

impl Job {
    /// Everything on a large disk.
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("in.csv"), rows().join("\n")).unwrap();
        let (storage, output) = (folder.path().join("state"), folder.path().join("out"));
        Self { folder, storage, output, key: "n" }
    }

    fn run(&self, source_options: &str) -> Output {
        let (storage, output, key) = (self.storage.display(), self.output.display(), self.key);
        let text = format!(
            "apiVersion: streamkeeper.dev/v1alpha1
kind: StreamJob
metadata: {{name: full}}
spec:
  parallelism: 2
  checkpoint: {{interval: 1s, storage: 'file://{storage}', tolerableFailures: 1}}
  state: {{backend: rocksdb, memoryPercent: 10}}
  sql: |
    CREATE TABLE t (n BIGINT, text STRING) WITH ('connector' = 'filesystem', 'path' = 'in.csv', 'format' = 'csv',
      'csv.quoted-line-breaks' = 'refuse'{source_options});
    CREATE TABLE o (n BIGINT, text STRING) WITH ('connector' = 'filesystem', 'path' = '{output}', 'format' = 'csv');
    CREATE TEMPORARY VIEW keyed AS SELECT n, text, {key} AS k FROM t;
    INSERT INTO o SELECT n, text FROM (
      SELECT *, ROW_NUMBER() OVER (PARTITION BY k ORDER BY PROCTIME()) AS r FROM keyed) WHERE r = 1;
"
        );
        let path = self.folder.path().join("job.yaml");
        fs::write(&path, text).unwrap();
        Command::new(BINARY).args(["run", "--quiet", "--memory", "128MiB"]).arg(path).output().unwrap()
    }

    /// The run ends with a full disk at `place`; what is committed is whole rows, none twice.
    fn fails(&self, source_options: &str, place: &str) {
        let output = self.run(source_options);
        let text = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(3), "{text}");
        assert!(text.contains("[DISK_FULL]") && text.contains(place) && text.contains("free some space"), "{text}");
        assert!(!text.contains("panicked"), "{text}");
        let committed = rows_below(&self.output);
        let (expected, distinct) = (BTreeSet::from_iter(rows()), BTreeSet::from_iter(committed.clone()));
        assert_eq!(committed.len(), distinct.len(), "rows are committed twice");
        assert!(distinct.is_subset(&expected), "rows are torn: {:?}", distinct.difference(&expected).next());
    }

    fn finishes(&self) {
        assert_success(&self.run(""));
        let mut expected = rows();
        expected.sort();
        assert!(rows_below(&self.output) == expected);
    }
}

fn rows() -> Vec<String> {
    (0..ROWS).map(|n| format!("{n},{n:x<40}")).collect()
}

#[test]
fn full_checkpoint_storage_ends_the_job_after_the_tolerated_failures_and_loses_nothing() {
    let Some(mut disk) = TinyDisk::new("900k") else { return };
    let job = Job { storage: disk.path().join("state"), ..Job::new() };
    job.fails(SLOW, "more than 1 checkpoints failed in a row");
    disk.grow("200m");
    job.finishes();
}

#[test]
fn checkpoint_storage_without_space_for_its_first_file_is_named() {
    let Some(disk) = TinyDisk::new("4k") else { return };
    let job = Job { storage: disk.path().join("state"), ..Job::new() };
    job.fails("", disk.path().join("state").to_str().unwrap());
}

#[test]
fn a_full_disk_below_the_sink_commits_no_part_of_a_checkpoint() {
    let Some(mut disk) = TinyDisk::new("2m") else { return };
    let job = Job { output: disk.path().join("out"), ..Job::new() };
    job.fails(SLOW, disk.path().join("out").to_str().unwrap());
    disk.grow("200m");
    job.finishes();
}

#[test]
fn a_full_disk_below_the_working_state_is_named_and_checkpoints_elsewhere_stay_good() {
    let Some(mut disk) = TinyDisk::new("1m") else { return };
    let job = Job { key: "CONCAT(REPEAT('x', 400), CAST(n AS STRING))", ..Job::new() };
    fs::create_dir(&job.storage).unwrap();
    std::os::unix::fs::symlink(disk.path(), job.storage.join(".work")).unwrap();
    job.fails(SLOW, job.storage.join(".work").to_str().unwrap());
    assert!(disk.is_used());
    disk.grow("400m");
    job.finishes();
}

#[test]
fn standard_output_on_a_full_disk_is_an_error_too() {
    let full = File::options().write(true).open(Path::new("/dev/full")).unwrap();
    let output =
        Command::new(BINARY).arg("plan").arg(root().join("examples/api-hits.yaml")).stdout(full).output().unwrap();
    let text = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(3), "{text}");
    assert!(text.contains("[DISK_FULL]") && text.contains("standard output"), "{text}");
}
