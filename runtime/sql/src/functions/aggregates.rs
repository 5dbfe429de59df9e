//! Result types of aggregates, as Flink has them, and SUM and AVG with these types for DataFusion's planner.
//!
//! Must not know: how an aggregate runs; the operators do that.

use std::sync::Arc;

use arrow::datatypes::DataType;
use datafusion::{
    common::{Result, not_impl_err, plan_err},
    functions_aggregate,
    logical_expr::{Accumulator, AggregateUDF, AggregateUDFImpl, Signature, Volatility, function::AccumulatorArgs},
};

use crate::types::SqlType;

/// Type of an aggregate's result over an argument's type; `None` if it takes no such argument.
///
/// SUM has the argument's type and wraps, AVG of integers is cut towards zero, so both stay in the argument's type;
/// SUM of a DECIMAL(p, s) is DECIMAL(38, s), AVG is DECIMAL(38, max(6, s)).
#[must_use]
pub fn result_type(name: &str, argument: &DataType) -> Option<DataType> {
    let number = || argument.is_numeric().then(|| argument.clone());
    match name.to_ascii_lowercase().as_str() {
        "count" => Some(DataType::Int64),
        "sum" => match argument {
            DataType::Decimal128(_, scale) => Some(DataType::Decimal128(38, *scale)),
            _ => number(),
        },
        "avg" => match argument {
            DataType::Decimal128(_, scale) => Some(DataType::Decimal128(38, (*scale).max(6))),
            _ => number(),
        },
        "min" | "max" | "first_value" | "last_value" | "lag" | "lead" => Some(argument.clone()),
        _ => None,
    }
}

/// Aggregates as the planner resolves them.
#[must_use]
pub fn aggregates() -> Vec<Arc<AggregateUDF>> {
    let ours = ["sum", "avg"].map(|name| Arc::new(AggregateUDF::new_from_impl(FlinkAggregate::new(name))));
    let theirs = [
        functions_aggregate::count::count_udaf(),
        functions_aggregate::min_max::min_udaf(),
        functions_aggregate::min_max::max_udaf(),
        functions_aggregate::first_last::first_value_udaf(),
        functions_aggregate::first_last::last_value_udaf(),
    ];
    ours.into_iter().chain(theirs).collect()
}

/// SUM or AVG by name and type.
#[derive(Debug, PartialEq, Eq, Hash)]
struct FlinkAggregate {
    name: &'static str,
    signature: Signature,
}

impl FlinkAggregate {
    fn new(name: &'static str) -> Self {
        Self { name, signature: Signature::user_defined(Volatility::Immutable) }
    }
}

impl AggregateUDFImpl for FlinkAggregate {
    fn name(&self) -> &str {
        self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, given: &[DataType]) -> Result<Vec<DataType>> {
        let upper = self.name.to_ascii_uppercase();
        match given {
            [one] if result_type(self.name, one).is_some() => Ok(given.to_vec()),
            [DataType::Null] => plan_err!("{upper} of a bare NULL has no type; CAST it"),
            [one] => plan_err!("{upper} takes a number, not {}", SqlType::name_of(one)),
            _ => plan_err!("{upper} takes one argument"),
        }
    }

    fn return_type(&self, given: &[DataType]) -> Result<DataType> {
        match given.first().and_then(|one| result_type(self.name, one)) {
            Some(data_type) => Ok(data_type),
            None => plan_err!("{} takes a number", self.name.to_ascii_uppercase()),
        }
    }

    fn accumulator(&self, _: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        not_impl_err!("{} runs as an operator of ours", self.name.to_ascii_uppercase())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_and_averages_have_flinks_types() {
        let check = |name: &str, argument: DataType, expected: DataType| {
            assert_eq!(result_type(name, &argument), Some(expected), "{name}({argument})");
        };
        check("SUM", DataType::Int32, DataType::Int32);
        check("AVG", DataType::Int64, DataType::Int64);
        check("SUM", DataType::Decimal128(10, 2), DataType::Decimal128(38, 2));
        check("AVG", DataType::Decimal128(10, 2), DataType::Decimal128(38, 6));
        check("AVG", DataType::Decimal128(20, 9), DataType::Decimal128(38, 9));
        check("COUNT", DataType::Utf8, DataType::Int64);
        assert_eq!(result_type("sum", &DataType::Utf8), None);
    }
}
