//! Aggregates as plain data, and the types that SQL gives them.

use arrow::datatypes::{DataType, Schema};
use streamkeeper_types::{Code, Error, Result};

/// Greatest number of digits of a DECIMAL.
const MAX_DIGITS: u8 = 38;
/// Least number of digits after the point of AVG over DECIMAL.
const MIN_AVG_SCALE: i8 = 6;

/// Functions of one argument that aggregate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AggregateFunction {
    /// `COUNT(*)` without argument, `COUNT(x)` of rows whose argument is not NULL.
    Count,
    Sum,
    Min,
    Max,
    Avg,
}

/// One aggregate of a GROUP BY. Arguments and filters are columns of the input: expressions are projected before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AggregateSpec {
    pub function: AggregateFunction,
    /// Input column; `None` for `COUNT(*)`.
    pub argument: Option<usize>,
    /// BOOLEAN input column of `FILTER (WHERE …)`: rows for which it is not true do not count.
    pub filter: Option<usize>,
    /// Equal arguments count once.
    pub distinct: bool,
    /// As in the SQL text, `SUM(amount)`; names the state, so it must be unique in the operator.
    pub name: String,
}

impl AggregateSpec {
    /// Name of the aggregate's own table: found again by the aggregate, wherever it stands in the list after an edit.
    pub(crate) fn table_name(&self, kind: &str) -> String {
        format!("{kind}_{}", self.name)
    }

    /// Type of the result over `input`, as Flink has it: SUM keeps integer types and wraps, AVG keeps the type and cuts
    /// integers towards zero, decimals grow to 38 digits.
    ///
    /// # Errors
    /// [`Code::SqlInvalid`] for a column that is not there or that the function is not defined for.
    pub fn result_type(&self, input: &Schema) -> Result<DataType> {
        let column = |index: usize| {
            let field = input.fields().get(index);
            field
                .map(|f| f.data_type())
                .ok_or_else(|| Error::internal(format!("{}: no input column {index}", self.name)))
        };
        if let Some(filter) = self.filter
            && *column(filter)? != DataType::Boolean
        {
            return Err(Error::new(Code::SqlInvalid, format!("the filter of {} is not BOOLEAN", self.name)));
        }
        let argument = self.argument.map(column).transpose()?;
        let result = match (self.function, argument) {
            (AggregateFunction::Count, None) if !self.distinct => Some(DataType::Int64),
            (AggregateFunction::Count, Some(_)) => Some(DataType::Int64),
            (AggregateFunction::Sum, Some(argument)) => sum_type(argument),
            (AggregateFunction::Avg, Some(argument)) => avg_type(argument),
            (AggregateFunction::Min | AggregateFunction::Max, Some(argument)) if is_ordered(argument) => {
                Some(argument.clone())
            }
            _ => None,
        };
        result.ok_or_else(|| {
            let of = argument.map_or_else(|| "no argument".to_owned(), |t| format!("values of type {t}"));
            Error::new(Code::SqlInvalid, format!("{} is not defined over {of}", self.name))
                .way_out("cast the argument to a number or another type that the function takes")
        })
    }
}

fn sum_type(argument: &DataType) -> Option<DataType> {
    match argument {
        DataType::Decimal128(_, scale) => Some(DataType::Decimal128(MAX_DIGITS, *scale)),
        other => is_number(other).then(|| other.clone()),
    }
}

fn avg_type(argument: &DataType) -> Option<DataType> {
    match argument {
        DataType::Decimal128(_, scale) => Some(DataType::Decimal128(MAX_DIGITS, (*scale).max(MIN_AVG_SCALE))),
        other => is_number(other).then(|| other.clone()),
    }
}

fn is_number(data_type: &DataType) -> bool {
    use DataType::{Float32, Float64, Int8, Int16, Int32, Int64};
    matches!(data_type, Int8 | Int16 | Int32 | Int64 | Float32 | Float64)
}

fn is_ordered(data_type: &DataType) -> bool {
    use DataType::{Binary, Boolean, Date32, Decimal128, Time32, Time64, Timestamp, Utf8};
    is_number(data_type)
        || matches!(
            data_type,
            Boolean | Date32 | Time32(_) | Time64(_) | Timestamp(_, _) | Decimal128(_, _) | Utf8 | Binary
        )
}

#[cfg(test)]
mod tests {
    use arrow::datatypes::Field;

    use super::*;

    #[test]
    fn results_have_flinks_types() {
        let check = |function, argument: DataType, expected: Option<DataType>| {
            let schema = Schema::new(vec![Field::new("x", argument.clone(), true)]);
            let spec =
                AggregateSpec { function, argument: Some(0), filter: None, distinct: false, name: "f(x)".to_owned() };
            assert_eq!(spec.result_type(&schema).ok(), expected, "{function:?}({argument})");
        };
        use AggregateFunction::{Avg, Count, Max, Sum};
        check(Sum, DataType::Int32, Some(DataType::Int32));
        check(Avg, DataType::Int32, Some(DataType::Int32));
        check(Avg, DataType::Float32, Some(DataType::Float32));
        check(Sum, DataType::Decimal128(10, 2), Some(DataType::Decimal128(38, 2)));
        check(Avg, DataType::Decimal128(10, 2), Some(DataType::Decimal128(38, 6)));
        check(Avg, DataType::Decimal128(20, 8), Some(DataType::Decimal128(38, 8)));
        check(Count, DataType::Utf8, Some(DataType::Int64));
        check(Max, DataType::Utf8, Some(DataType::Utf8));
        check(Sum, DataType::Utf8, None);
    }
}
