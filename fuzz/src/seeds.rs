//! Inputs to start from: valid ones of every kind.

use std::{io::Write as _, sync::Arc};

use arrow::array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use flate2::write::GzEncoder;
use parquet::{arrow::ArrowWriter, basic::Compression, file::properties::WriterProperties};

pub const STREAM_JOB: &[&[u8]] = &[
    include_bytes!("../../examples/api-hits.yaml"),
    b"apiVersion: streamkeeper.dev/v1alpha1\nkind: StreamJob\nmetadata:\n  name: x\nspec:\n  sql: SELECT 1\n  checkpoint: {interval: 1s}\n",
];
pub const YAML_TOKENS: &[&str] = &[
    "---\n",
    "&a ",
    "*a",
    "[",
    "]",
    "{",
    "}",
    ": ",
    "- ",
    "|\n",
    "!!binary ",
    "spec:\n",
    "\u{feff}",
    "\t",
    "null",
    "1e999",
];

pub const SQL: &[&[u8]] = &[
    b"CREATE TABLE t (a INT, r ROW<x INT, y ARRAY<STRING>>, m MAP<STRING, DECIMAL(10, 2)>, ts TIMESTAMP(3), c AS a + 1, WATERMARK FOR ts AS ts - INTERVAL '5' SECOND, PRIMARY KEY (a) NOT ENFORCED) PARTITIONED BY (a) WITH ('connector' = 'filesystem', 'path' = 'x', 'format' = 'csv');",
    b"CREATE TEMPORARY VIEW v (x) AS SELECT CAST(a AS STRING) FROM t WHERE `b` LIKE 'x%' ESCAPE '\\';",
    b"EXECUTE STATEMENT SET BEGIN INSERT INTO o SELECT window_start, COUNT(*) FILTER (WHERE a > 1) FROM TABLE(HOP(DATA => TABLE t, TIMECOL => DESCRIPTOR(ts), SLIDE => INTERVAL '1' MINUTE, SIZE => INTERVAL '5' MINUTES)) GROUP BY window_start, window_end; END;",
    b"INSERT INTO o SELECT id FROM (SELECT id, ROW_NUMBER() OVER (PARTITION BY id ORDER BY ts DESC) AS rn FROM t) WHERE rn = 1",
    b"SET 'table.exec.state.ttl' = '1h'; INSERT INTO o SELECT JSON_VALUE(j, 'lax $.a' RETURNING INT DEFAULT 1 ON EMPTY), EXTRACT(HOUR FROM ts) FROM t",
];
pub const SQL_TOKENS: &[&str] = &[
    " SELECT ",
    " FROM ",
    " TABLE(",
    "TUMBLE(",
    "DESCRIPTOR(",
    " INTERVAL '1' ",
    " OVER (",
    " PARTITION BY ",
    " ROW<",
    " ARRAY<",
    ">>",
    " MAP<",
    "((((((((",
    "))))))))",
    "'",
    "''",
    "`",
    "--",
    "/*",
    "*/",
    ";",
    " => ",
    " CASE WHEN ",
    " NOT NOT NOT ",
    "-",
    "1e400",
    " AS ",
    ".",
    "::",
    "\u{0}",
    "\u{1F600}",
];

pub const CSV: &[&[u8]] =
    &[b"1,abc,2.50,true,2026-01-01 00:00:00.000\n", b"\"a \"\"b\"\" c\",,x\r\n", b"1;2;3\n\n,,,\n"];
pub const CSV_TOKENS: &[&str] =
    &["\"", "\"\"", ",", "\n", "\r\n", "\\", "99999999999999999999", "NaN", "-0", "2026-13-45"];
pub const JSON: &[&[u8]] = &[
    br#"{"a": 1, "b": "x", "c": 2.5, "d": true, "e": "2026-01-01 00:00:00", "r": {"x": 1, "y": ["a", null]}, "m": {"k": 1}}"#,
    b"{}\n{\"a\": null}\n",
];
pub const JSON_TOKENS: &[&str] =
    &["{", "}", "[", "]", "\"", "\\u0000", "\\ud800", "null", "1e999", "-", ":", ",", "\n"];

/// One that version 1 wrote, with a right checksum: mutations reach the body.
pub const MANIFEST: &[&[u8]] = &[include_bytes!("../../runtime/checkpoint/tests/it/manifest_v1.golden")];
pub const LOG_RECORD: &[&[u8]] = &[
    br#"{"version":1,"record":"claim","launch":3,"instance":"ab"}"#,
    br#"{"version":1,"record":"sealed","by":7}"#,
    br#"{"version":1,"record":"base","completed":[{"id":4,"kind":"checkpoint","format":"native","manifest":"chk-4/_metadata","checksum":9,"size":10,"time":11}],"discards":[{"id":3,"manifest":"chk-3/_metadata"}],"next_id":1001,"floor":2,"source":{"from":"savepoint","path":"savepoints/a"}}"#,
    br#"{"version":1,"record":"completed","checkpoint":{"id":5,"kind":{"stop-savepoint":{"drain":true}},"format":"canonical","manifest":"savepoints/b/_metadata","checksum":1,"size":2,"time":3},"subsumes":[3],"collected":[2]}"#,
    br#"{"version":1,"record":"result","status":"finished","time":12}"#,
];

/// Two real files, one plain and one with dictionaries and compression, of columns that the target's table has.
pub fn parquet() -> Vec<Vec<u8>> {
    let numbers: ArrayRef = Arc::new(Int64Array::from_iter((0..20).map(|n| (n % 7 != 0).then_some(n))));
    let texts: ArrayRef =
        Arc::new(StringArray::from_iter((0..20).map(|n| (n % 5 != 0).then(|| format!("t{}", n % 3)))));
    let batch = RecordBatch::try_from_iter_with_nullable([("a", numbers, true), ("b", texts, true)])
        .expect("the columns have one length");
    let plain = WriterProperties::builder().set_dictionary_enabled(false).set_compression(Compression::UNCOMPRESSED);
    let packed = WriterProperties::builder().set_compression(Compression::SNAPPY).set_max_row_group_row_count(Some(8));
    [plain, packed].map(|properties| file(&batch, properties.build())).into()
}

fn file(batch: &RecordBatch, properties: WriterProperties) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut writer =
        ArrowWriter::try_new(&mut bytes, batch.schema(), Some(properties)).expect("the schema has a Parquet form");
    writer.write(batch).expect("memory takes the rows");
    writer.close().expect("memory takes the footer");
    bytes
}

/// CSV in one member and in two.
pub fn gzip() -> Vec<Vec<u8>> {
    let member = |bytes: &[u8]| {
        let mut encoder = GzEncoder::new(Vec::new(), flate2::Compression::default());
        encoder.write_all(bytes).expect("memory takes the bytes");
        encoder.finish().expect("memory takes the trailer")
    };
    let whole: Vec<u8> = CSV.concat();
    vec![member(&whole), CSV.iter().flat_map(|part| member(part)).collect()]
}
