//! What is fuzzed: every reader of text or bytes that come from outside the process.

use std::{cell::RefCell, collections::BTreeMap, fs, sync::Arc};

use arrow::datatypes::{DataType, Field, Fields, Schema, SchemaRef, TimeUnit};
use streamkeeper_checkpoint::{Manifest, log::Record, manifest::checksum};
use streamkeeper_connectors::{TableDefinition, connector};
use streamkeeper_engine::{OperatorMetrics, Polled, SourceContext, SubtaskInfo, SystemClock};
use streamkeeper_sql::parse::parse_script;
use streamkeeper_types::{OperatorId, SubtaskId, VertexId};

use crate::seeds;

/// One thing that takes bytes from outside.
pub struct Target {
    pub name: &'static str,
    pub run: fn(&[u8]),
    pub seeds: fn() -> Vec<Vec<u8>>,
    /// Texts worth splicing in.
    pub tokens: &'static [&'static str],
}

/// All targets.
pub const TARGETS: &[Target] = &[
    Target { name: "stream-job", run: stream_job, seeds: || owned(seeds::STREAM_JOB), tokens: seeds::YAML_TOKENS },
    Target { name: "sql", run: sql, seeds: || owned(seeds::SQL), tokens: seeds::SQL_TOKENS },
    Target { name: "manifest", run: manifest, seeds: || owned(seeds::MANIFEST), tokens: seeds::JSON_TOKENS },
    Target { name: "log-record", run: log_record, seeds: || owned(seeds::LOG_RECORD), tokens: seeds::JSON_TOKENS },
    Target { name: "csv", run: |bytes| format("csv", bytes), seeds: || owned(seeds::CSV), tokens: seeds::CSV_TOKENS },
    Target {
        name: "json",
        run: |bytes| format("json", bytes),
        seeds: || owned(seeds::JSON),
        tokens: seeds::JSON_TOKENS,
    },
    Target { name: "raw", run: |bytes| format("raw", bytes), seeds: || owned(seeds::CSV), tokens: seeds::CSV_TOKENS },
    Target { name: "parquet", run: |bytes| format("parquet", bytes), seeds: seeds::parquet, tokens: &[] },
    Target { name: "gzip", run: gzip, seeds: seeds::gzip, tokens: &[] },
];

/// The target of this name.
#[must_use]
pub fn target(name: &str) -> Option<&'static Target> {
    TARGETS.iter().find(|target| target.name == name)
}

fn owned(seeds: &[&[u8]]) -> Vec<Vec<u8>> {
    seeds.iter().map(|seed| seed.to_vec()).collect()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn stream_job(bytes: &[u8]) {
    let Ok(manifest) = streamkeeper_api::load(&text(bytes)) else { return };
    for job in &manifest.jobs {
        let _ = streamkeeper_api::validate(job, &manifest.config_maps);
        let _ = streamkeeper_api::unsupported(&job.spec);
    }
}

fn sql(bytes: &[u8]) {
    let Ok(script) = parse_script(&text(bytes)) else { return };
    let _ = streamkeeper_sql::catalog::Catalog::from_script(&script);
}

/// As it is, and with length and checksum made right: else no mutated body would be read.
fn manifest(bytes: &[u8]) {
    let _ = Manifest::decode("chk-1/_metadata", bytes);
    let body = behind_first_line(bytes);
    let head = format!(
        "{{\"format\":\"streamkeeper-manifest\",\"version\":1,\"length\":{},\"checksum\":\"{:016x}\"}}\n",
        body.len(),
        checksum(body)
    );
    let _ = Manifest::decode("chk-1/_metadata", &[head.as_bytes(), body].concat());
}

/// What follows the first line.
fn behind_first_line(bytes: &[u8]) -> &[u8] {
    bytes.iter().position(|byte| *byte == b'\n').map_or(bytes, |end| &bytes[end + 1..])
}

fn log_record(bytes: &[u8]) {
    let _ = Record::decode("log/1/1", bytes);
}

thread_local! {
    /// One file for all inputs of a thread.
    static FOLDER: RefCell<Option<tempfile::TempDir>> = const { RefCell::new(None) };
}

/// Reads the bytes as a file of the format, skipping bad records.
fn format(format: &str, bytes: &[u8]) {
    read("input", format, bytes);
}

/// Reads the bytes as compressed CSV.
fn gzip(bytes: &[u8]) {
    read("input.gz", "csv", bytes);
}

fn read(name: &str, format: &str, bytes: &[u8]) {
    let path = FOLDER.with_borrow_mut(|folder| {
        let folder = folder.get_or_insert_with(|| tempfile::tempdir().expect("a temporary folder can be made"));
        folder.path().join(name)
    });
    fs::write(&path, bytes).expect("a temporary file can be written");
    let options = [
        ("connector", "filesystem"),
        ("format", format),
        ("on-error", "skip"),
        ("path", path.to_str().unwrap_or_default()),
    ];
    let table = TableDefinition {
        name: "t".to_owned(),
        job: "default/fuzz".to_owned(),
        schema: if format == "raw" { raw_schema() } else { wide_schema() },
        options: options.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect::<BTreeMap<_, _>>(),
        partitioned_by: Vec::new(),
        primary_key: Vec::new(),
        base_dir: path.parent().map(std::path::Path::to_path_buf).unwrap_or_default(),
        has_watermark: false,
    };
    let Some(filesystem) = connector("filesystem") else { return };
    let Ok(source) = filesystem.source(&table) else { return };
    let subtask = SubtaskInfo {
        operator: OperatorId(1),
        name: "t".to_owned(),
        subtask: SubtaskId { vertex: VertexId(0), index: 0 },
        parallelism: 1,
        max_parallelism: 128,
    };
    let context =
        SourceContext { clock: Arc::new(SystemClock), metrics: Arc::new(OperatorMetrics::default()), batch_rows: 64 };
    let Ok(mut coordinator) = source.coordinator(1) else { return };
    let Ok(mut reader) = source.reader(&subtask, context) else { return };
    coordinator.reset(1);
    while let Ok(assignments) = coordinator.on_request(streamkeeper_engine::SplitRequest { reader: 0 }) {
        let splits: Vec<_> = assignments.into_iter().flat_map(|a| a.splits).collect();
        if splits.is_empty() || reader.add_splits(splits).is_err() {
            return;
        }
        while let Ok(polled) = reader.poll() {
            if matches!(polled, Polled::NeedSplits) {
                break;
            }
        }
    }
}

fn raw_schema() -> SchemaRef {
    Arc::new(Schema::new(vec![Field::new("line", DataType::Utf8, true)]))
}

/// A column of each kind.
fn wide_schema() -> SchemaRef {
    let row = Fields::from(vec![
        Field::new("x", DataType::Int64, true),
        Field::new("y", DataType::List(Arc::new(Field::new("item", DataType::Utf8, true))), true),
    ]);
    Arc::new(Schema::new(vec![
        Field::new("a", DataType::Int32, true),
        Field::new("b", DataType::Utf8, true),
        Field::new("c", DataType::Decimal128(10, 2), true),
        Field::new("d", DataType::Boolean, true),
        Field::new("e", DataType::Timestamp(TimeUnit::Millisecond, None), true),
        Field::new("f", DataType::Float64, true),
        Field::new("g", DataType::Date32, true),
        Field::new("r", DataType::Struct(row), true),
    ]))
}
