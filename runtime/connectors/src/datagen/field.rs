//! One column of a `datagen` table: a sequence or random values, as a function of the row's number.

use std::sync::Arc;

use arrow::{
    array::{ArrayRef, ArrowPrimitiveType, BinaryBuilder, BooleanArray, PrimitiveArray, StringBuilder, make_array},
    buffer::{BooleanBuffer, NullBuffer},
    compute::nullif,
    datatypes::{
        DataType, Date32Type, Decimal128Type, Field as Column, Float32Type, Float64Type, Int8Type, Int16Type,
        Int32Type, Int64Type, TimeUnit, TimestampMicrosecondType, TimestampMillisecondType, TimestampNanosecondType,
        TimestampSecondType,
    },
};
use streamkeeper_types::{
    Code, Error, Millis, Result,
    options::{OptionKind, OptionSpec},
};

use crate::{generator::RowRange, registry::TableDefinition, settings::Settings, text::per_second};

pub(super) static OPTIONS: [OptionSpec; 8] = [
    OptionSpec::new(
        "fields.*.kind",
        OptionKind::OneOf(&["random", "sequence"]),
        "Random values, or the numbers from start to end in order, each once.",
    )
    .default("random"),
    OptionSpec::new("fields.*.min", OptionKind::Float, "Least random number; by default that of the type."),
    OptionSpec::new("fields.*.max", OptionKind::Float, "Greatest random number; by default that of the type."),
    OptionSpec::new(
        "fields.*.length",
        OptionKind::Integer { min: 0, max: 1 << 20 },
        "Characters or bytes of a random text.",
    )
    .default("100"),
    OptionSpec::new(
        "fields.*.max-past",
        OptionKind::Duration,
        "How far before the present a random timestamp lies at most; by default it is the present.",
    )
    .default("0s"),
    OptionSpec::new("fields.*.null-rate", OptionKind::Float, "Share of NULLs among random values, from 0 to 1.")
        .default("0"),
    OptionSpec::new("fields.*.start", OptionKind::INTEGER, "First number of a sequence."),
    OptionSpec::new("fields.*.end", OptionKind::INTEGER, "Last number of a sequence; the table ends with it."),
];

/// How a column's values come about.
pub(super) struct Field {
    data_type: DataType,
    values: Values,
    seed: u64,
    /// Rows of 2^32 that are NULL.
    null_rate: u32,
}

enum Values {
    Sequence {
        start: i64,
        end: i64,
    },
    Integer {
        min: i64,
        max: i64,
    },
    Float {
        min: f64,
        max: f64,
    },
    Boolean,
    Length(usize),
    /// Milliseconds before the present.
    Past(u64),
}

/// Every `fields.<name>.…` must mean a column.
pub(super) fn check_names(table: &TableDefinition, settings: Settings<'_>) -> Result<()> {
    for key in table.options.keys().filter(|key| key.starts_with("fields.")) {
        let name = key.trim_start_matches("fields.").rsplit_once('.').map_or("", |(name, _)| name);
        if table.schema.field_with_name(name).is_err() {
            let columns: Vec<&str> = table.schema.fields().iter().map(|f| f.name().as_str()).collect();
            let nearest = columns.iter().min_by_key(|column| strsim::damerau_levenshtein(column, name));
            let way_out = format!("did you mean '{}'?", nearest.copied().unwrap_or_default());
            return Err(settings.fault(key, format!("there is no column `{name}`"), way_out));
        }
    }
    Ok(())
}

impl Field {
    pub(super) fn new(column: &Column, seed: u64, settings: Settings<'_>) -> Result<Self> {
        let name = column.name();
        let key = |option: &str| format!("fields.{name}.{option}");
        let values = if settings.text(&key("kind")) == Some("sequence") {
            sequence(column, settings)?
        } else {
            random(column, settings)?
        };
        let null_rate = settings.float(&key("null-rate")).unwrap_or_default();
        if !(0.0..=1.0).contains(&null_rate) || (null_rate > 0.0 && !column.is_nullable()) {
            return Err(settings.fault(
                &key("null-rate"),
                "it is no share of a column that may be NULL",
                "write a number from 0 to 1, and leave NOT NULL away",
            ));
        }
        let name_hash = name
            .bytes()
            .fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the share lies in 0..=1")]
        let null_rate = (null_rate * f64::from(u32::MAX)) as u32;
        Ok(Self { data_type: column.data_type().clone(), values, seed: mix(seed ^ name_hash), null_rate })
    }

    /// Rows after which the table must end.
    pub(super) fn rows(&self) -> Option<u64> {
        match self.values {
            Values::Sequence { start, end } => {
                Some(u64::try_from(i128::from(end) - i128::from(start) + 1).unwrap_or(0))
            }
            _ => None,
        }
    }

    /// The values of `rows`.
    pub(super) fn column(&self, rows: RowRange, now: Millis) -> ArrayRef {
        let values = self.values(rows, now);
        if self.null_rate == 0 {
            return values;
        }
        let is_null = |row| (mix(self.random(row) ^ 0x6e75_6c6c) as u32) < self.null_rate;
        let nulls = BooleanArray::from_iter(rows.iter().map(|row| Some(is_null(row))));
        // Without a kernel for the type the values stay as they are.
        nullif(&values, &nulls).unwrap_or(values)
    }

    fn values(&self, rows: RowRange, now: Millis) -> ArrayRef {
        match self.values {
            Values::Sequence { start, .. } => self.integers(rows.iter().map(|row| start.wrapping_add_unsigned(row))),
            Values::Integer { min, max } => {
                let span = (i128::from(max) - i128::from(min) + 1).unsigned_abs();
                self.integers(rows.iter().map(|row| {
                    let offset = (u128::from(self.random(row)) * span) >> 64;
                    min.wrapping_add_unsigned(offset as u64)
                }))
            }
            Values::Float { min, max } => {
                let value = |row| min + (max - min) * ((self.random(row) >> 11) as f64 / (1_u64 << 53) as f64);
                if self.data_type == DataType::Float32 {
                    Arc::new(PrimitiveArray::<Float32Type>::from_iter_values(rows.iter().map(|row| value(row) as f32)))
                } else {
                    Arc::new(PrimitiveArray::<Float64Type>::from_iter_values(rows.iter().map(value)))
                }
            }
            Values::Boolean => {
                let values: BooleanBuffer = rows.iter().map(|row| self.random(row) & 1 == 1).collect();
                Arc::new(BooleanArray::new(values, None::<NullBuffer>))
            }
            Values::Length(length) => self.texts(rows, length),
            Values::Past(past) => {
                let span = u128::from(past) + 1;
                self.timestamps(rows.iter().map(|row| now - ((u128::from(self.random(row)) * span) >> 64) as i64))
            }
        }
    }

    /// Random bits of one row.
    fn random(&self, row: u64) -> u64 {
        mix(self.seed.wrapping_add(row.wrapping_mul(0x9e37_79b9_7f4a_7c15)))
    }

    fn integers(&self, values: impl Iterator<Item = i64>) -> ArrayRef {
        match &self.data_type {
            DataType::Int8 => narrow::<Int8Type>(values.map(|v| v as i8)),
            DataType::Int16 => narrow::<Int16Type>(values.map(|v| v as i16)),
            DataType::Int32 => narrow::<Int32Type>(values.map(|v| v as i32)),
            DataType::Date32 => narrow::<Date32Type>(values.map(|v| v as i32)),
            DataType::Float32 => narrow::<Float32Type>(values.map(|v| v as f32)),
            DataType::Float64 => narrow::<Float64Type>(values.map(|v| v as f64)),
            DataType::Utf8 => {
                let mut builder = StringBuilder::new();
                values.for_each(|value| builder.append_value(value.to_string()));
                Arc::new(builder.finish())
            }
            DataType::Decimal128(_, scale) => {
                let unit = 10_i128.pow(u32::try_from(*scale).unwrap_or_default().min(19));
                let array = PrimitiveArray::<Decimal128Type>::from_iter_values(values.map(|v| i128::from(v) * unit));
                make_array(array.with_data_type(self.data_type.clone()).into())
            }
            _ => narrow::<Int64Type>(values),
        }
    }

    fn timestamps(&self, millis: impl Iterator<Item = i64>) -> ArrayRef {
        let DataType::Timestamp(unit, zone) = &self.data_type else { return narrow::<Int64Type>(millis) };
        let zone = zone.clone();
        let factor = per_second(*unit);
        let ticks =
            millis.map(|m| if factor >= 1_000 { m.saturating_mul(factor / 1_000) } else { m.div_euclid(1_000) });
        match unit {
            TimeUnit::Second => {
                Arc::new(PrimitiveArray::<TimestampSecondType>::from_iter_values(ticks).with_timezone_opt(zone))
            }
            TimeUnit::Millisecond => {
                Arc::new(PrimitiveArray::<TimestampMillisecondType>::from_iter_values(ticks).with_timezone_opt(zone))
            }
            TimeUnit::Microsecond => {
                Arc::new(PrimitiveArray::<TimestampMicrosecondType>::from_iter_values(ticks).with_timezone_opt(zone))
            }
            TimeUnit::Nanosecond => {
                Arc::new(PrimitiveArray::<TimestampNanosecondType>::from_iter_values(ticks).with_timezone_opt(zone))
            }
        }
    }

    /// Hexadecimal digits, or bytes.
    fn texts(&self, rows: RowRange, length: usize) -> ArrayRef {
        let mut text = Vec::with_capacity(length + 16);
        let fill = |row, text: &mut Vec<u8>| {
            text.clear();
            let mut state = self.random(row);
            while text.len() < length {
                state = mix(state);
                text.extend((0..16).map(|digit| b"0123456789abcdef"[(state >> (4 * digit) & 15) as usize]));
            }
            text.truncate(length);
        };
        if self.data_type == DataType::Binary {
            let mut builder = BinaryBuilder::with_capacity(rows.count, rows.count * length);
            for row in rows.iter() {
                fill(row, &mut text);
                builder.append_value(&text);
            }
            return Arc::new(builder.finish());
        }
        let mut builder = StringBuilder::with_capacity(rows.count, rows.count * length);
        for row in rows.iter() {
            fill(row, &mut text);
            builder.append_value(std::str::from_utf8(&text).unwrap_or_default());
        }
        Arc::new(builder.finish())
    }
}

fn narrow<T: ArrowPrimitiveType>(values: impl Iterator<Item = T::Native>) -> ArrayRef {
    Arc::new(PrimitiveArray::<T>::from_iter_values(values))
}

/// SplitMix64's finaliser: spreads each bit over all.
fn mix(mut value: u64) -> u64 {
    value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

/// Whole numbers that a column can hold; `None` if it holds none.
fn integer_range(data_type: &DataType) -> Option<(i64, i64)> {
    Some(match data_type {
        DataType::Int8 => (i8::MIN.into(), i8::MAX.into()),
        DataType::Int16 => (i16::MIN.into(), i16::MAX.into()),
        DataType::Int32 => (i32::MIN.into(), i32::MAX.into()),
        DataType::Int64 => (i64::MIN, i64::MAX),
        // From 1970 to 2099.
        DataType::Date32 => (0, 47_846),
        DataType::Decimal128(precision, scale) => {
            let digits = i32::from(*precision) - i32::from(*scale);
            let limit = 10_i64.checked_pow(u32::try_from(digits).unwrap_or_default()).map_or(i64::MAX, |p| p - 1);
            (-limit, limit)
        }
        _ => return None,
    })
}

fn sequence(column: &Column, settings: Settings<'_>) -> Result<Values> {
    let key = |option: &str| format!("fields.{}.{option}", column.name());
    let given = |option: &str| {
        settings
            .integer(&key(option))
            .ok_or_else(|| settings.fault(&key(option), "a sequence needs it", format!("add '{}' = '…'", key(option))))
    };
    let (start, end) = (given("start")?, given("end")?);
    let (least, greatest) = match column.data_type() {
        DataType::Utf8 | DataType::Float64 | DataType::Float32 => (i64::MIN, i64::MAX),
        other => integer_range(other).ok_or_else(|| unsupported(column))?,
    };
    if end < start {
        return Err(settings.fault(&key("end"), "it is less than the start", "swap the two"));
    }
    if start < least || end > greatest {
        return Err(settings.fault(&key("end"), "the column's type does not hold the sequence", "use BIGINT"));
    }
    Ok(Values::Sequence { start, end })
}

fn random(column: &Column, settings: Settings<'_>) -> Result<Values> {
    let key = |option: &str| format!("fields.{}.{option}", column.name());
    let (min, max) = (settings.text(&key("min")), settings.text(&key("max")));
    let order = || settings.fault(&key("max"), "it is less than the minimum", "swap the two");
    Ok(match column.data_type() {
        DataType::Boolean => Values::Boolean,
        DataType::Float32 | DataType::Float64 => {
            let min = settings.float(&key("min")).unwrap_or(0.0);
            let max = settings.float(&key("max")).unwrap_or(min + 1.0);
            if max < min {
                return Err(order());
            }
            Values::Float { min, max }
        }
        DataType::Utf8 | DataType::Binary => {
            Values::Length(settings.count(&key("length")).and_then(|l| usize::try_from(l).ok()).unwrap_or(100))
        }
        DataType::Timestamp(..) => {
            let past = settings.duration(&key("max-past")).unwrap_or_default().as_millis();
            Values::Past(u64::try_from(past).unwrap_or(u64::MAX))
        }
        other => {
            let (least, greatest) = integer_range(other).ok_or_else(|| unsupported(column))?;
            let whole = |option: &str, given: Option<&str>, default| match given {
                None => Ok(default),
                Some(text) => text.trim().parse().ok().filter(|v| (least..=greatest).contains(v)).ok_or_else(|| {
                    settings.fault(
                        &key(option),
                        format!("`{text}` is no value of the column"),
                        format!("write a whole number from {least} to {greatest}"),
                    )
                }),
            };
            let (min, max) = (whole("min", min, least)?, whole("max", max, greatest)?);
            if max < min {
                return Err(order());
            }
            Values::Integer { min, max }
        }
    })
}

fn unsupported(column: &Column) -> Error {
    Error::new(Code::SqlUnsupported, format!("datagen makes no values for column `{}` of this type", column.name()))
        .way_out("make scalar columns and compute the nested value in a view")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::collections::BTreeMap;

    use arrow::{
        array::{Array, AsArray},
        datatypes::Schema,
    };

    use super::*;
    use crate::{datagen::Datagen, registry::Connector as _};

    fn table(columns: Vec<Column>, options: &[(&str, &str)]) -> TableDefinition {
        let mut all = BTreeMap::from([("connector".to_owned(), "datagen".to_owned())]);
        all.extend(options.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())));
        TableDefinition {
            name: "t".to_owned(),
            job: "default/j".to_owned(),
            schema: Arc::new(Schema::new(columns)),
            options: all,
            partitioned_by: Vec::new(),
            primary_key: Vec::new(),
            base_dir: ".".into(),
            has_watermark: false,
        }
    }

    fn column(data_type: DataType, options: &[(&str, &str)]) -> ArrayRef {
        let table = table(vec![Column::new("a", data_type, true)], options);
        let field = Field::new(table.schema.field(0), 0, Settings::new(&table, &Datagen).unwrap()).unwrap();
        field.column(RowRange { first: 0, step: 1, count: 1000 }, 1_000_000)
    }

    #[test]
    fn random_numbers_stay_within_their_bounds_and_reach_them() {
        let array = column(DataType::Int32, &[("fields.a.min", "-2"), ("fields.a.max", "2")]);
        let mut values = array.as_primitive::<Int32Type>().values().to_vec();
        values.sort_unstable();
        values.dedup();
        assert_eq!(values, [-2, -1, 0, 1, 2]);
    }

    #[test]
    fn a_share_of_values_is_null() {
        let nulls = column(DataType::Utf8, &[("fields.a.null-rate", "0.5"), ("fields.a.length", "3")]).null_count();
        assert!((400..600).contains(&nulls), "{nulls}");
    }

    #[test]
    fn a_sequence_counts() {
        let array = column(
            DataType::Int64,
            &[("fields.a.kind", "sequence"), ("fields.a.start", "5"), ("fields.a.end", "2000")],
        );
        assert_eq!(array.as_primitive::<Int64Type>().value(10), 15);
    }

    #[test]
    fn options_of_no_column_and_impossible_ranges_are_refused() {
        let int = || vec![Column::new("age", DataType::Int8, false)];
        for (options, way_out) in [
            (&[("fields.aeg.min", "1")][..], "did you mean 'age'?"),
            (&[("fields.age.min", "1000")][..], "write a whole number from -128 to 127"),
            (&[("fields.age.min", "5"), ("fields.age.max", "1")][..], "swap the two"),
            (&[("fields.age.kind", "sequence")][..], "add 'fields.age.start' = '…'"),
        ] {
            let error = Datagen.source(&table(int(), options)).err().unwrap();
            assert_eq!(error.code, Code::OptionInvalid);
            assert_eq!(error.way_out.as_deref(), Some(way_out));
        }
    }
}
