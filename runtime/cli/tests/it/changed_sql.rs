//! A program that was edited between two runs, over the state that it has.

use std::{
    fs,
    path::Path,
    process::{Command, Output, Stdio},
};

use serde_json::Value;

use crate::example::{BINARY, assert_success};

const JOB: &str = "apiVersion: streamkeeper.dev/v1alpha1
kind: StreamJob
metadata: {name: totals}
spec:
  parallelism: 1
  checkpoint: {interval: 1s}
  sql: |
    CREATE TABLE bids (k BIGINT, v BIGINT) WITH (
      'connector' = 'filesystem', 'path' = 'bids', 'format' = 'csv', 'scan.rate-limit' = '1000');
    CREATE TABLE totals (k BIGINT, n BIGINT, s BIGINT) WITH ('connector' = 'print', 'standard-error' = 'true');
    INSERT INTO totals SELECT k, COUNT(*), CAST(0 AS BIGINT) FROM bids GROUP BY k;
";
const QUERY: &str = "k, COUNT(*), CAST(0 AS BIGINT)";

/// A job that was stopped by Ctrl-C in the middle, with a savepoint.
fn stopped() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("bids")).unwrap();
    let rows: String = (0..4_000).map(|n| format!("{},{n}\n", n % 5)).collect();
    fs::write(folder.path().join("bids/0.csv"), rows).unwrap();
    fs::write(folder.path().join("job.yaml"), JOB).unwrap();
    let mut child = run(folder.path(), &[]).spawn().unwrap();
    let state = folder.path().join(".streamkeeper/default/totals");
    let is_checkpoint = |entry: fs::DirEntry| entry.file_name().to_string_lossy().starts_with("chk-");
    while !fs::read_dir(&state).is_ok_and(|mut entries| entries.any(|entry| is_checkpoint(entry.unwrap()))) {
        assert!(child.try_wait().unwrap().is_none(), "the job ended by itself");
        std::thread::yield_now();
    }
    assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
    let output = child.wait_with_output().unwrap();
    assert_success(&output);
    let text = String::from_utf8(output.stdout).unwrap();
    let savepoint = text.split_whitespace().find(|word| word.contains("savepoints/")).unwrap();
    // The path that is printed is one that works from here.
    assert_success(&Command::new(BINARY).args(["state", "list", savepoint]).output().unwrap());
    folder
}

fn run(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(BINARY);
    command.arg("run").arg(folder.join("job.yaml")).args(arguments);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn edit(folder: &Path, query: &str) {
    fs::write(folder.join("job.yaml"), JOB.replace(QUERY, query).replace("'1000'", "'1000000'")).unwrap();
}

fn plan(folder: &Path, format: &str) -> String {
    let output =
        Command::new(BINARY).arg("plan").arg(folder.join("job.yaml")).args(["--output", format]).output().unwrap();
    assert_success(&output);
    String::from_utf8(output.stdout).unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn a_removed_aggregate_is_dropped_only_with_consent_and_takes_back_no_row_that_never_was() {
    let folder = stopped();
    edit(folder.path(), "k, CAST(1 AS BIGINT), SUM(v)");
    let shown = plan(folder.path(), "text");
    assert!(shown.contains("`COUNT(*)` is gone") && shown.contains("--allow-dropped-state"), "{shown}");
    let refused = run(folder.path(), &[]).output().unwrap();
    assert_eq!(refused.status.code(), Some(1));
    assert!(stderr(&refused).contains("STATE_INCOMPATIBLE") && stderr(&refused).contains("COUNT(*)"));
    assert!(stderr(&refused).contains("--allow-dropped-state"));

    let agreed = run(folder.path(), &["--allow-dropped-state"]).output().unwrap();
    assert_success(&agreed);
    let text = stderr(&agreed);
    assert!(text.contains("`COUNT(*)` is gone") && text.contains("`SUM(bids.v)` is new"), "{text}");
    assert!(!text.contains("null") && !text.contains("NULL"), "{text}");
    let begun = text.lines().filter(|line| line.starts_with("+I[")).count();
    assert_eq!(begun, 5, "each group begins anew: {text}");
}

#[test]
fn an_added_aggregate_starts_empty_and_the_others_go_on() {
    let folder = stopped();
    edit(folder.path(), "k, COUNT(*), SUM(v)");
    let shown = plan(folder.path(), "text");
    assert!(shown.contains("`SUM(bids.v)` is new: it starts empty") && !shown.contains("--allow"), "{shown}");
    let json: Value = serde_json::from_str(&plan(folder.path(), "json")).unwrap();
    assert_eq!(json["restore"]["changes"][0]["added"][0], "SUM(bids.v)", "{json}");
    let output = run(folder.path(), &[]).output().unwrap();
    assert_success(&output);
    let text = stderr(&output);
    assert!(text.contains("`SUM(bids.v)` is new: it starts empty"), "{text}");
    assert!(!text.lines().any(|line| line.starts_with("+I[")), "all groups were there: {text}");
    let total: i64 = (0..4_000).filter(|n| n % 5 == 3).sum();
    let last = text.lines().rfind(|line| line.starts_with("+U[3,")).unwrap();
    let sum: i64 = last.trim_end_matches(']').rsplit(", ").next().unwrap().parse().unwrap();
    assert!(last.starts_with("+U[3, 800,") && 0 < sum && sum < total, "{last}, all of it: {total}");
    assert!(text.contains("busy") && text.contains("back-pressured"), "{text}");
}
