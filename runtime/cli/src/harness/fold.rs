//! What a changelog amounts to in the end: its rows as text, each as often as it was added and not taken back.

use std::collections::BTreeMap;

use arrow::{
    array::{Array, AsArray, RecordBatch},
    datatypes::{DataType, Int8Type},
    util::display::{ArrayFormatter, FormatOptions},
};
use streamkeeper_types::{Code, Error, ROW_KIND_COLUMN, Result, RowKind};

/// Folds batches in their order; a row taken back that is not there is an error of the engine.
///
/// # Errors
/// `TEST_FAILED` for such a row, `INTERNAL` for values that cannot be shown.
pub fn fold(batches: &[RecordBatch]) -> Result<Vec<String>> {
    let mut rows: BTreeMap<String, i64> = BTreeMap::new();
    for batch in batches {
        for (text, kind) in texts(batch)? {
            *rows.entry(text).or_default() += if kind.adds() { 1 } else { -1 };
        }
    }
    let mut folded = Vec::new();
    for (text, count) in rows {
        let count = usize::try_from(count).map_err(|_| {
            Error::new(Code::TestFailed, format!("row `{text}` is taken back {} times more often than added", -count))
        })?;
        folded.extend(std::iter::repeat_n(text, count));
    }
    folded.sort();
    Ok(folded)
}

/// Each row as CSV text, with what it does.
fn texts(batch: &RecordBatch) -> Result<Vec<(String, RowKind)>> {
    let fail = |e: arrow::error::ArrowError| Error::internal(e.to_string());
    let options = FormatOptions::new()
        .with_null("NULL")
        .with_timestamp_format(Some("%Y-%m-%d %H:%M:%S%.3f"))
        .with_timestamp_tz_format(Some("%Y-%m-%d %H:%M:%S%.3f"));
    let schema = batch.schema();
    let last = schema.fields().len().saturating_sub(1);
    let updating = schema.fields().get(last).is_some_and(|f| f.name() == ROW_KIND_COLUMN);
    let shown = if updating { last } else { schema.fields().len() };
    let columns = (0..shown)
        .map(|i| Ok((batch.column(i), ArrayFormatter::try_new(batch.column(i).as_ref(), &options).map_err(fail)?)))
        .collect::<Result<Vec<_>>>()?;
    let kinds = updating.then(|| batch.column(last).as_primitive::<Int8Type>());
    (0..batch.num_rows())
        .map(|row| {
            let values: Vec<String> = columns
                .iter()
                .map(|(array, shown)| {
                    let text = shown.value(row).to_string();
                    let is_text =
                        matches!(array.data_type(), DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View);
                    if is_text && array.is_valid(row) { quoted(text) } else { text }
                })
                .collect();
            let kind = match kinds {
                None => RowKind::Insert,
                Some(kinds) => RowKind::from_code(kinds.value(row))
                    .ok_or_else(|| Error::internal(format!("row kind {}", kinds.value(row))))?,
            };
            Ok((values.join(","), kind))
        })
        .collect()
}

/// Quoted where CSV would be ambiguous: separators, quotes, and text that looks like no text or like NULL.
fn quoted(text: String) -> String {
    if text.is_empty() || text == "NULL" || text.contains([',', '"', '\n']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text
    }
}
