//! What each command prints and changes.

use std::{fs, process::Command};

use serde_json::Value;

use crate::example::{BINARY, Example, assert_success, root, rows_below};

fn stdout(command: &mut Command) -> String {
    let output = command.output().unwrap();
    assert_success(&output);
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn the_example_counts_every_line_and_ends_with_its_result() {
    let example = Example::new(1);
    let text = stdout(Command::new(BINARY).arg("run").arg(example.job()));
    assert!(example.result() == example.expected);
    let counted: u64 = example.result().iter().map(|row| row.rsplit(',').next().unwrap().parse::<u64>().unwrap()).sum();
    assert_eq!(counted, 10_000);
    assert!(text.contains("output/api-hits"), "{text}");
    assert!(text.contains("window_start,path,hits"), "the first lines are missing: {text}");
}

#[test]
fn a_finished_job_says_so_and_changes_nothing() {
    let example = Example::new(1);
    example.finish(&[]);
    let folder = example.folder.path().join("output/api-hits");
    let files = || {
        let mut names: Vec<_> = fs::read_dir(&folder)
            .unwrap()
            .map(|e| e.unwrap())
            .map(|e| (e.file_name(), e.metadata().unwrap().modified().unwrap()))
            .collect();
        names.sort();
        names
    };
    let before = files();
    for arguments in [&[][..], &["--parallelism", "3"]] {
        let text = stdout(Command::new(BINARY).arg("run").arg(example.job()).args(arguments));
        assert!(text.contains("finished"), "{text}");
    }
    example.edit_job("COUNT(*) AS hits", "COUNT(*) + 1 AS hits");
    let output = Command::new(BINARY).arg("run").arg(example.job()).output().unwrap();
    assert_success(&output);
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("the SQL has changed since") && text.contains("--discard-state"), "{text}");
    assert!(!String::from_utf8_lossy(&output.stderr).contains("no checkpoint yet"));
    assert_eq!(files(), before);
}

#[test]
fn plan_is_a_tree_json_or_dot() {
    let job = root().join("examples/api-hits.yaml");
    let plan = |format: &str| stdout(Command::new(BINARY).arg("plan").arg(&job).args(["--output", format]));
    let tree = plan("text");
    for part in ["access_log", "api_hits", "TUMBLE", "path", "insert-only"] {
        assert!(tree.contains(part), "{part} is missing in:\n{tree}");
    }
    let json: Value = serde_json::from_str(&plan("json")).unwrap();
    assert!(json["nodes"].as_array().unwrap().len() >= 3, "{json}");
    assert!(plan("dot").starts_with("digraph"));
    assert_eq!(tree, plan("text"), "planning twice gives the same plan");
}

#[test]
fn the_examples_own_tests_pass_and_a_wrong_expectation_fails() {
    let file = root().join("examples/api-hits.test.yaml");
    let text = stdout(Command::new(BINARY).arg("test").arg(&file));
    assert!(text.contains("ok") && !text.contains("FAILED"), "{text}");

    let folder = tempfile::tempdir().unwrap();
    fs::copy(root().join("examples/api-hits.yaml"), folder.path().join("api-hits.yaml")).unwrap();
    let wrong = fs::read_to_string(&file).unwrap().replace("/search,2", "/search,3");
    fs::write(folder.path().join("wrong.yaml"), wrong).unwrap();
    let output = Command::new(BINARY).arg("test").arg(folder.path().join("wrong.yaml")).output().unwrap();
    assert!(!output.status.success());
    assert!(String::from_utf8_lossy(&output.stderr).contains("TEST_FAILED"));
    assert!(String::from_utf8_lossy(&output.stdout).contains("/search,3"));
}

/// Interrupts a running job as Ctrl-C does, once it has read something.
fn interrupted(example: &Example, arguments: &[&str]) {
    let child = example.run(arguments).spawn().unwrap();
    let state = example.folder.path().join(".streamkeeper/default/api-hits");
    while !fs::read_dir(&state)
        .is_ok_and(|mut d| d.any(|e| e.unwrap().file_name().to_string_lossy().starts_with("chk-")))
    {
        std::thread::yield_now();
    }
    let pid = child.id().to_string();
    assert!(Command::new("kill").args(["-INT", &pid]).status().unwrap().success());
    assert_success(&child.wait_with_output().unwrap());
}

#[test]
fn ctrl_c_leaves_a_savepoint_that_sql_reads_and_any_parallelism_goes_on_from() {
    let example = Example::new(4);
    example.edit_job("'format' = 'raw'", "'format' = 'raw', 'scan.rate-limit' = '10000'");
    interrupted(&example, &["--savepoint", "friday"]);
    let state = example.folder.path().join(".streamkeeper/default/api-hits");
    let savepoint = state.join("savepoints/friday");
    let list = stdout(Command::new(BINARY).args(["state", "list"]).arg(&state));
    assert!(list.contains("stop savepoint"), "{list}");
    let tables = stdout(Command::new(BINARY).args(["state", "list"]).arg(&savepoint).args(["--output", "json"]));
    let tables: Value = serde_json::from_str(&tables).unwrap();
    let table = tables[0]["table"].as_str().unwrap();
    let sql = format!("SELECT COUNT(*) AS n FROM \"{table}\"");
    let rows =
        stdout(Command::new(BINARY).args(["state", "query"]).arg(&savepoint).arg(&sql).args(["--output", "json"]));
    assert!(serde_json::from_str::<Value>(&rows).unwrap()[0]["n"].as_u64().unwrap() > 0, "{rows}");
    let columns = |table: &Value| format!("{} {}", table["keys"], table["values"]);
    assert!(columns(&tables[0]).contains("path STRING") && columns(&tables[0]).contains("BIGINT"), "{tables}");
    // Positions of the source are a table too.
    let sql = "SELECT path, next_offset FROM source_access_log_splits";
    let rows = stdout(Command::new(BINARY).args(["state", "query"]).arg(&savepoint).args([sql, "--output", "json"]));
    let rows: Value = serde_json::from_str(&rows).unwrap();
    assert!(rows[0]["path"].as_str().unwrap().ends_with("access.log"), "{rows}");
    assert!(rows[0]["next_offset"].as_u64().unwrap() > 0, "{rows}");
    example.finish(&["--parallelism", "3"]);
}

#[test]
fn a_savepoint_starts_the_job_elsewhere_on_another_backend() {
    let example = Example::new(4);
    example.edit_job("'format' = 'raw'", "'format' = 'raw', 'scan.rate-limit' = '10000'");
    interrupted(&example, &["--savepoint", "move"]);
    let savepoint = example.folder.path().join(".streamkeeper/default/api-hits/savepoints/move");
    let elsewhere = example.folder.path().join("elsewhere");
    let arguments =
        ["--restore", savepoint.to_str().unwrap(), "--storage", elsewhere.to_str().unwrap(), "--backend", "memory"];
    example.finish(&arguments);
}

#[test]
fn state_is_never_forgotten_by_accident_but_on_purpose() {
    let example = Example::new(4);
    example.edit_job("'format' = 'raw'", "'format' = 'raw', 'scan.rate-limit' = '10000'");
    interrupted(&example, &[]);
    // Another query under the same name: its state has no place in the new one.
    example.edit_job("COUNT(*) AS hits", "CAST(COUNT(DISTINCT line) AS BIGINT) AS hits");
    example.edit_job("'scan.rate-limit' = '10000'", "'scan.rate-limit' = '10000000'");
    let refused = example.run(&[]).output().unwrap();
    if !refused.status.success() {
        assert!(String::from_utf8_lossy(&refused.stderr).contains("STATE_INCOMPATIBLE"));
    }
    let output = example.folder.path().join("output");
    fs::remove_dir_all(&output).unwrap();
    assert_success(&example.run(&["--discard-state"]).output().unwrap());
    let windows = example.expected.len();
    assert_eq!(rows_below(&output.join("api-hits")).len(), windows, "an empty start reads everything again");
}
