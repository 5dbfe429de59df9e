//! CAST and TRY_CAST with Flink's meaning: bad texts fail (or give NULL), integers wrap, decimals round half up, times
//! are cut, too many digits are NULL.
//!
//! Each pair of types is one loop over columns in [`numbers`], [`texts`] or [`times`].

mod nested;
mod numbers;
mod texts;
mod times;

use std::sync::{Arc, LazyLock};

use arrow::{
    array::{ArrayRef, new_null_array},
    compute::cast as arrow_cast,
    datatypes::DataType,
};
use datafusion::{
    common::{DataFusionError, Result, plan_err},
    logical_expr::{Expr, ScalarUDF, expr::ScalarFunction, lit},
};

use super::{
    call::Call,
    definition::{
        Definition, FlinkFunction,
        Param::{self, Any, Integer, Text},
        Types, is_text,
    },
    fault::evaluation_with,
};
use crate::types::SqlType;

pub(crate) use texts::write_double;

/// The value, the type, and the digits of the second's fraction that the value's own type has, where Arrow's has more.
static PARAMS: [Param; 3] = [Any, Text, Integer];

pub(crate) static FUNCTIONS: [Definition; 2] = [
    Definition::new("__cast", "CAST(x AS type) → type", &PARAMS, target, |call| cast(call, OnBadText::Fail))
        .required(2)
        .note("A text that does not fit fails the job; '12.75' AS INT is 12; integers wrap; a DECIMAL with too many digits is NULL; BOOLEAN AS STRING is TRUE or FALSE; ARRAY, MAP and ROW AS STRING are [1, 2], {a=1, b=2} and (1, b). TIMESTAMP(7) to TIMESTAMP(9) hold the years 1678 to 2261: other times fail as bad texts do."),
    Definition::new("__try_cast", "TRY_CAST(x AS type) → type", &PARAMS, target, |call| cast(call, OnBadText::Null))
        .required(2)
        .note("NULL for a text that does not fit."),
];

/// A CAST with Flink's meaning, for what the planner converts by itself (columns of an INSERT, say).
#[must_use]
pub fn cast_to(expr: Expr, to: &SqlType) -> Expr {
    static UDF: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| Arc::new(FlinkFunction::udf(&FUNCTIONS[0])));
    Expr::ScalarFunction(ScalarFunction::new_udf(Arc::clone(&UDF), vec![expr, lit(to.to_string())]))
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum OnBadText {
    Fail,
    Null,
}

impl OnBadText {
    /// What becomes of a row that cannot be converted.
    fn value<T>(self, found: Option<T>, text: &str, to: &SqlType) -> Result<Option<T>> {
        match (found, self) {
            (None, Self::Fail) => Err(bad_text(text, to)),
            (found, _) => Ok(found),
        }
    }
}

fn bad_text(text: &str, to: &SqlType) -> DataFusionError {
    let shown: String = text.chars().take(80).collect();
    evaluation_with(format!("'{shown}' cannot be cast to {to}"), "TRY_CAST gives NULL instead of failing the job")
}

fn target(types: &Types) -> Result<DataType> {
    let (from, to) = (types.of(0), types.spelt_type(1)?);
    if is_possible(&from, &to) {
        return Ok(to.arrow());
    }
    let hint = match (&to, from.is_numeric()) {
        (SqlType::Timestamp(_) | SqlType::TimestampLtz(_), true) => "; TO_TIMESTAMP_LTZ makes a time of a number",
        (_, _) if matches!(from, DataType::Timestamp(..)) && to.is_numeric() => {
            "; UNIX_TIMESTAMP(CAST(x AS STRING)) makes a number of a time"
        }
        _ => "",
    };
    plan_err!("{} cannot be cast to {to}{hint}", SqlType::name_of(&from))
}

fn is_possible(from: &DataType, to: &SqlType) -> bool {
    use DataType as T;
    if *from == T::Null || *from == to.arrow() {
        return true;
    }
    let temporal = matches!(from, T::Timestamp(..) | T::Date32 | T::Time32(_) | T::Time64(_));
    match to {
        SqlType::Char(_) | SqlType::Varchar(_) => match from {
            T::List(item) => is_possible(item.data_type(), to),
            T::Struct(fields) => fields.iter().all(|field| is_possible(field.data_type(), to)),
            T::Map(entries, _) => is_possible(entries.data_type(), to),
            _ => is_text(from) || from.is_numeric() || temporal || matches!(from, T::Boolean | T::Binary),
        },
        SqlType::Binary(_) | SqlType::Varbinary(_) => is_text(from) || matches!(from, T::Binary),
        SqlType::Boolean => is_text(from) || from.is_numeric(),
        SqlType::Date => is_text(from) || matches!(from, T::Timestamp(..)),
        SqlType::Time(_) => is_text(from) || matches!(from, T::Timestamp(..) | T::Time32(_) | T::Time64(_)),
        SqlType::Timestamp(_) | SqlType::TimestampLtz(_) => is_text(from) || temporal,
        SqlType::Array(_) | SqlType::Map(..) | SqlType::Row(_) => arrow::compute::can_cast_types(from, &to.arrow()),
        _ => is_text(from) || from.is_numeric() || *from == T::Boolean,
    }
}

fn cast(call: &Call, on_bad: OnBadText) -> Result<ArrayRef> {
    let Some(to) = call.constant(1).and_then(|text| crate::types::parse_type(text).ok()) else {
        return plan_err!("the type of a CAST must be a literal");
    };
    let array = call.array(0)?;
    let from = array.data_type();
    if *from == DataType::Null {
        return Ok(new_null_array(&to.arrow(), call.rows()));
    }
    match &to {
        SqlType::Char(_) | SqlType::Varchar(_) => texts::to_text(call, &to),
        SqlType::Binary(_) | SqlType::Varbinary(_) if is_text(from) => texts::to_bytes(call),
        SqlType::Binary(_) | SqlType::Varbinary(_) => Ok(Arc::clone(&array)),
        SqlType::Date | SqlType::Time(_) | SqlType::Timestamp(_) | SqlType::TimestampLtz(_) => {
            times::to_time(call, &to, on_bad)
        }
        SqlType::Array(_) | SqlType::Map(..) | SqlType::Row(_) => Ok(arrow_cast(&array, &to.arrow())?),
        _ if is_text(from) => numbers::from_text(call, &to, on_bad),
        _ => numbers::from_number(&array, &to),
    }
}
