//! What becomes of records that cannot be read.

use std::fs;

use arrow::datatypes::DataType;
use streamkeeper_types::{Code, Result};

use crate::harness::{Running, everything, lines, schema, source, table, visible};

const INPUT: &[u8] = b"1,a\nx,b\n3,c\n4\n5,\xff\n6,f\n";

fn running(folder: &std::path::Path, options: &[(&str, &str)]) -> Running {
    fs::write(folder.join("in.csv"), INPUT).unwrap();
    Running::start(&source(&definition(folder, options)), 1, 100).unwrap()
}

fn definition(folder: &std::path::Path, options: &[(&str, &str)]) -> streamkeeper_connectors::TableDefinition {
    let columns = schema(&[("id", DataType::Int64), ("text", DataType::Utf8)]);
    table(folder, columns, &[&[("path", "in.csv"), ("format", "csv")], options].concat())
}

fn read(options: &[(&str, &str)]) -> Result<(Vec<String>, u64)> {
    let folder = tempfile::tempdir().unwrap();
    let mut running = running(folder.path(), options);
    let rows = running.finish()?;
    Ok((rows, running.metrics.bad()))
}

#[test]
fn by_default_a_bad_record_fails_the_job_with_its_place() {
    let error = read(&[]).unwrap_err();
    assert_eq!(error.code, Code::RecordInvalid);
    assert!(error.cause.contains("in.csv, byte 4: column `id`: `x` is no BIGINT: x,b"), "{error}");
    assert!(error.way_out.unwrap().contains("on-error"));
}

#[test]
fn skipped_records_are_counted() {
    let (rows, bad) = read(&[("on-error", "skip")]).unwrap();
    assert_eq!(rows, ["1|a", "3|c", "6|f"]);
    assert_eq!(bad, 3);
}

#[test]
fn more_bad_records_than_allowed_fail_the_job() {
    assert!(read(&[("on-error", "skip"), ("on-error.max-records", "3")]).is_ok());
    let error = read(&[("on-error", "skip"), ("on-error.max-records", "2")]).unwrap_err();
    assert_eq!(error.code, Code::TooManyBadRecords);
}

/// Three files with two bad records each, one file a reader.
fn three_files(folder: &std::path::Path, max: &str) -> streamkeeper_connectors::TableDefinition {
    for name in ["a", "b", "c"] {
        fs::write(folder.join(format!("{name}.csv")), format!("1,{name}\nx,{name}\ny,{name}\n")).unwrap();
    }
    let columns = schema(&[("id", DataType::Int64), ("text", DataType::Utf8)]);
    let options = [("path", "."), ("format", "csv"), ("on-error", "skip"), ("on-error.max-records", max)];
    table(folder, columns, &options)
}

#[test]
fn the_limit_on_bad_records_holds_for_all_readers_together() {
    let folder = tempfile::tempdir().unwrap();
    let enough = Running::start(&source(&three_files(folder.path(), "6")), 3, 100).unwrap().finish();
    assert_eq!(enough.unwrap().len(), 3);
    // No reader has more than two.
    let error = Running::start(&source(&three_files(folder.path(), "5")), 3, 100).unwrap().finish().unwrap_err();
    assert_eq!(error.code, Code::TooManyBadRecords);
    assert!(error.cause.starts_with("more than 5 records cannot be read; the latest: "), "{error}");
    assert!(error.cause.contains("c.csv, byte 8: column `id`: `y` is no BIGINT"), "{error}");
}

#[test]
fn the_limit_counts_over_a_restore_at_another_parallelism_and_forgets_what_the_restore_undid() {
    let folder = tempfile::tempdir().unwrap();
    for (max, good) in [("6", true), ("5", false)] {
        let source = source(&three_files(folder.path(), max));
        let mut first = Running::start(&source, 3, 100).unwrap();
        // Two readers ask for a file and read it.
        for _ in 0..2 {
            (0..2).for_each(|reader| drop(first.step(reader).unwrap()));
        }
        let cut = first.cut(1);
        // What the third reader finds is not in the checkpoint, and is found again.
        (0..2).for_each(|_| drop(first.step(2)));
        let mut second = Running::restore(&source, 1, 100, &cut).unwrap();
        assert_eq!(second.metrics.bad(), 4);
        let rest = second.finish();
        assert_eq!(rest.is_ok(), good, "{rest:?}");
        assert!(good || rest.unwrap_err().code == Code::TooManyBadRecords);
    }
}

#[test]
fn a_limit_that_was_lowered_holds_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let mut first = Running::start(&source(&three_files(folder.path(), "6")), 1, 100).unwrap();
    first.finish().unwrap();
    let cut = first.cut(1);
    let mut second = Running::restore(&source(&three_files(folder.path(), "3")), 1, 100, &cut).unwrap();
    let error = second.report(0).unwrap_err();
    assert_eq!((error.code, error.cause.as_str()), (Code::TooManyBadRecords, "more than 3 records cannot be read"));
}

#[test]
fn dead_letters_appear_with_their_checkpoint_and_hold_bytes_cause_and_position() {
    let folder = tempfile::tempdir().unwrap();
    let mut running = running(folder.path(), &[("on-error", "dead-letter"), ("on-error.dead-letter.path", "dead")]);
    running.finish().unwrap();
    let dead = folder.path().join("dead");
    running.cut(1);
    assert!(visible(&dead).is_empty());
    running.complete(1);
    let found = lines(&dead);
    assert_eq!(found.len(), 3);
    let letter = |line: &str| serde_json::from_str::<serde_json::Value>(line).unwrap();
    let by_offset = |offset: u64| found.iter().map(|l| letter(l)).find(|l| l["offset"] == offset).unwrap();
    assert_eq!(by_offset(4)["record"], "x,b");
    assert_eq!(by_offset(12)["cause"], "it has 1 fields, the table has 2 columns");
    assert_eq!(by_offset(14)["recordBase64"], "NSz/");
    assert!(by_offset(4)["file"].as_str().unwrap().ends_with("in.csv"));
}

#[test]
fn r17_dead_letters_of_a_restored_checkpoint_are_committed_and_later_ones_written_again() {
    let folder = tempfile::tempdir().unwrap();
    let options = [("on-error", "dead-letter"), ("on-error.dead-letter.path", "dead")];
    let mut first = running(folder.path(), &options);
    first.finish().unwrap();
    let cut = first.cut(1);
    // The process dies before it hears that checkpoint 1 is complete.
    drop(first);
    let source = source(&definition(folder.path(), &options));
    let mut second = Running::restore(&source, 2, 100, &cut).unwrap();
    assert_eq!(second.metrics.bad(), 3);
    second.finish().unwrap();
    second.cut(2);
    second.complete(2);
    let dead = folder.path().join("dead");
    assert_eq!(lines(&dead).len(), 3);
    assert_eq!(everything(&dead).len(), 1);
}
