//! Inputs to start from: valid ones of every kind.

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
    b"SET 'table.exec.state.ttl' = '1h'; SELECT JSON_VALUE(j, 'lax $.a' RETURNING INT DEFAULT 1 ON EMPTY), EXTRACT(HOUR FROM ts) FROM t",
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

pub const MANIFEST: &[&[u8]] = &[
    br#"{"version":1,"checksum":"0","manifest":{"job":"default/x","checkpoint":7,"kind":"checkpoint","format":"native","time":1,"max_parallelism":128,"hash_version":1,"operators":[{"id":"00000000000000000000000000000001","name":"x","subtasks":[{"finished":true}]}]}}"#,
    br#"{"version":1,"record":{"type":"completed","id":7,"kind":"checkpoint","format":"native","manifest":"chk-7/_metadata","checksum":1,"size":2,"time":3}}"#,
];
/// The smallest file that has the magic at both ends.
pub const PARQUET: &[&[u8]] = &[b"PAR1\x15\x04\x15\x10\x15\x14L\x15\x02\x15\x00\x12\x00\x00\x08\x1c\x01\x00\x00\x00\x00\x00\x00\x00\x10\x00\x00\x00PAR1", b"PAR1\x00\x00\x00\x00PAR1"];
