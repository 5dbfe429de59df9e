//! Columns from the text of their values.

use std::sync::Arc;

use arrow::{
    array::{
        Array, ArrayRef, ArrowPrimitiveType, BinaryBuilder, BooleanBuilder, ListArray, PrimitiveArray, StringBuilder,
        StructArray,
    },
    buffer::{NullBuffer, OffsetBuffer},
    datatypes::{
        DataType, Date32Type, Decimal128Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type,
        Time32MillisecondType, Time32SecondType, Time64MicrosecondType, Time64NanosecondType, TimeUnit,
        TimestampMicrosecondType, TimestampMillisecondType, TimestampNanosecondType, TimestampSecondType,
    },
};
use streamkeeper_types::{Code, Error, Result};

use crate::{
    base64,
    text::{
        Zone, parse_boolean, parse_date, parse_decimal, parse_float, parse_integer, parse_time, parse_timestamp,
        per_second,
    },
};

/// Rows that have a value which cannot be read, each with the first cause found.
#[derive(Debug, Default)]
pub(crate) struct BadRows(Vec<(usize, String)>);

impl BadRows {
    pub(crate) fn add(&mut self, row: usize, cause: impl FnOnce() -> String) {
        // Columns are read one after the other, each from the first row on.
        if !self.0.iter().any(|(known, _)| *known == row) {
            self.0.push((row, cause()));
        }
    }

    /// In order of rows.
    pub(crate) fn into_sorted(mut self) -> Vec<(usize, String)> {
        self.0.sort_unstable_by_key(|(row, _)| *row);
        self.0
    }
}

/// Reads one column. `None` among `texts` is NULL; a text that is no value of the type makes its row bad and its value
/// NULL. `separator` stands between the elements of an ARRAY or ROW.
///
/// # Errors
/// `SQL_UNSUPPORTED` for a type that has no text form.
pub(crate) fn parse_column<'a>(
    data_type: &DataType,
    separator: u8,
    texts: impl Iterator<Item = Option<&'a [u8]>> + Clone,
    bad: &mut BadRows,
) -> Result<ArrayRef> {
    macro_rules! primitive {
        ($type:ty, $parse:expr) => {
            Arc::new(primitive::<$type>(data_type, texts, bad, $parse))
        };
    }
    fn fit<T: TryFrom<i64>>(text: &[u8]) -> Option<T> {
        parse_integer(text).and_then(|value| T::try_from(value).ok())
    }
    Ok(match data_type {
        DataType::Boolean => {
            let mut builder = BooleanBuilder::new();
            for (row, text) in texts.enumerate() {
                let value = text.and_then(parse_boolean);
                if let (Some(text), None) = (text, value) {
                    bad.add(row, || no_value(text, data_type));
                }
                builder.append_option(value);
            }
            Arc::new(builder.finish())
        }
        DataType::Int8 => primitive!(Int8Type, fit),
        DataType::Int16 => primitive!(Int16Type, fit),
        DataType::Int32 => primitive!(Int32Type, fit),
        DataType::Int64 => primitive!(Int64Type, parse_integer),
        #[expect(clippy::cast_possible_truncation, reason = "FLOAT holds the nearest number")]
        DataType::Float32 => primitive!(Float32Type, |t| parse_float(t).map(|v| v as f32)),
        DataType::Float64 => primitive!(Float64Type, parse_float),
        DataType::Decimal128(precision, scale) => {
            let array = primitive::<Decimal128Type>(data_type, texts, bad, |t| parse_decimal(t, *precision, *scale));
            Arc::new(array.with_data_type(data_type.clone()))
        }
        DataType::Utf8 => strings(texts, bad),
        DataType::Binary => binary(texts, bad),
        DataType::Date32 => primitive!(Date32Type, parse_date),
        DataType::Time32(TimeUnit::Second) => {
            primitive!(Time32SecondType, |t| parse_time(t, 1).and_then(|v| i32::try_from(v).ok()))
        }
        DataType::Time32(_) => {
            primitive!(Time32MillisecondType, |t| parse_time(t, 1_000).and_then(|v| i32::try_from(v).ok()))
        }
        DataType::Time64(TimeUnit::Microsecond) => primitive!(Time64MicrosecondType, |t| parse_time(t, 1_000_000)),
        DataType::Time64(_) => primitive!(Time64NanosecondType, |t| parse_time(t, 1_000_000_000)),
        DataType::Timestamp(unit, zone) => {
            let kind = if zone.is_some() { Zone::Utc } else { Zone::None };
            let parse = |text: &[u8]| parse_timestamp(text, per_second(*unit), kind);
            macro_rules! timestamp {
                ($type:ty) => {
                    Arc::new(primitive::<$type>(data_type, texts, bad, parse).with_timezone_opt(zone.clone()))
                };
            }
            match unit {
                TimeUnit::Second => timestamp!(TimestampSecondType),
                TimeUnit::Millisecond => timestamp!(TimestampMillisecondType),
                TimeUnit::Microsecond => timestamp!(TimestampMicrosecondType),
                TimeUnit::Nanosecond => timestamp!(TimestampNanosecondType),
            }
        }
        DataType::List(_) | DataType::Struct(_) => {
            // Few tables have them in text: collected first, so that the recursion ends in one type of iterator.
            let texts: Vec<Option<&[u8]>> = texts.collect();
            nested(data_type, separator, &texts, bad)?
        }
        other => return Err(unsupported(other)),
    })
}

fn primitive<'a, T: ArrowPrimitiveType>(
    data_type: &DataType,
    texts: impl Iterator<Item = Option<&'a [u8]>>,
    bad: &mut BadRows,
    parse: impl Fn(&[u8]) -> Option<T::Native>,
) -> PrimitiveArray<T> {
    let mut values: Vec<T::Native> = Vec::with_capacity(texts.size_hint().0);
    let mut nulls: Vec<usize> = Vec::new();
    for (row, text) in texts.enumerate() {
        match text.map(&parse) {
            Some(Some(value)) => values.push(value),
            problem => {
                if problem.is_some() {
                    bad.add(row, || no_value(text.unwrap_or_default(), data_type));
                }
                nulls.push(row);
                values.push(T::Native::default());
            }
        }
    }
    let nulls = null_buffer(values.len(), &nulls);
    PrimitiveArray::new(values.into(), nulls)
}

/// Validity with NULL at these rows; `None` if there are none.
fn null_buffer(rows: usize, nulls: &[usize]) -> Option<NullBuffer> {
    if nulls.is_empty() {
        return None;
    }
    let mut valid = vec![true; rows];
    nulls.iter().for_each(|row| valid[*row] = false);
    Some(NullBuffer::from(valid))
}

fn strings<'a>(texts: impl Iterator<Item = Option<&'a [u8]>> + Clone, bad: &mut BadRows) -> ArrayRef {
    let bytes = texts.clone().map(|text| text.map_or(0, <[u8]>::len)).sum();
    let mut builder = StringBuilder::with_capacity(texts.size_hint().0, bytes);
    for (row, text) in texts.enumerate() {
        match text.map(std::str::from_utf8) {
            Some(Ok(text)) => builder.append_value(text),
            problem => {
                if problem.is_some() {
                    bad.add(row, || "it is not UTF-8".to_owned());
                }
                builder.append_null();
            }
        }
    }
    Arc::new(builder.finish())
}

fn binary<'a>(texts: impl Iterator<Item = Option<&'a [u8]>>, bad: &mut BadRows) -> ArrayRef {
    let mut builder = BinaryBuilder::new();
    let mut bytes = Vec::new();
    for (row, text) in texts.enumerate() {
        bytes.clear();
        match text.map(|text| base64::decode(text, &mut bytes)) {
            Some(Some(())) => builder.append_value(&bytes),
            problem => {
                if problem.is_some() {
                    bad.add(row, || no_value(text.unwrap_or_default(), &DataType::Binary));
                }
                builder.append_null();
            }
        }
    }
    Arc::new(builder.finish())
}

/// An ARRAY or ROW whose elements stand between separators.
fn nested(data_type: &DataType, separator: u8, texts: &[Option<&[u8]>], bad: &mut BadRows) -> Result<ArrayRef> {
    let nulls: Vec<usize> = (0..texts.len()).filter(|row| texts[*row].is_none()).collect();
    let validity = null_buffer(texts.len(), &nulls);
    if let DataType::Struct(fields) = data_type {
        let mut columns = Vec::with_capacity(fields.len());
        for (index, field) in fields.iter().enumerate() {
            let part = texts.iter().map(|text| text.and_then(|t| t.split(|b| *b == separator).nth(index)));
            columns.push(parse_column(field.data_type(), separator, part.collect::<Vec<_>>().into_iter(), bad)?);
        }
        for (row, text) in texts.iter().enumerate() {
            if text.is_some_and(|t| t.split(|b| *b == separator).count() != fields.len()) {
                bad.add(row, || format!("a ROW has {} fields", fields.len()));
            }
        }
        let row = StructArray::try_new(fields.clone(), columns, validity);
        return Ok(Arc::new(row.map_err(|e| Error::internal(e.to_string()))?));
    }
    let DataType::List(field) = data_type else { return Err(unsupported(data_type)) };
    let items = |text: &&[u8]| if text.is_empty() { 0 } else { text.split(|b| *b == separator).count() };
    let offsets = OffsetBuffer::from_lengths(texts.iter().map(|text| text.as_ref().map_or(0, items)));
    let filled = texts.iter().flatten().filter(|text| !text.is_empty());
    let flat: Vec<Option<&[u8]>> = filled.flat_map(|text| text.split(|b| *b == separator)).map(Some).collect();
    let mut bad_items = BadRows::default();
    let values = parse_column(field.data_type(), separator, flat.into_iter(), &mut bad_items)?;
    for (item, cause) in bad_items.into_sorted() {
        let row = offsets.partition_point(|offset| usize::try_from(*offset).unwrap_or_default() <= item) - 1;
        bad.add(row, || cause);
    }
    let list = ListArray::try_new(Arc::clone(field), offsets, values, validity);
    Ok(Arc::new(list.map_err(|e| Error::internal(e.to_string()))?))
}

/// Marks rows in which a NOT NULL column is NULL.
pub(crate) fn check_not_null(name: &str, array: &dyn Array, bad: &mut BadRows) {
    if array.null_count() == 0 {
        return;
    }
    for row in (0..array.len()).filter(|row| array.is_null(*row)) {
        bad.add(row, || format!("column `{name}` is NOT NULL and has no value"));
    }
}

fn no_value(text: &[u8], data_type: &DataType) -> String {
    format!("`{}` is no {}", excerpt(text, 60), sql_name(data_type))
}

/// The beginning of a text for messages, control characters and bad UTF-8 replaced.
pub(crate) fn excerpt(bytes: &[u8], characters: usize) -> String {
    // Four bytes hold any character.
    let start = String::from_utf8_lossy(&bytes[..bytes.len().min(characters * 4)]);
    let mut text: String = start.chars().take(characters).map(|c| if c.is_control() { ' ' } else { c }).collect();
    if start.chars().nth(characters).is_some() || bytes.len() > characters * 4 {
        text.push('…');
    }
    text
}

/// A type as users write it.
pub(crate) fn sql_name(data_type: &DataType) -> String {
    match data_type {
        DataType::Boolean => "BOOLEAN".to_owned(),
        DataType::Int8 => "TINYINT".to_owned(),
        DataType::Int16 => "SMALLINT".to_owned(),
        DataType::Int32 => "INT".to_owned(),
        DataType::Int64 => "BIGINT".to_owned(),
        DataType::Float32 => "FLOAT".to_owned(),
        DataType::Float64 => "DOUBLE".to_owned(),
        DataType::Decimal128(precision, scale) => format!("DECIMAL({precision}, {scale})"),
        DataType::Utf8 => "STRING".to_owned(),
        DataType::Binary => "BYTES in Base64".to_owned(),
        DataType::Date32 => "DATE".to_owned(),
        DataType::Time32(_) | DataType::Time64(_) => "TIME".to_owned(),
        DataType::Timestamp(_, None) => "TIMESTAMP".to_owned(),
        DataType::Timestamp(_, Some(_)) => "TIMESTAMP_LTZ".to_owned(),
        DataType::List(field) => format!("ARRAY<{}>", sql_name(field.data_type())),
        DataType::Struct(_) => "ROW".to_owned(),
        DataType::Map(..) => "MAP".to_owned(),
        other => other.to_string(),
    }
}

fn unsupported(data_type: &DataType) -> Error {
    Error::new(Code::SqlUnsupported, format!("{} has no text form in this format", sql_name(data_type)))
        .way_out("use 'format' = 'json'")
}
