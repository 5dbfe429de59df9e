//! Every file of `e2e/sql` and the examples' own tests, in every variant; one test a file.

use std::fs;

use streamkeeper_cli::harness::{Suite, Variant, check};

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
        for case in &suite.cases {
            for variant in Variant::all() {
                if let Err(error) = check(&suite, case, &variant) {
                    failures.push(format!("{} `{}` ({variant}):\n{error}", file.display(), case.name));
                }
            }
        }
    }
    assert!(failures.is_empty(), "{} runs fail:\n{}", failures.len(), failures.join("\n\n"));
}
