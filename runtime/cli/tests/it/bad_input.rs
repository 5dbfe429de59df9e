//! Whatever a person gets wrong: one clear error with a code and a way out, an exit code, nothing lost, no panic.

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::Path,
    process::{Command, Output},
};

use crate::example::{BINARY, Example, assert_success};

/// Runs the binary; the error must carry `code` and `fragment`, and nothing may panic.
fn refuses(arguments: &[&str], code: &str, fragment: &str) {
    let output = Command::new(BINARY).args(arguments).output().unwrap();
    check_refusal(&output, code, fragment);
}

fn check_refusal(output: &Output, code: &str, fragment: &str) {
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success(), "succeeded; expected {code}");
    assert!(!stderr.contains("panicked"), "{stderr}");
    assert!(stderr.contains(code), "expected {code} in: {stderr}");
    assert!(stderr.contains(fragment), "expected `{fragment}` in: {stderr}");
}

fn job(folder: &Path, sql: &str) -> String {
    let path = folder.join("job.yaml");
    let indented: String = sql.lines().map(|line| format!("    {line}\n")).collect();
    let text = format!(
        "apiVersion: streamkeeper.dev/v1alpha1\nkind: StreamJob\nmetadata:\n  name: bad\nspec:\n  parallelism: 1\n  sql: |\n{indented}"
    );
    fs::write(&path, text).unwrap();
    path.to_str().unwrap().to_owned()
}

#[test]
fn files_and_yaml() {
    let folder = tempfile::tempdir().unwrap();
    let file = |text: &str| {
        let path = folder.path().join("x.yaml");
        fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    refuses(&["run", "/nowhere/job.yaml"], "FILE_UNREADABLE", "/nowhere/job.yaml");
    refuses(&["plan", &file("kind: [")], "JOB_INVALID", "line");
    refuses(&["plan", &file("kind: ConfigMap\napiVersion: v1\nmetadata:\n  name: x\n")], "JOB_INVALID", "no StreamJob");
    let misspelt =
        "apiVersion: streamkeeper.dev/v1alpha1\nkind: StreamJob\nmetadata: {name: x}\nspec: {paralelism: 2, sql: x}\n";
    refuses(&["plan", &file(misspelt)], "JOB_INVALID", "parallelism");
    let both = "apiVersion: streamkeeper.dev/v1alpha1\nkind: StreamJob\nmetadata: {name: x}\nspec: {sql: x, program: {image: y}}\n";
    refuses(&["plan", &file(both)], "JOB_INVALID", "sql");
}

#[test]
fn sql_errors_name_their_place() {
    let folder = tempfile::tempdir().unwrap();
    let source = "CREATE TABLE t (a INT) WITH ('connector' = 'datagen', 'number-of-rows' = '1');\n";
    let sink = "CREATE TABLE o (a INT) WITH ('connector' = 'blackhole');\n";
    let plan = |sql: &str, code: &str, fragment: &str| refuses(&["plan", &job(folder.path(), sql)], code, fragment);
    plan("SELEC 1", "SQL_SYNTAX", "spec.sql: line 1, column 1");
    plan(&format!("{source}{sink}INSERT INTO o SELECT b FROM t"), "SQL_INVALID", "line 3,");
    plan(&format!("{source}{sink}INSERT INTO nowhere SELECT a FROM t"), "SQL_INVALID", "nowhere");
    plan(&format!("{source}{sink}INSERT INTO o SELECT a FROM t ORDER BY a"), "SQL_UNSUPPORTED", "line 3,");
    plan(&source.replace("number-of-rows", "number-of-row"), "OPTION_INVALID", "number-of-rows");
    plan(&source.replace("datagen", "datagem"), "OPTION_INVALID", "datagen");
    plan(source, "SQL_INVALID", "INSERT");
}

#[test]
fn a_missing_input_and_a_folder_that_cannot_be_written() {
    let folder = tempfile::tempdir().unwrap();
    let sql = |path: &str, out: &str| {
        format!(
            "CREATE TABLE t (line STRING) WITH ('connector' = 'filesystem', 'path' = '{path}', 'format' = 'raw');\n\
             CREATE TABLE o (line STRING) WITH ('connector' = 'filesystem', 'path' = '{out}', 'format' = 'raw');\n\
             INSERT INTO o SELECT line FROM t;"
        )
    };
    refuses(&["run", "--quiet", &job(folder.path(), &sql("missing.log", "out"))], "FILE_UNREADABLE", "missing.log");
    fs::write(folder.path().join("in.log"), "a\nb\n").unwrap();
    // A file where a folder should be stops root too, whom permissions do not.
    fs::write(folder.path().join("taken"), "").unwrap();
    refuses(&["run", "--quiet", &job(folder.path(), &sql("in.log", "taken/out"))], "NOT_WRITABLE", "taken");
    // No retry makes these either: the job ends at once and says why.
    std::os::unix::fs::symlink("loop", folder.path().join("loop")).unwrap();
    for out in ["loop/out", &format!("{}/out", "long".repeat(100)), "/proc/out"] {
        refuses(&["run", "--quiet", &job(folder.path(), &sql("in.log", out))], "NOT_WRITABLE", "out");
    }
    let path = job(folder.path(), &sql("in.log", "out"));
    refuses(
        &["run", "--quiet", &path, "--storage", folder.path().join("taken/state").to_str().unwrap()],
        "NOT_WRITABLE",
        "taken",
    );
    assert_success(&Command::new(BINARY).args(["run", "--quiet", &path]).output().unwrap());
}

#[test]
fn bad_records_fail_the_job_with_their_place() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("in.csv"), "1\n2\nthree\n4\n").unwrap();
    let sql = "CREATE TABLE t (a INT) WITH ('connector' = 'filesystem', 'path' = 'in.csv', 'format' = 'csv');\n\
               CREATE TABLE o (a INT) WITH ('connector' = 'filesystem', 'path' = 'out', 'format' = 'csv');\n\
               INSERT INTO o SELECT a FROM t;";
    let path = job(folder.path(), sql);
    refuses(&["run", "--quiet", &path], "RECORD_INVALID", "three");
    assert_eq!(crate::example::rows_below(&folder.path().join("out")), [""; 0]);
}

#[test]
fn files_that_are_torn_or_of_another_format_end_the_job_at_once() {
    let folder = tempfile::tempdir().unwrap();
    for (name, format) in [("in.gz", "raw"), ("in.parquet", "parquet")] {
        fs::write(folder.path().join(name), b"\x1f\x8b\x08\x00PAR1 and then nothing").unwrap();
        let sql = format!(
            "CREATE TABLE t (a STRING) WITH ('connector' = 'filesystem', 'path' = '{name}', 'format' = '{format}');\n\
             CREATE TABLE o (a STRING) WITH ('connector' = 'filesystem', 'path' = 'out', 'format' = 'csv');\n\
             INSERT INTO o SELECT a FROM t;"
        );
        refuses(&["run", "--quiet", &job(folder.path(), &sql)], "FILE_CORRUPT", name);
        assert_eq!(crate::example::rows_below(&folder.path().join("out")), [""; 0]);
    }
}

#[test]
fn a_torn_manifest_is_named_and_nothing_older_is_taken() {
    let example = Example::new(1);
    example.finish(&[]);
    let state = example.folder.path().join(".streamkeeper/default/api-hits");
    let manifest = newest_manifest(&state);
    // A finished job only says so; the file decides when its state is wanted again.
    let restore = manifest.parent().unwrap().to_str().unwrap().to_owned();
    let whole = fs::read(&manifest).unwrap();
    make_writable(&manifest);
    fs::write(&manifest, &whole[..whole.len() / 2]).unwrap();
    let storage = example.folder.path().join("other");
    let storage = storage.to_str().unwrap();
    let output = example.run(&["--restore", &restore, "--storage", storage]).output().unwrap();
    check_refusal(&output, "SNAPSHOT_CORRUPT", "_metadata");
    fs::write(&manifest, b"{\"version\": 999}").unwrap();
    let output = example.run(&["--restore", &restore, "--storage", storage]).output().unwrap();
    check_refusal(&output, "SNAPSHOT_FOREIGN", "_metadata");
}

#[test]
fn state_of_another_query_is_refused_and_kept() {
    let example = Example::new(1);
    example.finish(&[]);
    let state = example.folder.path().join(".streamkeeper/default/api-hits");
    let snapshot = newest_manifest(&state).parent().unwrap().to_str().unwrap().to_owned();
    example.edit_job(
        "SELECT window_start, path, COUNT(*) AS hits",
        "SELECT window_start, ts_path AS path, COUNT(*) AS hits",
    );
    example.edit_job("TABLE access_log, DESCRIPTOR", "TABLE other, DESCRIPTOR");
    example.edit_job("GROUP BY window_start, window_end, path", "GROUP BY window_start, window_end, ts_path");
    example.edit_job(
        "    INSERT INTO api_hits",
        "    CREATE TEMPORARY VIEW other AS SELECT ts, UPPER(path) AS ts_path FROM access_log;\n    INSERT INTO api_hits",
    );
    let storage = example.folder.path().join("other");
    let arguments = ["--restore", &snapshot, "--storage", storage.to_str().unwrap()];
    check_refusal(&example.run(&arguments).output().unwrap(), "STATE_INCOMPATIBLE", "allow-dropped-state");
}

/// The newest `_metadata` below a job's folder.
fn newest_manifest(state: &Path) -> std::path::PathBuf {
    let mut manifests: Vec<_> = fs::read_dir(state)
        .unwrap()
        .map(|entry| entry.unwrap().path().join("_metadata"))
        .filter(|path| path.exists())
        .collect();
    manifests.sort_by_key(|path| fs::metadata(path).unwrap().modified().unwrap());
    manifests.pop().expect("a finished job has a checkpoint")
}

fn make_writable(path: &Path) {
    let mut permissions = fs::metadata(path).unwrap().permissions();
    permissions.set_mode(0o644);
    fs::set_permissions(path, permissions).unwrap();
}
