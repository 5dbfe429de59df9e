//! ARRAY, MAP and ROW as texts: `[1, 2]`, `{a=1, b=2}`, `(1, b)`; what is NULL within them is `NULL`.

use arrow::array::{Array, ArrayRef, AsArray, StringArray};
use datafusion::common::{Result, plan_err};

use super::texts::to_text;
use crate::{functions::call::Call, types::SqlType};

/// A column of nested values whose items are texts already.
pub(super) struct Nested {
    array: ArrayRef,
    items: Items,
}

enum Items {
    Array(StringArray),
    Map(StringArray, StringArray),
    Row(Vec<StringArray>),
}

impl Nested {
    pub(super) fn new(call: &Call, array: &ArrayRef) -> Result<Self> {
        let items = if let Some(list) = array.as_list_opt::<i32>() {
            Items::Array(texts(call, list.values())?)
        } else if let Some(map) = array.as_map_opt() {
            Items::Map(texts(call, map.keys())?, texts(call, map.values())?)
        } else if let Some(row) = array.as_struct_opt() {
            Items::Row(row.columns().iter().map(|column| texts(call, column)).collect::<Result<_>>()?)
        } else {
            return plan_err!("{} is no ARRAY, MAP or ROW", SqlType::name_of(array.data_type()));
        };
        Ok(Self { array: array.clone(), items })
    }

    /// `None` for NULL.
    pub(super) fn write(&self, row: usize, out: &mut String) -> Option<()> {
        if self.array.is_null(row) {
            return None;
        }
        let within = |offsets: &[i32]| {
            let [start, end] = [offsets[row], offsets[row + 1]].map(|offset| usize::try_from(offset).unwrap_or(0));
            start..end
        };
        match &self.items {
            Items::Array(items) => {
                out.push('[');
                for (n, index) in within(self.array.as_list::<i32>().value_offsets()).enumerate() {
                    separate(n, out);
                    out.push_str(text(items, index));
                }
                out.push(']');
            }
            Items::Map(keys, values) => {
                out.push('{');
                for (n, index) in within(self.array.as_map().value_offsets()).enumerate() {
                    separate(n, out);
                    out.push_str(text(keys, index));
                    out.push('=');
                    out.push_str(text(values, index));
                }
                out.push('}');
            }
            Items::Row(fields) => {
                out.push('(');
                for (n, field) in fields.iter().enumerate() {
                    separate(n, out);
                    out.push_str(text(field, row));
                }
                out.push(')');
            }
        }
        Some(())
    }
}

fn texts(call: &Call, items: &ArrayRef) -> Result<StringArray> {
    if items.data_type().is_null() {
        return Ok(StringArray::new_null(items.len()));
    }
    let args = call.over(items, &SqlType::STRING.arrow());
    Ok(to_text(&Call::new(&args), &SqlType::STRING)?.as_string::<i32>().clone())
}

fn separate(position: usize, out: &mut String) {
    if position > 0 {
        out.push_str(", ");
    }
}

fn text(items: &StringArray, index: usize) -> &str {
    if items.is_null(index) { "NULL" } else { items.value(index) }
}
