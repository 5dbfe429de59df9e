//! Values that are not the tape decoder's business, wherever they are nested: it knows no base64, and it cuts the digits
//! of a DECIMAL off where they are to be rounded. It yields them as text.

use std::sync::Arc;

use arrow::{
    array::{Array, ArrayRef, AsArray, Decimal128Array, ListArray, MapArray, StructArray},
    datatypes::{DataType, Decimal128Type, Field, FieldRef, Fields},
};
use streamkeeper_types::{Code, Result, ResultExt};

use crate::formats::parse::{BadRows, parse_column};

/// The type as which the tape decoder reads values of `data_type`.
pub(super) fn read_type(data_type: &DataType) -> DataType {
    let read = |field: &FieldRef| -> FieldRef {
        Arc::new(Field::new(field.name(), read_type(field.data_type()), field.is_nullable()))
    };
    match data_type {
        DataType::Binary | DataType::Decimal128(..) => DataType::Utf8,
        DataType::List(item) => DataType::List(read(item)),
        DataType::Struct(fields) => DataType::Struct(fields.iter().map(read).collect()),
        DataType::Map(entries, sorted) => DataType::Map(read(entries), *sorted),
        other => other.clone(),
    }
}

/// A column of the [`read_type`] of `data_type`, with its texts parsed. What is no value is added to `bad`, under the
/// record that `record` gives for a row of the column.
///
/// # Errors
/// `INTERNAL` for a column of another type.
pub(super) fn parsed(
    data_type: &DataType,
    column: ArrayRef,
    bad: &mut BadRows,
    record: &dyn Fn(usize) -> usize,
) -> Result<ArrayRef> {
    if column.data_type() == data_type {
        return Ok(column);
    }
    let internal = || format!("a JSON column of type {data_type}");
    Ok(match data_type {
        DataType::Binary | DataType::Decimal128(..) => {
            let texts = column.as_string::<i32>().iter().map(|text| text.map(str::as_bytes));
            let mut own = BadRows::default();
            let column = parse_column(data_type, b',', texts.collect::<Vec<_>>().into_iter(), &mut own)?;
            own.into_sorted().into_iter().for_each(|(row, cause)| bad.add(record(row), || cause));
            column
        }
        DataType::List(item) => {
            let list = column.as_list::<i32>();
            let (offsets, nulls) = (list.offsets(), list.nulls().cloned());
            let of_list = |row: usize| record(offsets.partition_point(|offset| *offset as usize <= row) - 1);
            let items = field(item, Arc::clone(list.values()), bad, &of_list)?;
            Arc::new(
                ListArray::try_new(Arc::clone(item), offsets.clone(), items, nulls)
                    .or_code(Code::Internal, internal)?,
            )
        }
        DataType::Struct(fields) => Arc::new(row(fields, column.as_struct(), bad, record)?),
        DataType::Map(entries, sorted) => {
            let map = column.as_map();
            let (offsets, nulls) = (map.offsets(), map.nulls().cloned());
            let of_map = |row: usize| record(offsets.partition_point(|offset| *offset as usize <= row) - 1);
            let DataType::Struct(fields) = entries.data_type() else { return Ok(column) };
            let content = row(fields, map.entries(), bad, &of_map)?;
            let map = MapArray::try_new(Arc::clone(entries), offsets.clone(), content, nulls, *sorted);
            Arc::new(map.or_code(Code::Internal, internal)?)
        }
        _ => column,
    })
}

fn row(fields: &Fields, read: &StructArray, bad: &mut BadRows, record: &dyn Fn(usize) -> usize) -> Result<StructArray> {
    let columns = fields.iter().zip(read.columns()).map(|(of, column)| field(of, Arc::clone(column), bad, record));
    StructArray::try_new(fields.clone(), columns.collect::<Result<_>>()?, read.nulls().cloned())
        .or_code(Code::Internal, || "a ROW of JSON".into())
}

fn field(field: &FieldRef, column: ArrayRef, bad: &mut BadRows, record: &dyn Fn(usize) -> usize) -> Result<ArrayRef> {
    let column = parsed(field.data_type(), column, bad, record)?;
    if field.is_nullable() || column.null_count() == 0 {
        return Ok(column);
    }
    // NOT NULL, but no value: the record is bad, or the ROW around it is NULL. Neither shows what stands here.
    Ok(match column.as_primitive_opt::<Decimal128Type>() {
        Some(decimals) => {
            Arc::new(Decimal128Array::new(decimals.values().clone(), None).with_data_type(field.data_type().clone()))
        }
        None => column,
    })
}
