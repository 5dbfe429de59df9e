//! What bytes of a file mean: csv, json, raw (lines) and parquet.
//!
//! Line formats implement [`Decoder`] and [`Encoder`] over byte buffers and know nothing of files. Parquet reads and
//! writes whole files of its own.

mod csv;
mod json;
mod lines;
mod parquet;
mod parse;
mod raw;

use std::{ops::Range, path::Path};

use arrow::{
    array::{ArrayRef, BooleanArray, RecordBatch},
    compute::filter,
    datatypes::SchemaRef,
};
use streamkeeper_types::{
    Code, Error, Result,
    options::{OptionKind, OptionSpec},
};

use crate::settings::Settings;

pub(crate) use json::write_string as write_json_string;
pub(crate) use parquet::{ParquetSplit, ParquetWriter};
pub(crate) use parse::{BadRows, excerpt, parse_column};
use {csv::Csv, json::Json, raw::Raw};

/// `'format' = '…'`, with its options.
#[derive(Debug, Clone)]
pub(crate) enum Format {
    Csv(Csv),
    Json(Json),
    Raw,
    Parquet,
}

/// What [`Decoder::decode`] reads.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Input<'a> {
    /// Begins where a record begins.
    pub(crate) bytes: &'a [u8],
    /// No record is read that begins at or behind this index.
    pub(crate) stop: usize,
    pub(crate) end: End,
    /// Records to read at most.
    pub(crate) max_rows: usize,
}

/// What follows the bytes of an input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    /// More of the file: a record without its end is left for later.
    MoreFollows,
    /// Nothing: the last record may lack its line break.
    OfFile,
}

/// What [`Decoder::decode`] read.
#[derive(Debug, Default)]
pub(crate) struct Decoded {
    /// One array a column, of equal length; empty if no record was good.
    pub(crate) columns: Vec<ArrayRef>,
    /// Index at which the next record begins. If it is 0 and records remain, a record has not ended yet.
    pub(crate) consumed: usize,
    /// Records that could not be read, in order.
    pub(crate) bad: Vec<BadRecord>,
}

/// A record that could not be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct BadRecord {
    /// Its bytes in the input, without the line break.
    pub(crate) range: Range<usize>,
    pub(crate) cause: String,
}

/// Turns bytes into columns. Never panics, whatever the bytes.
pub(crate) trait Decoder: Send {
    /// # Errors
    /// `INTERNAL` only; what is wrong with a record is in [`Decoded::bad`].
    fn decode(&mut self, input: Input<'_>) -> Result<Decoded>;
}

/// Turns batches into bytes.
pub(crate) trait Encoder: Send {
    /// What a file begins with.
    fn header(&self, _out: &mut Vec<u8>) {}

    /// Appends the records of a batch.
    ///
    /// # Errors
    /// `INTERNAL` for a type that planning should have refused.
    fn encode(&mut self, batch: &RecordBatch, out: &mut Vec<u8>) -> Result<()>;
}

const FORMAT: OptionSpec =
    OptionSpec::new("format", OptionKind::OneOf(&["csv", "json", "raw", "parquet"]), "What the bytes of a file mean.")
        .required();

impl Format {
    /// Options of all formats.
    pub(crate) fn options() -> Vec<OptionSpec> {
        [&[FORMAT], csv::OPTIONS.as_slice(), json::OPTIONS.as_slice()].concat()
    }

    /// # Errors
    /// `OPTION_INVALID` if options of another format are given, or values do not fit each other.
    pub(crate) fn new(settings: Settings<'_>) -> Result<Self> {
        let name = settings.text("format").unwrap_or_default();
        for spec in csv::OPTIONS.iter().chain(&json::OPTIONS) {
            if settings.is_given(spec.key) && !spec.key.starts_with(&format!("{name}.")) {
                return Err(settings.fault(spec.key, format!("the table's format is '{name}'"), "remove the option"));
            }
        }
        Ok(match name {
            "csv" => Self::Csv(Csv::new(settings)?),
            "json" => Self::Json(Json::new(settings)),
            "raw" => Self::Raw,
            _ => Self::Parquet,
        })
    }

    /// Ending of file names.
    pub(crate) fn extension(&self) -> &'static str {
        match self {
            Self::Csv(_) => "csv",
            Self::Json(_) => "json",
            Self::Raw => "txt",
            Self::Parquet => "parquet",
        }
    }

    /// Whether each line break ends a record, so that a reader can begin anywhere in a file.
    pub(crate) fn can_split(&self) -> bool {
        match self {
            Self::Csv(csv) => csv.line_breaks_end_records(),
            Self::Json(_) | Self::Raw | Self::Parquet => true,
        }
    }

    /// Whether a file's first line is a header.
    pub(crate) fn has_header(&self) -> bool {
        matches!(self, Self::Csv(csv) if csv.header)
    }

    /// A decoder for these columns; `None` for parquet.
    ///
    /// # Errors
    /// `SQL_INVALID` if the format cannot hold them.
    pub(crate) fn decoder(&self, schema: &SchemaRef) -> Result<Option<Box<dyn Decoder>>> {
        Ok(Some(match self {
            Self::Csv(csv) => csv.decoder(schema)?,
            Self::Json(json) => json.decoder(schema)?,
            Self::Raw => Raw::decoder(schema)?,
            Self::Parquet => return Ok(None),
        }))
    }

    /// An encoder for these columns; `None` for parquet.
    ///
    /// # Errors
    /// `SQL_INVALID` if the format cannot hold them.
    pub(crate) fn encoder(&self, schema: &SchemaRef) -> Result<Option<Box<dyn Encoder>>> {
        Ok(Some(match self {
            Self::Csv(csv) => csv.encoder(schema)?,
            Self::Json(json) => json.encoder(schema),
            Self::Raw => Raw::encoder(schema)?,
            Self::Parquet => return Ok(None),
        }))
    }
}

/// A file is torn, or not what its name or the table says.
pub(crate) fn file_corrupt(path: &Path, why: impl std::fmt::Display) -> Error {
    Error::new(Code::FileCorrupt, format!("{}: {why}", path.display()))
        .way_out("put a whole file of the table's format in its place, then run the job again")
}

/// Leaves out the rows that are bad; no columns if none is left. `bad` is in order of rows.
///
/// # Errors
/// `INTERNAL` for a type that cannot be filtered.
fn keep_good(columns: Vec<ArrayRef>, bad: &[(usize, String)]) -> Result<Vec<ArrayRef>> {
    let rows = columns.first().map_or(0, |column| column.len());
    if rows == bad.len() {
        return Ok(Vec::new());
    }
    if bad.is_empty() {
        return Ok(columns);
    }
    let mut good = vec![true; rows];
    bad.iter().for_each(|(row, _)| good[*row] = false);
    let good = BooleanArray::from(good);
    let kept = columns.iter().map(|column| filter(column, &good)).collect::<Result<_, _>>();
    kept.map_err(|e| Error::internal(e.to_string()))
}
