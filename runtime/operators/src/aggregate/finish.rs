//! From state columns to results.

use arrow::{
    array::{ArrayRef, AsArray, Int64Array},
    compute::{kernels::cmp::eq, nullif},
    datatypes::{DataType, Decimal128Type, Float64Type, Int64Type},
};
use streamkeeper_types::{Code, Result, ResultExt};

use super::{
    accumulator::{Accumulator, DECIMAL_LIMIT, Kind},
    fold::History,
    values::IntoColumn,
};
use crate::changelog::batch_error;

impl Accumulator {
    /// Results that rows of the state columns stand for.
    ///
    /// # Errors
    /// [`Code::Evaluation`] for a decimal of more than 38 digits.
    pub(crate) fn finish(&self, columns: &[ArrayRef]) -> Result<ArrayRef> {
        match self.kind {
            Kind::Count | Kind::Sum | Kind::Extreme(_) => Ok(ArrayRef::clone(&columns[0])),
            Kind::CountedSum => {
                let zero = Int64Array::new_scalar(0);
                let empty = eq(&columns[1], &zero).or_code(Code::Internal, || self.spec.name.clone())?;
                nullif(&columns[0], &empty).or_code(Code::Internal, || self.spec.name.clone())
            }
            Kind::Avg => self.average(&columns[0], &columns[1]),
        }
    }

    fn average(&self, sums: &ArrayRef, counts: &ArrayRef) -> Result<ArrayRef> {
        let counts = counts.as_primitive::<Int64Type>().values();
        match sums.data_type() {
            DataType::Float64 => {
                let sums = sums.as_primitive::<Float64Type>().values();
                let mut history = History::default();
                for (sum, count) in sums.iter().zip(counts) {
                    #[expect(clippy::cast_precision_loss, reason = "SQL divides by the count as DOUBLE")]
                    history.values.push(if *count == 0 { 0.0 } else { sum / *count as f64 });
                    history.valid.push(*count != 0);
                }
                history.into_column(&self.result)
            }
            DataType::Decimal128(_, scale) => {
                let DataType::Decimal128(_, wanted) = self.result else { return Err(batch_error(&self.spec.name)) };
                let factor = 10_i128.pow(u32::from((wanted - scale).unsigned_abs()));
                let sums = sums.as_primitive::<Decimal128Type>().values();
                let mut history = History::default();
                for (sum, count) in sums.iter().zip(counts) {
                    history.valid.push(*count != 0);
                    history.values.push(if *count == 0 { 0 } else { self.quotient(*sum, *count, factor)? });
                }
                history.into_column(&self.result)
            }
            _ => {
                let sums = sums.as_primitive::<Int64Type>().values();
                let mut history = History::default();
                for (sum, count) in sums.iter().zip(counts) {
                    history.valid.push(*count != 0);
                    history.values.push(if *count == 0 { 0 } else { sum.wrapping_div(*count) });
                }
                history.into_column(&self.result)
            }
        }
    }

    /// sum × factor / count, rounded half away from zero.
    fn quotient(&self, sum: i128, count: i64, factor: i128) -> Result<i128> {
        let count = i128::from(count);
        let (whole, rest) = (sum / count, sum % count * factor);
        let (part, rest) = (rest / count, rest % count);
        let round = if rest.abs() * 2 >= count.abs() { rest.signum() * count.signum() } else { 0 };
        let quotient = whole.checked_mul(factor).and_then(|q| q.checked_add(part + round));
        quotient.filter(|q| q.abs() < DECIMAL_LIMIT).ok_or_else(|| self.overflow())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::sync::Arc;

    use arrow::{
        array::Decimal128Array,
        datatypes::{Field, Schema},
    };

    use super::*;
    use crate::aggregate::{AggregateFunction, AggregateSpec, accumulator::Retraction};

    fn average(argument: DataType, sums: ArrayRef, counts: Vec<i64>) -> ArrayRef {
        let schema = Schema::new(vec![Field::new("x", argument, true)]);
        let spec = AggregateSpec {
            function: AggregateFunction::Avg,
            argument: Some(0),
            filter: None,
            distinct: false,
            name: "AVG(x)".to_owned(),
        };
        let accumulator = Accumulator::new(spec, &schema, Retraction::Never).unwrap();
        accumulator.finish(&[sums, Arc::new(Int64Array::from(counts))]).unwrap()
    }

    #[test]
    fn average_of_integers_is_cut_towards_zero() {
        let sums = Arc::new(Int64Array::from(vec![7, -7, 0]));
        let result = average(DataType::Int32, sums, vec![2, 2, 0]);
        let result = result.as_primitive::<arrow::datatypes::Int32Type>();
        assert_eq!(result.iter().collect::<Vec<_>>(), vec![Some(3), Some(-3), None]);
    }

    #[test]
    fn average_of_decimals_has_six_digits_and_rounds_half_away_from_zero() {
        let sums = Decimal128Array::from(vec![1, -1, 200, 5]).with_data_type(DataType::Decimal128(38, 2));
        // 0.01 / 3, −0.01 / 3, 2.00 / 3, 0.05 / 100000 (= 0.0000005)
        let result = average(DataType::Decimal128(10, 2), Arc::new(sums), vec![3, 3, 3, 100_000]);
        let result = result.as_primitive::<Decimal128Type>();
        assert_eq!(result.values(), &[3_333, -3_333, 666_667, 1]);
    }
}
