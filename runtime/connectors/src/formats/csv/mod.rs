//! `csv`: records of delimited fields, with or without quotes.

mod decode;
mod encode;
mod records;

use arrow::datatypes::{DataType, SchemaRef};
use streamkeeper_types::{
    Code, Error, Result,
    options::{OptionKind, OptionSpec},
};

use super::{Decoder, Encoder, parse::sql_name};
use crate::settings::Settings;

pub(super) static OPTIONS: [OptionSpec; 9] = [
    OptionSpec::new("csv.field-delimiter", OptionKind::Text, "One ASCII character between fields; `\\t` for a tab.")
        .default(","),
    OptionSpec::new("csv.quote-character", OptionKind::Text, "One ASCII character around a field that needs it.")
        .default("\""),
    OptionSpec::new("csv.disable-quote-character", OptionKind::Boolean, "Whether no character quotes.")
        .default("false"),
    OptionSpec::new(
        "csv.quoted-line-breaks",
        OptionKind::OneOf(&["allow", "refuse"]),
        "Whether a quoted field may contain line breaks. Only with `refuse`, or without quotes, one file can feed \
         several readers.",
    )
    .default("allow"),
    OptionSpec::new("csv.escape-character", OptionKind::Text, "Takes the special meaning from the character after it."),
    OptionSpec::new(
        "csv.null-literal",
        OptionKind::Text,
        "A field with this text is NULL, quoted or not. Without it, no field read is NULL, and NULL is written as an \
         empty field.",
    ),
    OptionSpec::new("csv.allow-comments", OptionKind::Boolean, "Whether lines that begin with `#` are skipped.")
        .default("false"),
    OptionSpec::new(
        "csv.header",
        OptionKind::Boolean,
        "Source: the first line of each file is skipped. Sink: each file begins with the column names.",
    )
    .default("false"),
    OptionSpec::new(
        "csv.array-element-delimiter",
        OptionKind::Text,
        "One ASCII character between the elements of an ARRAY or ROW.",
    )
    .default(";"),
];

/// The format with its options.
#[derive(Debug, Clone)]
pub(crate) struct Csv {
    pub(crate) delimiter: u8,
    pub(crate) quote: Option<u8>,
    pub(crate) escape: Option<u8>,
    pub(crate) line_breaks: LineBreaks,
    pub(crate) null_literal: Option<Vec<u8>>,
    pub(crate) comments: bool,
    pub(crate) header: bool,
    pub(crate) element_delimiter: u8,
}

/// Whether quoted fields may contain line breaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LineBreaks {
    Allow,
    Refuse,
}

impl Csv {
    pub(super) fn new(settings: Settings<'_>) -> Result<Self> {
        let character = |key| -> Result<Option<u8>> {
            let Some(text) = settings.text(key) else { return Ok(None) };
            match text.as_bytes() {
                b"\\t" => Ok(Some(b'\t')),
                [byte] if byte.is_ascii() && !matches!(byte, b'\n' | b'\r') => Ok(Some(*byte)),
                _ => Err(settings.fault(key, format!("`{text}` is not one ASCII character"), "write one, as in ';'")),
            }
        };
        let quotes = !settings.flag("csv.disable-quote-character");
        let csv = Self {
            delimiter: character("csv.field-delimiter")?.unwrap_or(b','),
            quote: character("csv.quote-character")?.filter(|_| quotes),
            escape: character("csv.escape-character")?,
            line_breaks: match settings.text("csv.quoted-line-breaks") {
                Some("refuse") => LineBreaks::Refuse,
                _ => LineBreaks::Allow,
            },
            null_literal: settings.text("csv.null-literal").map(|text| text.as_bytes().to_vec()),
            comments: settings.flag("csv.allow-comments"),
            header: settings.flag("csv.header"),
            element_delimiter: character("csv.array-element-delimiter")?.unwrap_or(b';'),
        };
        let special = [Some(csv.delimiter), csv.quote, csv.escape];
        let special: Vec<u8> = special.into_iter().flatten().collect();
        if special.iter().enumerate().any(|(index, byte)| special[..index].contains(byte)) {
            return Err(settings.fault(
                "csv.field-delimiter",
                "delimiter, quote and escape character are not all different",
                "choose different ones",
            ));
        }
        Ok(csv)
    }

    pub(super) fn line_breaks_end_records(&self) -> bool {
        self.escape.is_none() && (self.quote.is_none() || self.line_breaks == LineBreaks::Refuse)
    }

    pub(super) fn decoder(&self, schema: &SchemaRef) -> Result<Box<dyn Decoder>> {
        check_types(schema)?;
        Ok(Box::new(decode::CsvDecoder::new(self.clone(), schema)))
    }

    pub(super) fn encoder(&self, schema: &SchemaRef) -> Result<Box<dyn Encoder>> {
        check_types(schema)?;
        Ok(Box::new(encode::CsvEncoder::new(self.clone(), schema)))
    }
}

fn check_types(schema: &SchemaRef) -> Result<()> {
    let is_scalar = |data_type: &DataType| !data_type.is_nested();
    for field in schema.fields() {
        let fits = match field.data_type() {
            DataType::List(item) => is_scalar(item.data_type()),
            DataType::Struct(fields) => fields.iter().all(|f| is_scalar(f.data_type())),
            other => is_scalar(other),
        };
        if !fits {
            let cause = format!("format 'csv' cannot hold column `{}`: {}", field.name(), sql_name(field.data_type()));
            return Err(Error::new(Code::SqlInvalid, cause).way_out("use 'format' = 'json'"));
        }
    }
    Ok(())
}
