//! Generated inputs: columns of random values from a seed, with NULLs, skew and event times out of order.
//!
//! Values are made as text and read into the column's type, so that one description serves every type. Each column
//! draws from its own random numbers: a column that is added changes no other.

use std::{collections::BTreeMap, num::NonZeroUsize, sync::Arc, time::Duration};

use arrow::{
    array::{ArrayRef, RecordBatch, StringArray},
    compute::{CastOptions, cast_with_options},
    datatypes::SchemaRef,
};
use chrono::{NaiveDateTime, TimeDelta};
use rand::{Rng, SeedableRng, rngs::StdRng};
use serde::Deserialize;
use serde_yaml::{Number, Value};
use streamkeeper_types::duration;

/// Rows of one table.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Generate {
    pub rows: usize,
    #[serde(default)]
    pub seed: u64,
    /// Files that the rows are dealt to, in their order.
    #[serde(default = "one")]
    pub files: NonZeroUsize,
    /// One for each physical column.
    pub columns: BTreeMap<String, Column>,
}

fn one() -> NonZeroUsize {
    NonZeroUsize::MIN
}

/// What the values of a column are: exactly one of `numbers`, `one-of`, `count-from` and `times`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Column {
    /// Least and greatest number.
    numbers: Option<[Number; 2]>,
    /// Distance between neighbouring `numbers`; 1 if not given.
    step: Option<Number>,
    one_of: Option<Vec<Value>>,
    /// 1 more in each row.
    count_from: Option<i64>,
    times: Option<Times>,
    /// Text around the value, which stands where `{}` is.
    format: Option<String>,
    /// 1: all values equally often. The greater, the more often the first ones.
    skew: Option<f64>,
    /// Share of NULLs, from 0 to 1.
    nulls: Option<f64>,
}

/// Event times: all different, going on by `step`, then put out of order.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct Times {
    /// As in `2026-01-01 00:00:00`.
    start: String,
    #[serde(with = "duration")]
    step: Duration,
    /// A row stands behind rows that are later by less than this. Below the watermark's delay, no row is late.
    #[serde(with = "duration", default)]
    disorder: Duration,
}

const TIME: &str = "%Y-%m-%d %H:%M:%S%.f";

impl Generate {
    /// The rows, in the order in which a reader meets them.
    ///
    /// # Errors
    /// What is wrong in the description.
    pub fn batch(&self, schema: &SchemaRef) -> Result<RecordBatch, String> {
        if let Some(name) = self.columns.keys().find(|name| schema.field_with_name(name).is_err()) {
            let physical: Vec<&str> = schema.fields().iter().map(|field| field.name().as_str()).collect();
            return Err(format!("`{name}` is no physical column; these are: {}", physical.join(", ")));
        }
        let mut arrays: Vec<ArrayRef> = Vec::with_capacity(schema.fields().len());
        for (index, field) in (0_u64..).zip(schema.fields()) {
            let name = field.name();
            let column = self.columns.get(name).ok_or_else(|| format!("column `{name}` is not described"))?;
            let mut random = StdRng::seed_from_u64(self.seed.wrapping_add(index << 32));
            let texts = column.texts(self.rows, &mut random).map_err(|why| format!("column `{name}`: {why}"))?;
            let texts: ArrayRef = Arc::new(StringArray::from(texts));
            let strict = CastOptions { safe: false, ..CastOptions::default() };
            let values = cast_with_options(&texts, field.data_type(), &strict);
            arrays.push(values.map_err(|error| format!("column `{name}`: {error}"))?);
        }
        RecordBatch::try_new(Arc::clone(schema), arrays).map_err(|error| error.to_string())
    }
}

impl Column {
    fn texts(&self, rows: usize, random: &mut StdRng) -> Result<Vec<Option<String>>, String> {
        let mut texts = match (&self.numbers, &self.one_of, self.count_from, &self.times) {
            (Some(range), None, None, None) => self.numbers(range, rows, random)?,
            (None, Some(values), None, None) => self.choices(values, rows, random)?,
            (None, None, Some(first), None) => (first..).take(rows).map(|n| Some(n.to_string())).collect(),
            (None, None, None, Some(times)) => times.texts(rows, random)?,
            _ => return Err("give one of `numbers`, `one-of`, `count-from` and `times`".to_owned()),
        };
        if let Some(format) = &self.format {
            texts.iter_mut().flatten().for_each(|text| *text = format.replace("{}", text));
        }
        if let Some(share) = self.nulls {
            if !(0.0..=1.0).contains(&share) {
                return Err(format!("`nulls` is a share from 0 to 1, not {share}"));
            }
            texts.iter_mut().filter(|_| random.random_bool(share)).for_each(|text| *text = None);
        }
        Ok(texts)
    }

    fn numbers(&self, range: &[Number; 2], rows: usize, random: &mut StdRng) -> Result<Vec<Option<String>>, String> {
        let step = self.step.clone().unwrap_or_else(|| Number::from(1));
        let digits = [&range[0], &range[1], &step].map(fraction_digits).into_iter().max().unwrap_or(0);
        let [least, greatest] = [&range[0], &range[1]].map(|number| units(number, digits));
        let (least, greatest, step) = (least?, greatest?, units(&step, digits)?);
        if step <= 0 || greatest < least {
            return Err("`numbers` go from the least to the greatest, by a positive `step`".to_owned());
        }
        let count = usize::try_from((greatest - least) / step + 1).map_err(|_| "too many different numbers")?;
        let number = |index: usize| Some(shown(least + index as i128 * step, digits));
        (0..rows).map(|_| Ok(number(self.draw(count, random)?))).collect()
    }

    fn choices(&self, values: &[Value], rows: usize, random: &mut StdRng) -> Result<Vec<Option<String>>, String> {
        let texts = values.iter().map(|value| match value {
            Value::Null => Ok(None),
            Value::Bool(truth) => Ok(Some(truth.to_string())),
            Value::Number(number) => Ok(Some(number.to_string())),
            Value::String(text) => Ok(Some(text.clone())),
            _ => Err("`one-of` lists plain values".to_owned()),
        });
        let texts = texts.collect::<Result<Vec<_>, _>>()?;
        if texts.is_empty() {
            return Err("`one-of` is empty".to_owned());
        }
        (0..rows).map(|_| Ok(texts[self.draw(texts.len(), random)?].clone())).collect()
    }

    /// An index below `count`.
    fn draw(&self, count: usize, random: &mut StdRng) -> Result<usize, String> {
        let skew = self.skew.unwrap_or(1.0);
        if !(skew.is_finite() && skew > 0.0) {
            return Err(format!("`skew` is a positive number, not {skew}"));
        }
        let share = random.random::<f64>().powf(skew);
        // Both factors are positive, and cutting is meant.
        Ok(((count as f64 * share) as usize).min(count - 1))
    }
}

impl Times {
    fn texts(&self, rows: usize, random: &mut StdRng) -> Result<Vec<Option<String>>, String> {
        let start = NaiveDateTime::parse_from_str(&self.start, TIME)
            .map_err(|_| format!("`{}` is no time as in 2026-01-01 00:00:00", self.start))?;
        let step = i64::try_from(self.step.as_millis()).map_err(|_| "`step` is too long")?;
        if step == 0 {
            return Err("`step` is at least 1ms".to_owned());
        }
        // Row n moves back by up to `reach` places: it stays in front of every row that comes more than that later.
        let reach = (self.disorder.as_millis().saturating_sub(1) / u128::from(step.unsigned_abs())) as u64;
        let mut order: Vec<(u64, i64)> =
            (0_i64..).take(rows).map(|row| (row.unsigned_abs() + random.random_range(0..=reach), row)).collect();
        order.sort_unstable();
        let time = |row: i64| start.checked_add_signed(TimeDelta::milliseconds(row.checked_mul(step)?));
        order
            .into_iter()
            .map(|(_, row)| Ok(Some(time(row).ok_or("the times leave the calendar")?.format("%F %T%.3f").to_string())))
            .collect()
    }
}

/// Digits behind the point, as the number is written.
fn fraction_digits(number: &Number) -> usize {
    number.to_string().split_once('.').map_or(0, |(_, fraction)| fraction.trim_end_matches('0').len())
}

/// A number as an integer of units of its last digit.
fn units(number: &Number, digits: usize) -> Result<i128, String> {
    let text = number.to_string();
    let (whole, fraction) = text.split_once('.').unwrap_or((&text, ""));
    let fraction = fraction.trim_end_matches('0');
    format!("{whole}{fraction:0<digits$}").parse().map_err(|_| format!("{text} is no plain number"))
}

fn shown(units: i128, digits: usize) -> String {
    if digits == 0 {
        return units.to_string();
    }
    let sign = if units < 0 { "-" } else { "" };
    let text = format!("{:0>width$}", units.unsigned_abs(), width = digits + 1);
    let (whole, fraction) = text.split_at(text.len() - digits);
    format!("{sign}{whole}.{fraction}")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use arrow::datatypes::{DataType, Field, Schema, TimeUnit};

    use super::*;

    fn column(yaml: &str, rows: usize) -> Vec<Option<String>> {
        let column: Column = serde_yaml::from_str(yaml).unwrap();
        column.texts(rows, &mut StdRng::seed_from_u64(1)).unwrap()
    }

    #[test]
    fn numbers_keep_to_their_range_and_step() {
        let mut found: Vec<String> =
            column("{numbers: [-0.5, 0.5], step: 0.25}", 200).into_iter().map(Option::unwrap).collect();
        found.sort();
        found.dedup();
        assert_eq!(found, ["-0.25", "-0.50", "0.00", "0.25", "0.50"]);
    }

    #[test]
    fn skew_prefers_the_first_values_and_nulls_have_their_share() {
        let values = column("{one-of: [a, b], skew: 4, nulls: 0.5, format: '<{}>'}", 1_000);
        let count = |wanted: Option<&str>| values.iter().filter(|value| value.as_deref() == wanted).count();
        assert!((400..600).contains(&count(None)));
        assert!(count(Some("<a>")) > 4 * count(Some("<b>")));
        assert!(count(Some("<b>")) > 0);
    }

    #[test]
    fn times_are_all_different_and_out_of_order_by_less_than_the_bound() {
        let times = column("{times: {start: '2026-01-01 00:00:00', step: 100ms, disorder: 2s}}", 500);
        let times: Vec<NaiveDateTime> =
            times.iter().map(|t| NaiveDateTime::parse_from_str(t.as_ref().unwrap(), TIME).unwrap()).collect();
        let mut greatest = times[0];
        let mut most_behind = TimeDelta::zero();
        for time in &times {
            most_behind = most_behind.max(greatest - *time);
            greatest = greatest.max(*time);
        }
        assert!(most_behind > TimeDelta::seconds(1) && most_behind < TimeDelta::seconds(2), "{most_behind}");
        let mut sorted = times.clone();
        sorted.sort();
        sorted.dedup();
        assert_eq!(sorted.len(), 500);
    }

    #[test]
    fn a_seed_gives_the_same_typed_rows_again() {
        let generate: Generate = serde_yaml::from_str(
            "{rows: 3, seed: 5, columns: {n: {numbers: [1, 9]}, t: {times: {start: '2026-01-01 00:00:00', step: 1s}}}}",
        )
        .unwrap();
        let schema = Arc::new(Schema::new(vec![
            Field::new("n", DataType::Decimal128(10, 2), true),
            Field::new("t", DataType::Timestamp(TimeUnit::Millisecond, None), true),
        ]));
        assert_eq!(generate.batch(&schema).unwrap(), generate.batch(&schema).unwrap());
        let other = Generate { seed: 6, rows: 100, ..generate.clone() };
        assert_ne!(other.batch(&schema).unwrap(), Generate { rows: 100, ..generate }.batch(&schema).unwrap());
    }

    #[test]
    fn a_wrong_description_says_what_is_wrong() {
        let check = |columns: &str, fragment: &str| {
            let generate: Generate = serde_yaml::from_str(&format!("{{rows: 1, columns: {columns}}}")).unwrap();
            let schema = Arc::new(Schema::new(vec![Field::new("n", DataType::Int32, true)]));
            let error = generate.batch(&schema).unwrap_err();
            assert!(error.contains(fragment), "{error}");
        };
        check("{}", "`n` is not described");
        check("{n: {numbers: [1, 2]}, m: {numbers: [1, 2]}}", "`m` is no physical column");
        check("{n: {}}", "give one of");
        check("{n: {numbers: [2, 1]}}", "from the least to the greatest");
        check("{n: {one-of: []}}", "empty");
        check("{n: {one-of: [many]}}", "many");
        check("{n: {numbers: [1, 2], nulls: 2}}", "share");
        check("{n: {numbers: [1, 2], skew: 0}}", "skew");
        check("{n: {times: {start: noon, step: 1s}}}", "noon");
    }
}
