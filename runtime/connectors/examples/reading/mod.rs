//! A file read to its end by one reader of the `filesystem` connector, as a source task reads it.

use std::{collections::BTreeMap, sync::Arc};

use arrow::{
    array::RecordBatch,
    datatypes::{DataType, Field, Schema, TimeUnit},
};
use streamkeeper_connectors::{TableDefinition, connector};
use streamkeeper_engine::{OperatorMetrics, Polled, SourceContext, SplitRequest, SubtaskInfo, SystemClock};
use streamkeeper_types::{Error, OperatorId, Result, SubtaskId, VertexId};

/// Table `input` over one file; `columns` are `name:bigint|string|timestamp`.
///
/// # Errors
/// When a column has no such type.
pub fn table(format: &str, path: &str, columns: &[&str]) -> Result<TableDefinition> {
    let fields = columns.iter().map(|column| field(column)).collect::<Result<Vec<_>>>()?;
    let option = |key: &str, value: &str| (key.to_owned(), value.to_owned());
    Ok(TableDefinition {
        name: "input".to_owned(),
        job: "default/decode".to_owned(),
        schema: Arc::new(Schema::new(fields)),
        options: BTreeMap::from([option("connector", "filesystem"), option("path", path), option("format", format)]),
        partitioned_by: Vec::new(),
        primary_key: Vec::new(),
        base_dir: ".".into(),
        has_watermark: false,
    })
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

/// Hands every batch of 8,192 rows to `take`; gives the bytes read.
///
/// # Errors
/// Those of the reader and of `take`.
pub fn read(table: &TableDefinition, mut take: impl FnMut(RecordBatch) -> Result<()>) -> Result<u64> {
    let files = connector("filesystem").ok_or_else(|| Error::internal("no filesystem connector"))?;
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
    loop {
        match reader.poll()? {
            Polled::Batch { batch, .. } => take(batch)?,
            Polled::SplitFinished(_) | Polled::Wait(_) => {}
            Polled::NeedSplits => {
                let mut last = true;
                for assignment in coordinator.on_request(SplitRequest { reader: 0 })? {
                    last &= assignment.splits.is_empty();
                    reader.add_splits(assignment.splits)?;
                }
                if last {
                    return Ok(reader.progress().0);
                }
            }
        }
    }
}
