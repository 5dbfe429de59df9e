//! A program that was edited between two runs, over the state that it has.

use std::{
    fs,
    path::Path,
    process::{Command, Output, Stdio},
};

use serde_json::Value;

use crate::{
    example::{BINARY, assert_success},
    scripted_server::{Scripted, says},
};

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

/// `plan --against` of the job, its exit code checked.
fn against(folder: &Path, place: &str, format: &str) -> String {
    let mut command = Command::new(BINARY);
    command.arg("plan").arg(folder.join("job.yaml")).args(["--against", place, "--output", format]);
    let output = command.output().unwrap();
    assert_success(&output);
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn a_plan_against_a_snapshot_or_a_running_job_shows_what_an_edit_keeps_and_drops() {
    let folder = stopped();
    let savepoints = folder.path().join(".streamkeeper/default/totals/savepoints");
    let savepoint = fs::read_dir(&savepoints).unwrap().next().unwrap().unwrap().path();
    let (path, name) = (savepoint.to_str().unwrap(), savepoint.file_name().unwrap().to_str().unwrap());
    let text = against(folder.path(), path, "text");
    assert!(text.contains("of default/totals") && text.contains("no state would be dropped"), "{text}");
    let kept = text.lines().filter(|line| line.trim_end().ends_with("kept")).count();
    assert!(kept >= 2 && !text.contains("migrated"), "positions of the source, and the groups: {text}");

    edit(folder.path(), "k, CAST(1 AS BIGINT), SUM(v)");
    let text = against(folder.path(), name, "text");
    let migrated = text.lines().find(|line| line.contains("migrated")).unwrap();
    assert!(migrated.contains("`SUM(bids.v)` starts empty, `COUNT(*)` is dropped"), "{text}");
    assert!(text.contains("kept") && text.contains("--allow-dropped-state"), "{text}");

    // A running job says where its newest snapshot lies.
    let last = serde_json::json!({
        "id": 2, "kind": "checkpoint", "state": "completed", "triggered_at": 0, "acknowledged": 1, "tasks": 1,
        "start_delay_us": 0, "alignment_us": 0, "sync_us": 0, "async_us": 0, "uploaded_bytes": 0, "full_bytes": 0,
        "location": format!("file://{path}"),
    });
    let view = serde_json::json!({
        "id": "default.totals", "namespace": "default", "name": "totals", "phase": "running", "parallelism": 1,
        "bounds": { "least": 1, "target": 1 }, "slots": 1, "max_parallelism": 128, "generation": 1, "started_at": 0,
        "restarts": 0, "vertices": [],
        "checkpoints": { "completed": 1, "failed": 0, "in_progress": 0, "last": last },
    });
    let server = Scripted::start([("GET /jobs/default.totals", vec![says(view)])]);
    let json: Value = serde_json::from_str(&against(folder.path(), &server.url(), "json")).unwrap();
    let restore = &json["restore"];
    assert_eq!(restore["changes"][0]["removed"][0], "COUNT(*)", "{json}");
    assert!(restore["dropsState"] == true && restore["location"] == path, "{json}");
    assert!(json["nodes"].as_array().is_some_and(|nodes| !nodes.is_empty()), "the dataflow is there too: {json}");

    let mut missing = Command::new(BINARY);
    let missing =
        missing.arg("plan").arg(folder.path().join("job.yaml")).args(["--against", "nowhere"]).output().unwrap();
    assert!(missing.status.code() == Some(1) && stderr(&missing).contains("FILE_UNREADABLE"), "{}", stderr(&missing));
}
