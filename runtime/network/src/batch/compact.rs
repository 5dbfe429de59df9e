//! Frees columns from data that they keep alive and do not show.
//!
//! A slice of a view column (`Utf8View`, `BinaryView`) holds all buffers of the column it was cut from, and IPC would
//! ship them all: 128 rows out of 8,192 as 251 KB instead of 5 KB.

use std::sync::Arc;

use arrow::{
    array::{Array, ArrayData, ArrayRef, AsArray, RecordBatch, UInt32Array, make_array},
    compute::take,
    datatypes::DataType,
    error::ArrowError,
};

/// Unused bytes that are not worth a copy.
const SLACK: usize = 4 << 10;

/// The same rows without unused view buffers.
///
/// # Errors
/// Those of Arrow's `take`, for nested columns.
pub(super) fn compact(batch: RecordBatch) -> Result<RecordBatch, ArrowError> {
    if !batch.schema_ref().fields().iter().any(|field| has_views(field.data_type())) {
        return Ok(batch);
    }
    let columns = batch.columns().iter().map(compact_column).collect::<Result<Vec<_>, _>>()?;
    RecordBatch::try_new(Arc::clone(batch.schema_ref()), columns)
}

fn has_views(data_type: &DataType) -> bool {
    match data_type {
        DataType::Utf8View | DataType::BinaryView => true,
        DataType::List(field)
        | DataType::LargeList(field)
        | DataType::ListView(field)
        | DataType::LargeListView(field)
        | DataType::FixedSizeList(field, _)
        | DataType::Map(field, _) => has_views(field.data_type()),
        DataType::Struct(fields) => fields.iter().any(|field| has_views(field.data_type())),
        DataType::Dictionary(_, values) => has_views(values),
        _ => false,
    }
}

fn compact_column(column: &ArrayRef) -> Result<ArrayRef, ArrowError> {
    if let Some(compacted) = compact_views(column.as_ref()) {
        return Ok(compacted.unwrap_or_else(|| Arc::clone(column)));
    }
    if !has_views(column.data_type()) {
        return Ok(Arc::clone(column));
    }
    // `take` leaves nested columns without offsets and without children's unused rows, so that children can be done alone.
    let rows = u32::try_from(column.len()).map_err(|e| ArrowError::ComputeError(e.to_string()))?;
    let whole = take(column, &UInt32Array::from_iter_values(0..rows), None)?.to_data();
    Ok(make_array(compact_children(whole)?))
}

fn compact_children(data: ArrayData) -> Result<ArrayData, ArrowError> {
    let children = data.child_data().iter().map(|child| {
        let child = make_array(child.clone());
        match compact_views(child.as_ref()) {
            Some(compacted) => Ok(compacted.map_or_else(|| child.to_data(), |c| c.to_data())),
            None => compact_children(child.to_data()),
        }
    });
    let children = children.collect::<Result<Vec<_>, ArrowError>>()?;
    data.into_builder().child_data(children).build()
}

/// `None`: no view column. `Some(None)`: it is compact already.
fn compact_views(column: &dyn Array) -> Option<Option<ArrayRef>> {
    match column.data_type() {
        DataType::Utf8View => {
            let views = column.as_string_view();
            let is_wasteful = held(views.data_buffers()) > 2 * views.total_buffer_bytes_used() + SLACK;
            Some(is_wasteful.then(|| Arc::new(views.gc()) as ArrayRef))
        }
        DataType::BinaryView => {
            let views = column.as_binary_view();
            let is_wasteful = held(views.data_buffers()) > 2 * views.total_buffer_bytes_used() + SLACK;
            Some(is_wasteful.then(|| Arc::new(views.gc()) as ArrayRef))
        }
        _ => None,
    }
}

fn held(buffers: &[arrow::buffer::Buffer]) -> usize {
    buffers.iter().map(arrow::buffer::Buffer::len).sum()
}
