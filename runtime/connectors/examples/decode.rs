//! How many rows a second one reader decodes: `decode <csv|json|raw> <file> <column>:<bigint|string|timestamp>…`.
//!
//! Prints rows, bytes and CPU seconds of three passes over the file; take the best.

use std::{collections::BTreeMap, sync::Arc, time::Instant};

use arrow::datatypes::{DataType, Field, Schema, TimeUnit};
use streamkeeper_connectors::{TableDefinition, connector};
use streamkeeper_engine::{OperatorMetrics, Polled, SourceContext, SplitRequest, SubtaskInfo, SystemClock};
use streamkeeper_types::{Error, OperatorId, Result, SubtaskId, VertexId};

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [format, path, columns @ ..] = &arguments[..] else {
        return Err(Error::internal("usage: decode <csv|json|raw> <file> <column>:<type>…"));
    };
    let fields = columns.iter().map(|column| field(column)).collect::<Result<Vec<_>>>()?;
    let option = |key: &str, value: &str| (key.to_owned(), value.to_owned());
    let table = TableDefinition {
        name: "input".to_owned(),
        job: "default/decode".to_owned(),
        schema: Arc::new(Schema::new(fields)),
        options: BTreeMap::from([option("connector", "filesystem"), option("path", path), option("format", format)]),
        partitioned_by: Vec::new(),
        primary_key: Vec::new(),
        base_dir: ".".into(),
        has_watermark: false,
    };
    let files = connector("filesystem").ok_or_else(|| Error::internal("no filesystem connector"))?;
    for _ in 0..3 {
        let started = Instant::now();
        let (rows, bytes) = read(&table, files)?;
        let seconds = started.elapsed().as_secs_f64();
        let rate = rows as f64 / seconds;
        println!(
            "{rows} rows, {bytes} bytes, {seconds:.3} s: {:.0} thousand rows/s, {:.0} MB/s",
            rate / 1e3,
            bytes as f64 / seconds / 1e6
        );
    }
    Ok(())
}

fn field(column: &str) -> Result<Field> {
    let (name, data_type) = column.split_once(':').unwrap_or((column, "string"));
    let data_type = match data_type {
        "bigint" => DataType::Int64,
        "string" => DataType::Utf8,
        "timestamp" => DataType::Timestamp(TimeUnit::Millisecond, None),
        other => return Err(Error::internal(format!("no type `{other}`"))),
    };
    Ok(Field::new(name, data_type, true))
}

fn read(table: &TableDefinition, files: &dyn streamkeeper_connectors::Connector) -> Result<(usize, u64)> {
    let source = files.source(table)?;
    let mut coordinator = source.coordinator(1)?;
    let subtask = SubtaskInfo {
        operator: OperatorId(0),
        name: "input".to_owned(),
        subtask: SubtaskId { vertex: VertexId(0), index: 0 },
        parallelism: 1,
        max_parallelism: 128,
    };
    let context = SourceContext {
        clock: Arc::new(SystemClock),
        metrics: Arc::new(OperatorMetrics::default()),
        batch_rows: 8_192,
    };
    let mut reader = source.reader(&subtask, context)?;
    let mut rows = 0;
    loop {
        match reader.poll()? {
            Polled::Batch { batch, .. } => rows += batch.num_rows(),
            Polled::SplitFinished(_) | Polled::Wait(_) => {}
            Polled::NeedSplits => {
                let mut last = true;
                for assignment in coordinator.on_request(SplitRequest { reader: 0 })? {
                    last &= assignment.splits.is_empty();
                    reader.add_splits(assignment.splits)?;
                }
                if last {
                    return Ok((rows, reader.progress().0));
                }
            }
        }
    }
}
