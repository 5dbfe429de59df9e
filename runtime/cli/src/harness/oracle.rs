//! Expected rows by an independent computation: a batch query of stock DataFusion over the case's input files.
//!
//! The session has DataFusion's own functions and planner, the files are read by Arrow's and DataFusion's readers, nothing is ours; of the job it knows the
//! names and types of the input tables' physical columns.

use std::{
    fs::{self, File},
    sync::Arc,
};

use arrow::{
    array::{ArrayRef, RecordBatch, StringArray},
    csv::ReaderBuilder,
    datatypes::Schema,
};
use datafusion::{
    common::TableReference,
    datasource::MemTable,
    error::DataFusionError,
    execution::context::SQLOptions,
    prelude::{JsonReadOptions, ParquetReadOptions, SessionConfig, SessionContext},
};
use regex::Regex;
use streamkeeper_sql::types::SqlType;
use streamkeeper_types::{Code, Error, Result, ResultExt};
use tokio::runtime::{Builder, Runtime};

use super::{
    fold,
    format::{Csv, Format},
    input::Input,
};

/// DataFusion over the inputs of one case.
pub struct Oracle {
    runtime: Runtime,
    session: SessionContext,
    /// The tables with their columns, for messages.
    tables: String,
}

impl Oracle {
    /// # Errors
    /// `JOB_INVALID` for an input that DataFusion cannot read.
    pub fn new(inputs: &[Input]) -> Result<Self> {
        let runtime = Builder::new_current_thread().build();
        let runtime = runtime.or_code(Code::Internal, || "starting a runtime".to_owned())?;
        let session = SessionContext::new_with_config(SessionConfig::new().with_target_partitions(1));
        for input in inputs {
            let format = input.format.clone()?;
            let registered = runtime.block_on(register(&session, input, &format));
            registered.map_err(|e| Error::new(Code::JobInvalid, format!("table `{}`: {e}", input.table)))?;
        }
        let tables: Vec<String> = inputs.iter().map(|input| signature(&input.table, &input.schema)).collect();
        Ok(Self { runtime, session, tables: tables.join(", ") })
    }

    /// The rows of a query as text, sorted. `columns` is how many the sink has.
    ///
    /// # Errors
    /// `SQL_INVALID` with what DataFusion says, or if the number of columns differs.
    pub fn rows(&self, sink: &str, query: &str, columns: usize) -> Result<Vec<String>> {
        let wrong = |cause: String| {
            Error::new(Code::SqlInvalid, cause)
                .way_out(format!("an oracle is one SELECT in DataFusion's dialect over {}", self.tables))
                .at(format!("oracle of `{sink}`"))
        };
        let only_queries = SQLOptions::new().with_allow_ddl(false).with_allow_dml(false).with_allow_statements(false);
        let batches = self.runtime.block_on(async {
            let frame = self.session.sql_with_options(query, only_queries).await?;
            let found = frame.schema().fields().len();
            if found != columns {
                let cause = format!("the query has {found} columns, the table {columns}");
                return Err(DataFusionError::Plan(cause));
            }
            frame.collect().await
        });
        fold(&batches.map_err(|error| wrong(error.strip_backtrace()))?)
    }
}

async fn register(session: &SessionContext, input: &Input, format: &Format) -> datafusion::error::Result<()> {
    let name = TableReference::bare(input.table.as_str());
    let folder = format!("{}/", input.folder.display());
    let in_memory = |batches| MemTable::try_new(Arc::clone(&input.schema), vec![batches]).map(Arc::new);
    match format {
        Format::Csv(csv) => session.register_table(name, in_memory(csv_rows(input, csv)?)?).map(drop),
        Format::Json => session.register_json(name, folder, JsonReadOptions::default().schema(&input.schema)).await,
        Format::Parquet => {
            session.register_parquet(name, folder, ParquetReadOptions::default().schema(&input.schema)).await
        }
        Format::Raw => session.register_table(name, in_memory(vec![lines(input)?])?).map(drop),
    }
}

/// By Arrow's reader itself: DataFusion's table of CSV files takes every empty field for NULL and no other.
fn csv_rows(input: &Input, csv: &Csv) -> datafusion::error::Result<Vec<RecordBatch>> {
    // Without a null literal no field is NULL.
    let null = csv.null_literal.as_ref().map_or(r"[^\s\S]".to_owned(), |text| format!("^{}$", regex::escape(text)));
    let null = Regex::new(&null).map_err(|error| DataFusionError::Configuration(error.to_string()))?;
    let mut batches = Vec::new();
    for entry in fs::read_dir(&input.folder)? {
        let reader = ReaderBuilder::new(Arc::clone(&input.schema))
            .with_header(csv.header)
            .with_delimiter(csv.delimiter)
            .with_quote(csv.quote)
            .with_null_regex(null.clone());
        let rows = reader.build(File::open(entry?.path())?)?;
        batches.extend(rows.collect::<std::result::Result<Vec<_>, _>>()?);
    }
    Ok(batches)
}

/// DataFusion has no reader for plain lines.
fn lines(input: &Input) -> datafusion::error::Result<RecordBatch> {
    let mut texts: Vec<String> = Vec::new();
    for entry in fs::read_dir(&input.folder)? {
        texts.extend(fs::read_to_string(entry?.path())?.lines().map(str::to_owned));
    }
    let column: ArrayRef = Arc::new(StringArray::from(texts));
    Ok(RecordBatch::try_new(Arc::clone(&input.schema), vec![column])?)
}

/// `name(column TYPE, …)`.
fn signature(name: &str, schema: &Schema) -> String {
    let columns: Vec<String> =
        schema.fields().iter().map(|f| format!("{} {}", f.name(), SqlType::name_of(f.data_type()))).collect();
    format!("{name}({})", columns.join(", "))
}
