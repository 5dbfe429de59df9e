//! `streamkeeper test` with generated inputs and oracles, as users write them: what passes, and what a wrong one says.

use std::{fs, process::Command};

use crate::example::{BINARY, assert_success};

const FILE: &str = "sql: |
  CREATE TABLE t (k INT, v BIGINT) WITH ('connector' = 'filesystem', 'path' = 't', 'format' = 'csv');
  CREATE TABLE o (k INT, total BIGINT) WITH ('connector' = 'print');
  INSERT INTO o SELECT k, SUM(v) FROM t GROUP BY k;
cases:
  - name: sums
    generate:
      t: {rows: 50, columns: {k: {numbers: [1, 3]}, v: {numbers: [-5, 5]}}}
    oracle:
      o: SELECT k, SUM(v) FROM t GROUP BY k
";

/// Runs the file with a part of it replaced.
fn test(from: &str, to: &str) -> std::process::Output {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.test.yaml");
    assert!(from.is_empty() || FILE.matches(from).count() == 1, "{from}");
    let text = if from.is_empty() { FILE.to_owned() } else { FILE.replace(from, to) };
    fs::write(&path, text).unwrap();
    Command::new(BINARY).arg("test").arg(&path).output().unwrap()
}

fn refuses(from: &str, to: &str, code: &str, fragments: &[&str]) {
    let output = test(from, to);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success(), "{to} is accepted");
    assert!(stderr.contains(code) && !stderr.contains("panicked"), "{stderr}");
    for fragment in fragments {
        assert!(stderr.contains(fragment), "expected `{fragment}` in: {stderr}");
    }
}

#[test]
fn an_oracle_that_agrees_passes_and_one_that_differs_shows_the_rows() {
    assert_success(&test("", ""));
    let output = test("o: SELECT k, SUM(v) FROM t", "o: SELECT k, SUM(v) + 1 FROM t");
    let stdout = String::from_utf8_lossy(&output.stdout);
    assert!(!output.status.success() && stdout.contains("o (oracle): 3 rows expected, 3 came"), "{stdout}");
}

#[test]
fn a_wrong_oracle_is_named_with_what_it_may_read() {
    let oracle = "o: SELECT k, SUM(v) FROM t GROUP BY k";
    let tables = "t(k INT, v BIGINT)";
    refuses(oracle, "o: SELEC k", "SQL_INVALID", &["case `sums`", "oracle of `o`", tables]);
    refuses(oracle, "o: SELECT k, x FROM t", "SQL_INVALID", &["oracle of `o`", "x", tables]);
    refuses(oracle, "o: SELECT k FROM t", "SQL_INVALID", &["the query has 1 columns, the table 2"]);
    refuses(oracle, "o: CREATE TABLE u AS SELECT k, v FROM t", "SQL_INVALID", &["oracle of `o`", "DDL"]);
    refuses(oracle, "o: SELECT k, v / 0 FROM t", "SQL_INVALID", &["oracle of `o`", "ivide by zero"]);
    refuses(oracle, "nowhere: SELECT k, v FROM t", "JOB_INVALID", &["there is no table `nowhere`"]);
    refuses(oracle, "t: SELECT k, v FROM t", "JOB_INVALID", &["`t` is no table that the job inserts into"]);
}

#[test]
fn a_wrong_description_of_rows_is_named() {
    refuses("v: {numbers: [-5, 5]}", "w: {numbers: [-5, 5]}", "JOB_INVALID", &["generated table `t`", "`w`"]);
    refuses("[-5, 5]", "[-5, 5], skew: -1", "JOB_INVALID", &["column `v`", "skew"]);
    refuses("'csv')", "'csv', 'csv.escape-character' = '^')", "JOB_INVALID", &["csv.escape-character"]);
    refuses("    generate:", "    input: {t: ['1,2']}\n    generate:", "JOB_INVALID", &["both `input` and `generate`"]);
}
