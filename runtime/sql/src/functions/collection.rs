//! Arrays, maps and rows.

use std::sync::Arc;

use arrow::{
    array::{Array, ArrayRef, AsArray, ListArray, ListBuilder, StringBuilder, StructArray, UInt32Array},
    buffer::OffsetBuffer,
    compute::{cast, concat, take},
    datatypes::{DataType, Field, Fields, Int32Type},
};
use datafusion::{
    common::{Result, plan_err},
    logical_expr::type_coercion::binary::type_union_resolution,
};

use super::{
    call::Call,
    definition::{
        Definition,
        Param::{Any, Text},
        Types,
        returns::{int, text},
    },
    fault::evaluation,
};
use crate::types::SqlType;

pub(crate) static FUNCTIONS: [Definition; 6] = [
    Definition::new("cardinality", "CARDINALITY(array | map) → INT", &[Any], collection, cardinality),
    Definition::new("element", "ELEMENT(array) → element", &[Any], element_type, element)
        .note("NULL for an empty array; more than one element fails the job."),
    Definition::new("row", "ROW(x, …) → ROW", &[Any], row_type, row)
        .repeats()
        .note("Fields are named EXPR$0, EXPR$1, …"),
    Definition::new("array_prepend", "ARRAY_PREPEND(array, x) → ARRAY", &[Any, Any], prepended_type, prepend),
    Definition::new("split", "SPLIT(text STRING, separator STRING) → ARRAY<STRING>", &[Text, Text], texts_type, split)
        .note("An empty separator splits into characters."),
    Definition::new("typeof", "TYPEOF(x) → STRING", &[Any], text, type_of)
        .note("Texts are STRING and times have 3, 6 or 9 digits, whatever their declared length."),
];

fn collection(types: &Types) -> Result<DataType> {
    match types.of(0) {
        DataType::List(_) | DataType::Map(..) => int(types),
        other => plan_err!("CARDINALITY takes an array or a map, not {}", SqlType::name_of(&other)),
    }
}

/// Begin and end of each row's items.
fn offsets(array: &ArrayRef) -> Result<Vec<i32>> {
    if let Some(list) = array.as_list_opt::<i32>() {
        return Ok(list.value_offsets().to_vec());
    }
    match array.as_map_opt() {
        Some(map) => Ok(map.value_offsets().to_vec()),
        None => Err(evaluation("no array and no map")),
    }
}

fn cardinality(call: &Call) -> Result<ArrayRef> {
    let array = call.array(0)?;
    let offsets = offsets(&array)?;
    call.numbers::<Int32Type>(|row| Ok(array.is_valid(row).then(|| offsets[row + 1] - offsets[row])))
}

fn element_type(types: &Types) -> Result<DataType> {
    match types.of(0) {
        DataType::List(element) => Ok(element.data_type().clone()),
        other => plan_err!("ELEMENT takes an array, not {}", SqlType::name_of(&other)),
    }
}

fn element(call: &Call) -> Result<ArrayRef> {
    let array = call.array(0)?;
    let Some(list) = array.as_list_opt::<i32>() else { return Err(evaluation("ELEMENT takes an array")) };
    let offsets = list.value_offsets();
    let indices = (0..list.len()).map(|row| match offsets[row + 1] - offsets[row] {
        _ if list.is_null(row) => Ok(None),
        0 => Ok(None),
        1 => Ok(u32::try_from(offsets[row]).ok()),
        many => Err(evaluation(format!("ELEMENT of an array with {many} elements"))),
    });
    let indices: UInt32Array = indices.collect::<Result<_>>()?;
    Ok(take(list.values(), &indices, None)?)
}

fn row_type(types: &Types) -> Result<DataType> {
    let field = |index| Field::new(format!("EXPR${index}"), types.of(index), true);
    Ok(DataType::Struct((0..types.len()).map(field).collect()))
}

fn row(call: &Call) -> Result<ArrayRef> {
    let columns = (0..call.len()).map(|index| call.array(index)).collect::<Result<Vec<_>>>()?;
    let fields: Fields = columns
        .iter()
        .enumerate()
        .map(|(index, column)| Field::new(format!("EXPR${index}"), column.data_type().clone(), true))
        .collect();
    Ok(Arc::new(StructArray::try_new(fields, columns, None)?))
}

/// An array whose elements may be NULL.
fn array_of(element: DataType) -> DataType {
    DataType::List(Arc::new(Field::new("item", element, true)))
}

fn prepended_type(types: &Types) -> Result<DataType> {
    let (array, x) = (types.of(0), types.of(1));
    let DataType::List(element) = &array else {
        return plan_err!("ARRAY_PREPEND takes an array, not {}", SqlType::name_of(&array));
    };
    let element = element.data_type();
    if x.is_null() || x == *element {
        return Ok(array_of(element.clone()));
    }
    let common = if x.is_numeric() && element.is_numeric() {
        type_union_resolution(&[x.clone(), element.clone()])
    } else {
        None
    };
    match common {
        Some(common) => Ok(array_of(common)),
        None => {
            let (x, element) = (SqlType::name_of(&x), SqlType::name_of(element));
            plan_err!("ARRAY_PREPEND puts {x} before elements of type {element}; write ARRAY_PREPEND(array, x)")
        }
    }
}

fn prepend(call: &Call) -> Result<ArrayRef> {
    let array = call.array(0)?;
    let Some(list) = array.as_list_opt::<i32>() else { return Err(evaluation("ARRAY_PREPEND takes an array")) };
    let DataType::List(element) = call.return_type() else { return plan_err!("ARRAY_PREPEND gives an array") };
    let values = cast(list.values(), element.data_type())?;
    let firsts = cast(&call.array(1)?, element.data_type())?;
    let behind = u32::try_from(values.len()).map_err(|_| evaluation("an array with too many elements"))?;
    let both = concat(&[&values, &firsts])?;
    let (offsets, mut order, mut lengths) = (list.value_offsets(), Vec::new(), Vec::with_capacity(list.len()));
    for (row, first) in (0..list.len()).zip(behind..) {
        let items = offsets[row]..offsets[row + 1];
        lengths.push(items.len() + 1);
        order.push(first);
        order.extend(items.filter_map(|item| u32::try_from(item).ok()));
    }
    let values = take(&both, &UInt32Array::from(order), None)?;
    let offsets = OffsetBuffer::from_lengths(lengths);
    Ok(Arc::new(ListArray::try_new(Arc::clone(element), offsets, values, list.nulls().cloned())?))
}

fn texts_type(_: &Types) -> Result<DataType> {
    Ok(array_of(DataType::Utf8))
}

fn split(call: &Call) -> Result<ArrayRef> {
    let (texts, separators) = (call.text(0)?, call.text(1)?);
    let mut builder = ListBuilder::new(StringBuilder::new());
    for row in 0..call.rows() {
        let found = texts.get(row).zip(separators.get(row));
        if let Some((text, separator)) = found {
            if separator.is_empty() {
                let mut buffer = [0; 4];
                text.chars().for_each(|c| builder.values().append_value(c.encode_utf8(&mut buffer)));
            } else {
                text.split(separator).for_each(|part| builder.values().append_value(part));
            }
        }
        builder.append(found.is_some());
    }
    Ok(Arc::new(builder.finish()))
}

fn type_of(call: &Call) -> Result<ArrayRef> {
    let Some(field) = call.field(0) else { return Err(evaluation("TYPEOF takes a value")) };
    let not_null = if field.is_nullable() || field.data_type().is_null() { "" } else { " NOT NULL" };
    let name = format!("{}{not_null}", SqlType::name_of(field.data_type()));
    call.texts(|_, out| {
        out.push_str(&name);
        Ok(Some(()))
    })
}
