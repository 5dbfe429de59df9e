//! Arrays, maps and rows.

use std::sync::Arc;

use arrow::{
    array::{Array, ArrayRef, AsArray, StructArray, UInt32Array},
    compute::take,
    datatypes::{DataType, Field, Fields, Int32Type},
};
use datafusion::common::{Result, plan_err};

use super::{
    call::Call,
    definition::{Definition, Param::Any, Types, returns::int},
    fault::evaluation,
};

pub(crate) static FUNCTIONS: [Definition; 3] = [
    Definition::new("cardinality", "CARDINALITY(array | map) → INT", &[Any], collection, cardinality),
    Definition::new("element", "ELEMENT(array) → element", &[Any], element_type, element)
        .note("NULL for an empty array; more than one element fails the job."),
    Definition::new("row", "ROW(x, …) → ROW", &[Any], row_type, row)
        .repeats()
        .note("Fields are named EXPR$0, EXPR$1, …"),
];

fn collection(types: &Types) -> Result<DataType> {
    match types.of(0) {
        DataType::List(_) | DataType::Map(..) => int(types),
        other => plan_err!("CARDINALITY takes an array or a map, not {}", crate::types::SqlType::name_of(&other)),
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
        other => plan_err!("ELEMENT takes an array, not {}", crate::types::SqlType::name_of(&other)),
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
