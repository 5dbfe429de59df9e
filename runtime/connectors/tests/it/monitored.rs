//! Folders that grow: each file is read once, as it was when it was found.

use std::{fs, path::Path};

use arrow::datatypes::DataType;
use streamkeeper_connectors::TableDefinition;
use streamkeeper_engine::Polled;
use streamkeeper_types::Code;

use crate::harness::{Running, schema, source, table};

const LONG: DataType = DataType::Int64;

fn monitored(folder: &Path, more: &[(&str, &str)]) -> TableDefinition {
    let options = [("path", "."), ("format", "csv"), ("source.monitor-interval", "1s")];
    table(folder, schema(&[("n", LONG)]), &[&options, more].concat())
}

/// A running table of one reader that has read `a.csv` with the row 1.
fn with_one_file(folder: &Path, more: &[(&str, &str)]) -> Running {
    fs::write(folder.join("a.csv"), "1\n").unwrap();
    let mut running = Running::start(&source(&monitored(folder, more)), 1, 100).unwrap();
    assert_eq!(read(&mut running), ["1"]);
    running
}

/// What there is for the reader now, which then waits.
fn read(running: &mut Running) -> Vec<String> {
    (0..5).flat_map(|_| running.step(0).unwrap().unwrap()).collect()
}

#[test]
fn a_monitored_folder_gives_each_new_file_once_over_a_restore() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
    write("a.csv", "1\n");
    let options = [("path", "."), ("format", "csv"), ("source.monitor-interval", "1s")];
    let table = table(folder.path(), schema(&[("n", LONG)]), &options);
    let source = source(&table);
    let mut running = Running::start(&source, 1, 100).unwrap();
    let mut found: Vec<String> = (0..5).flat_map(|_| running.step(0).unwrap().unwrap()).collect();
    assert_eq!(found, ["1"]);
    write("b.csv", "2\n");
    let cut = running.cut(1);
    let mut running = Running::restore(&source, 1, 100, &cut).unwrap();
    // The reader asks, gets nothing and waits for the next discovery.
    assert!(matches!(running.readers[0].poll().unwrap(), Polled::NeedSplits));
    running.step(0).unwrap();
    assert_eq!(running.discover().unwrap(), 1);
    found.extend((0..3).flat_map(|_| running.step(0).unwrap().unwrap()));
    assert_eq!(found, ["1", "2"]);
    assert_eq!(running.coordinator.discover(0).unwrap(), []);
}

#[test]
fn a_file_that_grew_or_was_replaced_fails_the_job_and_names_both_sizes() {
    let folder = tempfile::tempdir().unwrap();
    let mut running = with_one_file(folder.path(), &[]);
    let cut = running.cut(1);
    assert_eq!(running.discover().unwrap(), 0);
    fs::write(folder.path().join("a.csv"), "1\n2\n").unwrap();
    let error = running.discover().unwrap_err();
    assert_eq!(error.code, Code::FileChanged);
    assert!(error.cause.ends_with("a.csv had 2 bytes when it was found and has 4 now"), "{error}");
    assert!(error.way_out.as_ref().unwrap().contains("source.changed-files"), "{error}");
    // A restore knows the file as it was.
    let mut restored = Running::restore(&source(&monitored(folder.path(), &[])), 2, 100, &cut).unwrap();
    assert_eq!(restored.discover().unwrap_err().code, Code::FileChanged);
}

#[test]
fn a_file_of_equal_size_that_was_written_to_later_is_a_changed_one() {
    let folder = tempfile::tempdir().unwrap();
    let mut running = with_one_file(folder.path(), &[]);
    let path = folder.path().join("a.csv");
    let later = fs::metadata(&path).unwrap().modified().unwrap() + std::time::Duration::from_secs(1);
    fs::write(&path, "2\n").unwrap();
    fs::File::options().write(true).open(&path).unwrap().set_modified(later).unwrap();
    let error = running.discover().unwrap_err();
    assert_eq!(error.code, Code::FileChanged);
    assert!(error.cause.ends_with("a.csv was written to after it had been found"), "{error}");
}

#[test]
fn changed_files_may_be_ignored_and_are_never_read_twice() {
    let folder = tempfile::tempdir().unwrap();
    let ignore = [("source.changed-files", "ignore")];
    let mut running = with_one_file(folder.path(), &ignore);
    fs::write(folder.path().join("a.csv"), "1\n2\n").unwrap();
    fs::write(folder.path().join("b.csv"), "3\n").unwrap();
    assert_eq!(running.discover().unwrap(), 1);
    assert_eq!(read(&mut running), ["3"]);
    let cut = running.cut(1);
    let mut running = Running::restore(&source(&monitored(folder.path(), &ignore)), 1, 100, &cut).unwrap();
    assert_eq!(read(&mut running), [""; 0]);
    assert_eq!(running.discover().unwrap(), 0);
}

#[test]
fn a_file_appears_when_it_is_renamed_and_may_go_once_it_was_read() {
    let folder = tempfile::tempdir().unwrap();
    let mut running = with_one_file(folder.path(), &[]);
    for unfinished in ["b.csv.tmp", ".c.csv", "_d.csv"] {
        fs::write(folder.path().join(unfinished), "2\n").unwrap();
    }
    fs::remove_file(folder.path().join("a.csv")).unwrap();
    assert_eq!(running.discover().unwrap(), 0);
    fs::rename(folder.path().join("b.csv.tmp"), folder.path().join("b.csv")).unwrap();
    assert_eq!(running.discover().unwrap(), 1);
    assert_eq!(read(&mut running), ["2"]);
}

#[test]
fn a_table_that_begins_to_be_monitored_reads_no_file_again() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("a.csv"), "1\n").unwrap();
    let mut bounded = monitored(folder.path(), &[]);
    bounded.options.remove("source.monitor-interval");
    let mut running = Running::start(&source(&bounded), 1, 100).unwrap();
    assert_eq!(running.finish().unwrap(), ["1"]);
    let cut = running.cut(1);
    fs::write(folder.path().join("b.csv"), "2\n").unwrap();
    let mut running = Running::restore(&source(&monitored(folder.path(), &[])), 1, 100, &cut).unwrap();
    assert_eq!(read(&mut running), [""; 0]);
    assert_eq!(running.discover().unwrap(), 1);
    assert_eq!(read(&mut running), ["2"]);
}
