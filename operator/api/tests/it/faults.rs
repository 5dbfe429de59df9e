//! What a person is told about the form of a file.

use streamkeeper_api::{Fault, load};

fn job(spec: &str) -> String {
    format!("apiVersion: streamkeeper.dev/v1alpha1\nkind: StreamJob\nmetadata:\n  name: j\nspec:\n{spec}")
}

#[track_caller]
fn check(text: &str, expected: &[&str]) {
    let faults: Vec<String> = load(text).err().unwrap_or_default().iter().map(Fault::to_string).collect();
    assert_eq!(faults, expected);
}

#[test]
fn unreadable_yaml_is_refused_with_its_place() {
    check("spec:\n  a: [1\n  b: 2\n", &["line 3, column 4: unreadable YAML: did not find expected ',' or ']'"]);
    check("a: b: c\n", &["line 1, column 5: unreadable YAML: mapping values are not allowed in this context"]);
    check("a: *nowhere\n", &["line 1, column 4: unreadable YAML: unknown anchor"]);
}

#[test]
fn unknown_fields_are_refused_with_the_nearest_name() {
    check(&job("  paralelism: 2\n"), &["spec.paralelism: there is no such field (did you mean `parallelism`?)"]);
    check(
        &job("  checkpoint: {min-pause: 1s}\n"),
        &["spec.checkpoint.min-pause: there is no such field (did you mean `minPause`?)"],
    );
    check(
        &job("  state: {engine: rocksdb}\n"),
        &["spec.state.engine: there is no such field (known here: backend, memoryPercent)"],
    );
}

#[test]
fn wrong_types_are_refused_with_their_path() {
    check(&job("  parallelism: two\n"), &["spec.parallelism: the text `two` stands where a whole number belongs"]);
    check(&job("  parallelism: 1.5\n"), &["spec.parallelism: the number `1.5` stands where a whole number belongs"]);
    check(&job("  checkpoint: 10s\n"), &["spec.checkpoint: the text `10s` stands where a map of fields belongs"]);
    check(
        &job("  checkpoint: {interval: 10}\n"),
        &["spec.checkpoint.interval: the number `10` stands where a duration such as 10s or 1h30m belongs"],
    );
    check(
        &job("  config: {state.delta: true}\n"),
        &["spec.config.state.delta: `true` stands where a text belongs (put it in quotes)"],
    );
    check(&job("  secrets: [a, [b]]\n"), &["spec.secrets[1]: a list stands where a text belongs"]);
    check(&job("  suspend: maybe\n"), &["spec.suspend: the text `maybe` stands where true or false belongs"]);
}

#[test]
fn values_out_of_bounds_are_refused() {
    check(&job("  parallelism: 0\n"), &["spec.parallelism: 0 is out of bounds; it must lie between 1 and 32768"]);
    check(
        &job("  parallelism: 18446744073709551615\n"),
        &["spec.parallelism: 18446744073709551615 is out of bounds; it must lie between 1 and 32768"],
    );
    check(
        &job("  upgrade: {mode: lastcheckpoint}\n"),
        &["spec.upgrade.mode: `lastcheckpoint` is not among the allowed values (did you mean `lastCheckpoint`?)"],
    );
    check(
        &job("  checkpoint: {interval: 10min}\n"),
        &[
            "spec.checkpoint.interval: `10min` is no duration: units are ms, s, m and h; write for example 500ms, 10s, 5m or 1h30m",
        ],
    );
    check(
        &job("  checkpoint: {storage: /var/state}\n"),
        &[
            "spec.checkpoint.storage: `/var/state` is no storage address (write s3://…, gs://…, abfs://…, hdfs://… or file:///…; on a laptop leave checkpoint.storage out)",
        ],
    );
    check(&job("  sql: ''\n"), &["spec.sql: the text is empty"]);
    let long = "x".repeat(131_073);
    check(&job(&format!("  sql: {long}\n")), &["spec.sql: the text has 131073 characters; at most 131072 are allowed"]);
}

#[test]
fn missing_fields_are_named() {
    check(&job("  sqlFrom: {key: a}\n"), &["spec.sqlFrom.configMap: this field is missing"]);
    check(
        "apiVersion: streamkeeper.dev/v1alpha1\nkind: StreamJob\n",
        &["metadata.name: this field is missing", "spec: this field is missing"],
    );
}

#[test]
fn several_faults_come_at_once() {
    check(
        &job("  paralelism: 2\n  suspend: 1\n  health: {window: 1d}\n"),
        &[
            "spec.health.window: `1d` is no duration: units are ms, s, m and h; write for example 500ms, 10s, 5m or 1h30m",
            "spec.paralelism: there is no such field (did you mean `parallelism`?)",
            "spec.suspend: the number `1` stands where true or false belongs",
        ],
    );
}

#[test]
fn the_object_itself_must_be_one_of_ours() {
    check("- a\n", &["document: it is no object: `apiVersion`, `kind` and `metadata` are expected"]);
    check("a: 1\n", &["kind: this field is missing (write `kind: StreamJob`)"]);
    check(
        "apiVersion: streamkeeper.dev/v1\nkind: StreamJob\nmetadata: {name: j}\nspec: {sql: x}\n",
        &[
            "apiVersion: `streamkeeper.dev/v1` is no version of StreamJob (write `apiVersion: streamkeeper.dev/v1alpha1`)",
        ],
    );
    check(
        "apiVersion: streamkeeper.dev/v1alpha1\nkind: StreamJobs\n",
        &["kind: streamkeeper.dev has no kind `StreamJobs` (did you mean `StreamJob`?)"],
    );
    check(
        "apiVersion: streamkeeper.dev/v1alpha1\nkind: StreamJob\nmetadata: {name: My Job}\nspec: {sql: x}\nspecs: 1\n",
        &[
            "specs: there is no such field (did you mean `spec`?)",
            "metadata.name: `My Job` is no valid name (use lower-case letters, digits and `-`, with a letter or digit at both ends)",
        ],
    );
}

#[test]
fn faults_of_several_documents_say_where_they_are() {
    let text = format!("{}---\n{}", job("  sql: a\n"), job("  sql: 1\n"));
    check(
        &text,
        &["document 2 (StreamJob j): spec.sql: the number `1` stands where a text belongs (put it in quotes)"],
    );
    let twice = format!("{}---\n{}", job("  sql: a\n"), job("  sql: b\n"));
    check(&twice, &["file: StreamJob `j` stands in it twice"]);
}

#[test]
fn faults_become_one_error() {
    let faults = load(&job("  paralelism: 2\n  suspend: 1\n")).unwrap_err();
    assert_eq!(
        Fault::into_error(&faults).to_string(),
        "[JOB_INVALID] 2 faults\n  - spec.paralelism: there is no such field (did you mean `parallelism`?)\n  \
         - spec.suspend: the number `1` stands where true or false belongs"
    );
    assert_eq!(
        Fault::into_error(&faults[..1]).to_string(),
        "[JOB_INVALID] spec.paralelism: there is no such field\n  help: did you mean `parallelism`?"
    );
}

#[test]
fn a_file_without_a_job_says_what_one_looks_like() {
    let fault = load("apiVersion: v1\nkind: Namespace\n").unwrap().job(None).unwrap_err();
    assert_eq!(
        fault.to_string(),
        "file: there is no StreamJob in it (a StreamJob begins with `apiVersion: streamkeeper.dev/v1alpha1` and `kind: StreamJob`)"
    );
}
