//! Files that are torn, of another format or hostile: a clear error or a bad record, whatever lies around it is read.

use std::{fs, io::Write, path::Path};

use arrow::datatypes::{DataType, Field, Fields};
use flate2::{Compression, write::GzEncoder};
use streamkeeper_connectors::TableDefinition;
use streamkeeper_types::Code;

use crate::harness::{Running, lines, read_all, schema, source, table};

const TEXT: DataType = DataType::Utf8;
const LONG: DataType = DataType::Int64;

fn gzip(content: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(content).unwrap();
    encoder.finish().unwrap()
}

/// A table over the one file `name` with this content.
fn over(
    folder: &Path,
    name: &str,
    content: &[u8],
    columns: &[(&str, DataType)],
    more: &[(&str, &str)],
) -> TableDefinition {
    fs::write(folder.join(name), content).unwrap();
    table(folder, schema(columns), &[&[("path", name)], more].concat())
}

fn raw(folder: &Path, name: &str, content: &[u8]) -> TableDefinition {
    over(folder, name, content, &[("line", TEXT)], &[("format", "raw")])
}

#[test]
fn all_members_of_a_compressed_file_are_one_content_also_with_a_line_over_two_of_them() {
    let folder = tempfile::tempdir().unwrap();
    let members = [gzip(b"one\ntw"), gzip(b"o\n"), gzip(b""), gzip(b"three")].concat();
    assert_eq!(read_all(&raw(folder.path(), "a.gz", &members)).unwrap(), ["one", "two", "three"]);
}

#[test]
fn a_compressed_file_that_was_cut_anywhere_is_named_and_never_taken_for_a_whole_one() {
    let folder = tempfile::tempdir().unwrap();
    let content: String = (0..200).map(|n| format!("line {}\n", n * 7919 % 997)).collect();
    let whole = gzip(content.as_bytes());
    for length in 1..whole.len() {
        let error = read_all(&raw(folder.path(), "a.gz", &whole[..length])).unwrap_err();
        assert_eq!(error.code, Code::FileCorrupt, "{length} bytes: {error}");
        assert!(error.cause.contains("a.gz") && error.way_out.is_some(), "{error}");
    }
}

#[test]
fn changed_bytes_of_a_compressed_file_never_give_other_rows() {
    let folder = tempfile::tempdir().unwrap();
    let whole = gzip(&b"some line of text\n".repeat(50));
    // Behind the head of ten bytes, whose time and system say nothing about the content.
    for at in 10..whole.len() {
        let mut changed = whole.clone();
        changed[at] ^= 0x10;
        match read_all(&raw(folder.path(), "a.gz", &changed)) {
            // A bit that only fills up a byte.
            Ok(rows) => assert_eq!(rows, ["some line of text"; 50], "byte {at}"),
            Err(error) => assert_eq!(error.code, Code::FileCorrupt, "byte {at}: {error}"),
        }
    }
}

#[test]
fn what_is_no_compressed_file_at_all_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let error = read_all(&raw(folder.path(), "a.gz", b"plain text\n")).unwrap_err();
    assert_eq!(error.code, Code::FileCorrupt);
}

#[test]
fn a_quote_without_end_ends_with_its_line_in_a_shared_file_also_where_the_file_is_cut() {
    let folder = tempfile::tempdir().unwrap();
    // Three parts; open quotes in every tenth line, so also around both cuts.
    let line = |n: usize| if n % 10 == 5 { format!("{n},\"open {n:x<80}\n") } else { format!("{n},\"ok {n:x<80}\"\n") };
    let text: String = (0..3_000).map(line).collect();
    let options = [("format", "csv"), ("csv.quoted-line-breaks", "refuse"), ("on-error", "skip")];
    let table = over(folder.path(), "a.csv", text.as_bytes(), &[("n", LONG), ("text", TEXT)], &options);
    for readers in 1..=3 {
        let mut running = Running::start(&source(&table), readers, 100).unwrap();
        let rows = running.finish().unwrap();
        let mut numbers: Vec<usize> = rows.iter().map(|row| row.split('|').next().unwrap().parse().unwrap()).collect();
        numbers.sort_unstable();
        assert_eq!(numbers, (0..3_000).filter(|n| n % 10 != 5).collect::<Vec<_>>(), "{readers} readers");
        assert_eq!(running.metrics.bad(), 300);
    }
}

#[test]
fn a_quote_without_end_takes_the_rest_of_a_whole_file_into_one_dead_letter() {
    let folder = tempfile::tempdir().unwrap();
    let options = [("format", "csv"), ("on-error", "dead-letter"), ("on-error.dead-letter.path", "dead")];
    let text = b"1,a\n2,\"open\n3,c\n";
    let table = over(folder.path(), "a.csv", text, &[("n", LONG), ("text", TEXT)], &options);
    let mut running = Running::start(&source(&table), 1, 100).unwrap();
    assert_eq!(running.finish().unwrap(), ["1|a"]);
    running.cut(1);
    running.complete(1);
    let letters = lines(&folder.path().join("dead"));
    let letter: serde_json::Value = serde_json::from_str(&letters[0]).unwrap();
    assert_eq!((letters.len(), &letter["record"], &letter["offset"]), (1, &"2,\"open\n3,c".into(), &4.into()));
}

#[test]
fn a_record_longer_than_allowed_fails_and_the_option_lets_it_pass() {
    let folder = tempfile::tempdir().unwrap();
    let long = "x".repeat(3 << 20);
    let text = format!("short\n{long}\nlast\n");
    let with = |limit| {
        let options = [("format", "raw"), ("on-error", "skip"), ("source.max-record-size", limit)];
        read_all(&over(folder.path(), "a.log", text.as_bytes(), &[("line", TEXT)], &options))
    };
    let error = with("1MiB").unwrap_err();
    assert_eq!(error.code, Code::RecordInvalid);
    assert!(error.cause.contains("a.log: the record at byte 6 is longer than 1.00 MiB"), "{error}");
    assert!(error.way_out.unwrap().contains("source.max-record-size"));
    assert_eq!(with("4MiB").unwrap(), ["short", &long, "last"]);
}

#[test]
fn text_that_is_not_utf_8_is_a_bad_record_in_every_line_format() {
    let folder = tempfile::tempdir().unwrap();
    for (format, good, bad, rows) in [
        ("raw", &b"good"[..], &b"b\xffd"[..], "good"),
        ("csv", b"good", b"b\xffd", "good"),
        ("json", b"{\"line\":\"good\"}", b"{\"line\":\"b\xffd\"}", "good"),
    ] {
        let text = [good, bad, good].join(&b'\n');
        let options = [("format", format), ("on-error", "skip")];
        let table = over(folder.path(), "a", &text, &[("line", TEXT)], &options);
        let mut running = Running::start(&source(&table), 1, 100).unwrap();
        assert_eq!(running.finish().unwrap(), [rows, rows], "{format}");
        assert_eq!(running.metrics.bad(), 1, "{format}");
        let strict = over(folder.path(), "a", &text, &[("line", TEXT)], &[("format", format)]);
        let error = read_all(&strict).unwrap_err();
        assert_eq!(error.code, Code::RecordInvalid, "{format}");
        assert!(error.cause.contains(&format!("byte {}", good.len() + 1)), "{format}: {error}");
    }
}

#[test]
fn json_nested_a_hundred_thousand_deep_is_a_bad_record_and_needs_no_stack() {
    let folder = tempfile::tempdir().unwrap();
    let depth = 100_000;
    let nested = |open: &str, middle: &str, close: &str| open.repeat(depth) + middle + &close.repeat(depth);
    let unknown = format!("{{\"other\":{},\"n\":1}}", nested("[", "", "]"));
    let objects = format!("{{\"other\":{},\"n\":2}}", nested("{\"a\":", "0", "}"));
    let unclosed = format!("{{\"other\":{}", "[".repeat(depth));
    let in_column = format!("{{\"n\":{}}}", nested("[", "", "]"));
    let in_row = format!("{{\"r\":{}}}", nested("{\"r\":", "1", "}"));
    let text = [&unknown, &objects, &unclosed, &in_column, &in_row, "{\"n\":3}"].join("\n");
    let row = DataType::Struct(Fields::from(vec![Field::new("x", LONG, true)]));
    let options = [("format", "json"), ("on-error", "skip")];
    let table = over(folder.path(), "a.json", text.as_bytes(), &[("n", LONG), ("r", row)], &options);
    let mut running = Running::start(&source(&table), 1, 100).unwrap();
    let numbers: Vec<String> = running.finish().unwrap().iter().map(|r| r.split('|').next().unwrap().into()).collect();
    let read = numbers.iter().filter(|n| n.as_str() != "∅").collect::<Vec<_>>();
    assert_eq!(read, ["3"]);
    assert_eq!(running.metrics.bad(), 5);
}
