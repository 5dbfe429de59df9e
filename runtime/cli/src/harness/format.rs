//! A table's format as far as generated inputs and oracles go: written and described by Arrow's own crates, so that the
//! engine's formats are checked against others.

use std::{fs::File, io::Write, path::Path};

use arrow::{
    array::{AsArray, RecordBatch},
    csv, json,
};
use parquet::{arrow::ArrowWriter, file::properties::WriterProperties};
use streamkeeper_sql::catalog::Table;
use streamkeeper_types::{Code, Error, Result};

/// What the bytes of an input file mean.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Format {
    Csv(Csv),
    Json,
    /// One text a line.
    Raw,
    Parquet,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Csv {
    pub delimiter: u8,
    pub quote: u8,
    pub null_literal: Option<String>,
    pub header: bool,
}

const SQL_TIME: &str = "%Y-%m-%d %H:%M:%S%.f";
/// Rows of a row group: few, so that a file has several.
const ROW_GROUP: usize = 500;

impl Format {
    /// # Errors
    /// `JOB_INVALID` for options that only the engine knows.
    pub fn of(table: &Table) -> Result<Self> {
        let fault = |cause: String| Err(Error::new(Code::JobInvalid, format!("table `{}`: {cause}", table.name)));
        match table.option("format") {
            Some("csv") => {}
            Some("json") => return Ok(Self::Json),
            Some("raw") => return Ok(Self::Raw),
            Some("parquet") => return Ok(Self::Parquet),
            other => return fault(format!("no input can be generated or read in format {other:?}")),
        }
        let known = ["csv.field-delimiter", "csv.quote-character", "csv.quoted-line-breaks", "csv.null-literal"];
        let known = |key: &str| known.contains(&key) || key == "csv.header" || !key.starts_with("csv.");
        if let Some(key) = table.options.keys().find(|key| !known(key)) {
            return fault(format!("generated inputs and oracles do not know '{key}'"));
        }
        let character = |key, default| match table.option(key) {
            None => default,
            Some("\\t") => b'\t',
            Some(text) => text.bytes().next().unwrap_or(default),
        };
        Ok(Self::Csv(Csv {
            delimiter: character("csv.field-delimiter", b','),
            quote: character("csv.quote-character", b'"'),
            null_literal: table.option("csv.null-literal").map(str::to_owned),
            header: table.option("csv.header") == Some("true"),
        }))
    }

    /// Ending of file names.
    #[must_use]
    pub fn extension(&self) -> &'static str {
        match self {
            Self::Csv(_) => "csv",
            Self::Json => "json",
            Self::Raw => "txt",
            Self::Parquet => "parquet",
        }
    }

    /// Writes a file of these rows.
    ///
    /// # Errors
    /// `NOT_WRITABLE`, or `JOB_INVALID` for rows that the format cannot hold.
    pub fn write(&self, path: &Path, rows: &RecordBatch) -> Result<()> {
        let mut file = File::create(path).map_err(|e| Error::io(Code::NotWritable, path.display(), &e))?;
        let unfit = |e: &dyn std::error::Error| Error::new(Code::JobInvalid, format!("writing generated rows: {e}"));
        match self {
            Self::Csv(format) => {
                let writer = csv::WriterBuilder::new()
                    .with_delimiter(format.delimiter)
                    .with_quote(format.quote)
                    .with_header(format.header)
                    .with_null(format.null_literal.clone().unwrap_or_default())
                    .with_timestamp_format(SQL_TIME.to_owned());
                writer.build(file).write(rows).map_err(|e| unfit(&e))
            }
            Self::Json => {
                let writer = json::WriterBuilder::new().with_timestamp_format(SQL_TIME.to_owned());
                let mut writer = writer.build::<_, json::writer::LineDelimited>(file);
                writer.write(rows).and_then(|()| writer.finish()).map_err(|e| unfit(&e))
            }
            Self::Raw => {
                let texts = rows.column(0).as_string_opt::<i32>();
                let texts = texts.ok_or_else(|| Error::new(Code::JobInvalid, "format 'raw' holds one STRING"))?;
                let text: String = texts.iter().map(|line| format!("{}\n", line.unwrap_or_default())).collect();
                file.write_all(text.as_bytes()).map_err(|e| Error::io(Code::NotWritable, path.display(), &e))
            }
            Self::Parquet => {
                let properties = WriterProperties::builder().set_max_row_group_row_count(Some(ROW_GROUP)).build();
                let mut writer = ArrowWriter::try_new(file, rows.schema(), Some(properties)).map_err(|e| unfit(&e))?;
                writer.write(rows).map_err(|e| unfit(&e))?;
                writer.close().map(drop).map_err(|e| unfit(&e))
            }
        }
    }
}
