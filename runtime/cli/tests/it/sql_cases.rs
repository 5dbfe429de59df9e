//! Every file of `e2e/sql` and the examples' own tests, in every variant; one test a file.

use std::fs;

use streamkeeper_cli::harness::{Suite, Variant, check_all};

use crate::example::root;

#[test]
fn every_sql_case_gives_the_same_rows_in_every_variant() {
    let mut files: Vec<_> = fs::read_dir(root().join("e2e/sql"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.to_str().unwrap().ends_with(".test.yaml"))
        .collect();
    files.sort();
    assert!(files.len() >= 4);
    let mut failures = Vec::new();
    for file in files {
        let suite = Suite::read(&file).unwrap();
        let cases: Vec<_> = suite.cases.iter().collect();
        let verdicts = check_all(&suite, &cases, &Variant::all()).unwrap_or_else(|e| panic!("{}: {e}", file.display()));
        for verdict in verdicts {
            if let Some(rows) = verdict.failure {
                failures.push(format!("{} `{}` ({}):\n{rows}", file.display(), verdict.case, verdict.variant));
            }
        }
    }
    assert!(failures.is_empty(), "{} runs fail:\n{}", failures.len(), failures.join("\n\n"));
}
