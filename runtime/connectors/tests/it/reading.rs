//! Reading files: every record once, whatever the splits, the readers and the restores.

use std::{
    fs::{self, File},
    io::Write,
};

use arrow::datatypes::DataType;
use flate2::{Compression, write::GzEncoder};
use proptest::prelude::*;
use streamkeeper_types::Code;

use crate::harness::{Running, read_all, schema, source, table};

const TEXT: DataType = DataType::Utf8;
const LONG: DataType = DataType::Int64;

/// Lines of very different lengths, in sum large enough to be cut.
fn long_lines(count: usize, seed: usize) -> Vec<String> {
    (0..count).map(|i| format!("{i}-{}", "x".repeat((i * 7919 + seed * 31) % 900))).collect()
}

fn sorted(mut rows: Vec<String>) -> Vec<String> {
    rows.sort();
    rows
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn every_line_is_read_once_at_any_parallelism_and_over_restores(
        count in 1_usize..1_200, seed in 0_usize..1_000, before in 1_u32..5, after in 1_u32..5,
        polls in 0_usize..40, batch_rows in 1_usize..300, has_last_break: bool, watermark: bool,
    ) {
        let folder = tempfile::tempdir().unwrap();
        let lines = long_lines(count, seed);
        let mut text = lines.join("\n");
        if has_last_break {
            text.push('\n');
        }
        fs::write(folder.path().join("a.log"), text).unwrap();
        let mut table = table(folder.path(), schema(&[("line", TEXT)]), &[("path", "a.log"), ("format", "raw")]);
        table.has_watermark = watermark;
        let source = source(&table);
        let mut running = Running::start(&source, before, batch_rows).unwrap();
        let mut found = Vec::new();
        for poll in 0..polls {
            found.extend(running.step(poll % before as usize).unwrap().unwrap_or_default());
        }
        let cut = running.cut(1);
        // What is read after the cut does not count.
        running.step(0).unwrap();
        found.extend(Running::restore(&source, after, batch_rows, &cut).unwrap().finish().unwrap());
        prop_assert_eq!(sorted(found), sorted(lines));
    }
}

#[test]
fn a_large_file_is_shared_by_all_readers() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("a.log"), long_lines(3_000, 1).join("\n")).unwrap();
    let table = table(folder.path(), schema(&[("line", TEXT)]), &[("path", "a.log"), ("format", "raw")]);
    let mut running = Running::start(&source(&table), 3, 100).unwrap();
    for reader in 0..3 {
        running.step(reader).unwrap();
        assert!(!running.step(reader).unwrap().unwrap().is_empty(), "reader {reader}");
    }
}

#[test]
fn compressed_files_are_read_whole_and_go_on_after_a_restore() {
    let folder = tempfile::tempdir().unwrap();
    let lines = long_lines(2_000, 3);
    let mut file = GzEncoder::new(File::create(folder.path().join("a.log.gz")).unwrap(), Compression::fast());
    file.write_all(lines.join("\n").as_bytes()).unwrap();
    file.finish().unwrap();
    let table = table(folder.path(), schema(&[("line", TEXT)]), &[("path", "a.log.gz"), ("format", "raw")]);
    let source = source(&table);
    let mut running = Running::start(&source, 2, 100).unwrap();
    let mut found = Vec::new();
    (0..5).for_each(|_| found.extend(running.step(0).unwrap().unwrap()));
    let cut = running.cut(1);
    found.extend(Running::restore(&source, 1, 100, &cut).unwrap().finish().unwrap());
    assert_eq!(sorted(found), sorted(lines));
}

#[test]
fn quoted_line_breaks_keep_a_csv_file_whole_unless_they_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let rows: Vec<String> = (0..2_000).map(|i| format!("{i},\"a\n{}\"", "y".repeat(i % 200))).collect();
    fs::write(folder.path().join("a.csv"), rows.join("\n")).unwrap();
    let base = [("path", "a.csv"), ("format", "csv")];
    let columns = || schema(&[("id", LONG), ("text", TEXT)]);
    let whole = table(folder.path(), columns(), &base);
    let mut running = Running::start(&source(&whole), 3, 100).unwrap();
    let assigned = |running: &mut Running| {
        (0..3).for_each(|reader| drop(running.step(reader).unwrap()));
        running.readers.iter().map(|reader| reader.snapshot().len()).collect::<Vec<_>>()
    };
    assert_eq!(assigned(&mut running), [1, 0, 0]);
    assert_eq!(running.finish().unwrap().len(), 2_000);
    let cut = table(folder.path(), columns(), &[&base[..], &[("csv.quoted-line-breaks", "refuse")]].concat());
    assert_eq!(assigned(&mut Running::start(&source(&cut), 3, 100).unwrap()), [1, 1, 1]);
}

#[test]
fn headers_and_byte_order_marks_are_skipped_in_each_file() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("a.csv"), "\u{feff}id,text\n1,a\n").unwrap();
    fs::write(folder.path().join("b.csv"), "id,text\r\n2,b\r\n").unwrap();
    fs::write(folder.path().join("c.csv"), "id,text").unwrap();
    let options = [("path", "."), ("format", "csv"), ("csv.header", "true")];
    let table = table(folder.path(), schema(&[("id", LONG), ("text", TEXT)]), &options);
    assert_eq!(read_all(&table).unwrap(), ["1|a", "2|b"]);
}

#[test]
fn partition_columns_come_from_the_path() {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in [("day=2026-01-01/c=A%2FB", "1\n2\n"), ("day=2026-01-02/c=__HIVE_DEFAULT_PARTITION__", "3\n")] {
        fs::create_dir_all(folder.path().join("t").join(name)).unwrap();
        fs::write(folder.path().join("t").join(name).join("x.csv"), text).unwrap();
    }
    let columns = schema(&[("day", DataType::Date32), ("n", LONG), ("c", TEXT)]);
    let mut table = table(folder.path(), columns, &[("path", "t"), ("format", "csv")]);
    table.partitioned_by = vec!["day".to_owned(), "c".to_owned()];
    assert_eq!(read_all(&table).unwrap(), ["2026-01-01|1|A/B", "2026-01-01|2|A/B", "2026-01-02|3|∅"]);
}

#[test]
fn a_file_that_was_changed_under_the_job_is_noticed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.log");
    let lines = long_lines(300, 1);
    fs::write(&path, lines.join("\n")).unwrap();
    let table = table(folder.path(), schema(&[("line", TEXT)]), &[("path", "a.log"), ("format", "raw")]);
    let source = source(&table);
    let mut running = Running::start(&source, 1, 10).unwrap();
    (0..3).for_each(|_| drop(running.step(0).unwrap()));
    let cut = running.cut(1);
    for changed in ["short".to_owned(), "z".repeat(300_000)] {
        fs::write(&path, changed).unwrap();
        let error = Running::restore(&source, 1, 10, &cut).unwrap().finish().unwrap_err();
        assert_eq!(error.code, Code::FileChanged);
        assert!(error.way_out.is_some());
    }
    fs::remove_file(&path).unwrap();
    let error = Running::restore(&source, 1, 10, &cut).unwrap().finish().unwrap_err();
    assert_eq!(error.code, Code::FileChanged);
}

#[test]
fn missing_input_and_options_that_do_not_fit_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let one = || schema(&[("line", TEXT)]);
    let missing = table(folder.path(), one(), &[("path", "nothing"), ("format", "raw")]);
    assert_eq!(read_all(&missing).unwrap_err().code, Code::FileUnreadable);
    for (options, code) in [
        (&[("format", "raw")][..], Code::OptionInvalid),
        (&[("path", "x"), ("format", "raw"), ("csv.header", "true")], Code::OptionInvalid),
        (&[("path", "x"), ("format", "csv"), ("csv.field-delimiter", "ab")], Code::OptionInvalid),
        (&[("path", "x"), ("format", "csv"), ("csv.quote-character", ",")], Code::OptionInvalid),
        (&[("path", "x"), ("format", "csv"), ("on-error", "dead-letter")], Code::OptionInvalid),
        (&[("path", "s3://b/x"), ("format", "csv")], Code::OptionInvalid),
        (&[("path", "x"), ("format", "csv"), ("source.max-record-size", "1GiB")], Code::OptionInvalid),
        (&[("path", "x"), ("format", "raw"), ("pth", "y")], Code::OptionInvalid),
    ] {
        let table = table(folder.path(), one(), options);
        let error = streamkeeper_connectors::connector("filesystem").unwrap().source(&table).err().unwrap();
        assert_eq!(error.code, code, "{options:?}");
        assert!(error.way_out.is_some(), "{options:?}");
    }
    let two = table(folder.path(), schema(&[("a", TEXT), ("b", TEXT)]), &[("path", "x"), ("format", "raw")]);
    let error = streamkeeper_connectors::connector("filesystem").unwrap().source(&two).err().unwrap();
    assert_eq!(error.code, Code::SqlInvalid);
}
