//! State that has no key as tables: positions of sources, what sinks have still to commit, watermarks, and what split
//! coordinators know. It is small and lies in the manifest, in checkpoints and savepoints alike.

use std::sync::Arc;

use arrow::{
    array::{ArrayRef, BinaryArray, Int32Array, Int64Array, RecordBatch, StringArray, TimestampMillisecondArray},
    datatypes::{DataType, Field, Schema, TimeUnit},
};
use streamkeeper_checkpoint::{Manifest, ManifestOperator};
use streamkeeper_connectors::file_position;
use streamkeeper_engine::{SPLITS, SplitItem};
use streamkeeper_types::{Code, Result, ResultExt, Watermark};

/// One list of one operator.
#[derive(Debug)]
pub struct OperatorTable {
    /// What `state query` calls it, as `source_access_log_splits`.
    pub name: String,
    /// Id of the operator.
    pub operator: String,
    /// Subtasks that hold items.
    pub subtasks: usize,
    /// Size of all items.
    pub bytes: u64,
    /// One row an item. The first column is the subtask, the last the item's bytes.
    pub rows: RecordBatch,
}

/// Every list of a snapshot that has items.
///
/// # Errors
/// `SNAPSHOT_FOREIGN` for positions of another version.
pub fn tables(manifest: &Manifest) -> Result<Vec<OperatorTable>> {
    let mut tables: Vec<OperatorTable> = Vec::new();
    for operator in &manifest.operators {
        for (list, items) in lists(operator) {
            let mut name = format!("{}_{list}", identifier(&operator.name));
            if tables.iter().any(|table| table.name == name) {
                name = format!("{name}_{}", tables.len());
            }
            let mut subtasks: Vec<i32> = items.iter().map(|(subtask, _)| *subtask).collect();
            subtasks.dedup();
            let rows = if list == SPLITS { splits(&items)? } else { batch(&items, Vec::new())? };
            tables.push(OperatorTable {
                name,
                operator: operator.id.to_string(),
                subtasks: subtasks.len(),
                bytes: items.iter().map(|(_, bytes)| bytes.len() as u64).sum(),
                rows,
            });
        }
    }
    Ok(tables)
}

/// A subtask and one of its items.
type Item<'a> = (i32, &'a [u8]);

/// Items by list, in the order of subtasks.
fn lists(operator: &ManifestOperator) -> Vec<(&str, Vec<Item<'_>>)> {
    let mut lists: Vec<(&str, Vec<Item<'_>>)> = Vec::new();
    for (subtask, part) in (0_i32..).zip(&operator.subtasks) {
        for (name, list) in &part.lists {
            let items = list.items.iter().map(|item| (subtask, item.as_slice()));
            match lists.iter_mut().find(|(known, _)| known == name) {
                Some((_, known)) => known.extend(items),
                None => lists.push((name, items.collect())),
            }
        }
    }
    lists.retain(|(_, items)| !items.is_empty());
    if let Some(state) = &operator.coordinator {
        lists.push(("coordinator", vec![(0, state.as_slice())]));
    }
    lists
}

/// As a name that SQL takes without quotes: `Source(access_log)` becomes `source_access_log`.
fn identifier(name: &str) -> String {
    let mut text = String::new();
    for word in name.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty()) {
        if !text.is_empty() {
            text.push('_');
        }
        text.push_str(&word.to_ascii_lowercase());
    }
    text
}

/// Splits with what can be read of them; position columns are NULL where the source reads no files.
fn splits(items: &[Item<'_>]) -> Result<RecordBatch> {
    let decoded = items.iter().map(|(_, bytes)| SplitItem::decode(bytes)).collect::<Result<Vec<_>>>()?;
    let positions: Vec<_> = decoded.iter().map(|item| file_position(&item.split)).collect();
    let number = |of: fn(&streamkeeper_connectors::FilePosition) -> u64| -> ArrayRef {
        let number = |position: &Option<_>| position.as_ref().and_then(|p| i64::try_from(of(p)).ok());
        Arc::new(positions.iter().map(number).collect::<Int64Array>())
    };
    let watermark = |item: &SplitItem| (item.watermark != Watermark::MIN).then_some(item.watermark.0);
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("split", Arc::new(StringArray::from_iter_values(decoded.iter().map(|item| &item.split.id)))),
        ("watermark", Arc::new(decoded.iter().map(watermark).collect::<TimestampMillisecondArray>())),
        ("path", Arc::new(positions.iter().map(|p| p.as_ref().map(|p| p.path.as_str())).collect::<StringArray>())),
        ("start_offset", number(|position| position.start)),
        ("end_offset", number(|position| position.end)),
        ("next_offset", number(|position| position.next)),
    ];
    batch(items, columns)
}

fn batch(items: &[Item<'_>], readable: Vec<(&str, ArrayRef)>) -> Result<RecordBatch> {
    let mut columns: Vec<(&str, ArrayRef)> =
        vec![("subtask", Arc::new(items.iter().map(|(subtask, _)| Some(*subtask)).collect::<Int32Array>()))];
    columns.extend(readable);
    columns.push(("payload", Arc::new(BinaryArray::from_iter_values(items.iter().map(|(_, bytes)| bytes)))));
    let fields: Vec<Field> =
        columns.iter().map(|(name, column)| Field::new(*name, column.data_type().clone(), true)).collect();
    let columns = columns.into_iter().map(|(_, column)| column).collect();
    RecordBatch::try_new(Arc::new(Schema::new(fields)), columns)
        .or_code(Code::Internal, || "items of operator state".to_owned())
}

/// Columns as `state list` shows them: the subtask, and the others.
#[must_use]
pub fn columns(table: &OperatorTable) -> (Vec<String>, Vec<String>) {
    let schema = table.rows.schema();
    let texts = schema.fields().iter().map(|field| {
        let kind = match field.data_type() {
            DataType::Int32 => "INT",
            DataType::Int64 => "BIGINT",
            DataType::Timestamp(TimeUnit::Millisecond, _) => "TIMESTAMP(3)",
            DataType::Binary => "BYTES",
            _ => "STRING",
        };
        format!("{} {kind}", field.name())
    });
    let mut keys: Vec<String> = texts.collect();
    let values = keys.split_off(1);
    (keys, values)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_operators_name_becomes_an_identifier() {
        assert_eq!(identifier("Source(access_log)"), "source_access_log");
        assert_eq!(identifier("Window(TUMBLE 1m)"), "window_tumble_1m");
    }
}
