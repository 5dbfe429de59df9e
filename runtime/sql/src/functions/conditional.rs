//! IF, IFNULL, GREATEST and LEAST: arguments of one common type.

use arrow::{
    array::{Array, ArrayRef, AsArray, BooleanArray},
    compute::{cast, is_not_null, is_null, kernels::cmp, kernels::zip::zip, nullif, prep_null_mask_filter},
    datatypes::DataType,
};
use datafusion::{
    common::{Result, plan_err},
    logical_expr::type_coercion::binary::type_union_resolution,
};

use super::{
    call::Call,
    definition::{
        Definition,
        Param::{Any, Boolean},
        Types,
    },
};
use crate::types::SqlType;

pub(crate) static FUNCTIONS: [Definition; 5] = [
    Definition::new(
        "if",
        "IF(condition BOOLEAN, then, else) → common type",
        &[Boolean, Any, Any],
        |types| common(types, 1),
        choose,
    ),
    Definition::new("coalesce", "COALESCE(x, …) → common type", &[Any], |types| common(types, 0), first_not_null)
        .repeats()
        .note("Stops at the first that is not NULL."),
    Definition::new(
        "ifnull",
        "IFNULL(x, default) → common type",
        &[Any, Any],
        |types| common(types, 0),
        first_not_null,
    ),
    Definition::new(
        "greatest",
        "GREATEST(x, …) → common type",
        &[Any],
        |types| common(types, 0),
        |call| extreme(call, Extreme::Greatest),
    )
    .repeats()
    .note("NULL if any argument is NULL."),
    Definition::new(
        "least",
        "LEAST(x, …) → common type",
        &[Any],
        |types| common(types, 0),
        |call| extreme(call, Extreme::Least),
    )
    .repeats()
    .note("NULL if any argument is NULL."),
];

/// The type that all arguments from `first` on can have.
fn common(types: &Types, first: usize) -> Result<DataType> {
    let given: Vec<DataType> = (first..types.len()).map(|i| types.of(i)).collect();
    match type_union_resolution(&given) {
        Some(data_type) => Ok(data_type),
        None => {
            let names: Vec<String> = given.iter().map(SqlType::name_of).collect();
            plan_err!("{} have no common type; CAST one of them", names.join(" and "))
        }
    }
}

fn argument(call: &Call, index: usize) -> Result<ArrayRef> {
    Ok(cast(&call.array(index)?, call.return_type())?)
}

fn choose(call: &Call) -> Result<ArrayRef> {
    let condition = call.array(0)?;
    let condition = prepared(condition.as_boolean());
    Ok(zip(&condition, &argument(call, 1)?, &argument(call, 2)?)?)
}

/// NULL counts as FALSE.
fn prepared(condition: &BooleanArray) -> BooleanArray {
    if condition.null_count() == 0 { condition.clone() } else { prep_null_mask_filter(condition) }
}

fn first_not_null(call: &Call) -> Result<ArrayRef> {
    let mut found = argument(call, 0)?;
    for index in 1..call.len() {
        if found.null_count() == 0 {
            break;
        }
        found = zip(&is_not_null(&found)?, &found, &argument(call, index)?)?;
    }
    Ok(found)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Extreme {
    Greatest,
    Least,
}

fn extreme(call: &Call, which: Extreme) -> Result<ArrayRef> {
    let mut best = argument(call, 0)?;
    for index in 1..call.len() {
        let next = argument(call, index)?;
        let keep = match which {
            Extreme::Greatest => cmp::gt_eq(&best, &next)?,
            Extreme::Least => cmp::lt_eq(&best, &next)?,
        };
        let missing = arrow::compute::or(&is_null(&best)?, &is_null(&next)?)?;
        best = nullif(&zip(&prepared(&keep), &best, &next)?, &missing)?;
    }
    Ok(best)
}
