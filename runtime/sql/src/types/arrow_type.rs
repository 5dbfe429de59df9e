//! SQL types as Arrow types, and back.

use std::sync::Arc;

use arrow::datatypes::{DataType, Field as ArrowField, Fields, TimeUnit};

use super::{Field, SqlType};

impl SqlType {
    /// The Arrow type that holds values of this type. Times get the coarsest unit that keeps their digits, but no
    /// coarser than milliseconds.
    #[must_use]
    pub fn arrow(&self) -> DataType {
        match self {
            Self::Boolean => DataType::Boolean,
            Self::TinyInt => DataType::Int8,
            Self::SmallInt => DataType::Int16,
            Self::Int => DataType::Int32,
            Self::BigInt => DataType::Int64,
            Self::Float => DataType::Float32,
            Self::Double => DataType::Float64,
            #[expect(clippy::cast_possible_wrap, reason = "at most 38")]
            Self::Decimal { precision, scale } => DataType::Decimal128(*precision, *scale as i8),
            Self::Char(_) | Self::Varchar(_) => DataType::Utf8,
            Self::Binary(_) | Self::Varbinary(_) => DataType::Binary,
            Self::Date => DataType::Date32,
            Self::Time(0..=3) => DataType::Time32(TimeUnit::Millisecond),
            Self::Time(4..=6) => DataType::Time64(TimeUnit::Microsecond),
            Self::Time(_) => DataType::Time64(TimeUnit::Nanosecond),
            Self::Timestamp(precision) => DataType::Timestamp(unit(*precision), None),
            Self::TimestampLtz(precision) => DataType::Timestamp(unit(*precision), Some("UTC".into())),
            Self::Array(element) => DataType::List(Arc::new(element.arrow_named("item"))),
            Self::Map(key, value) => {
                let entry = [ArrowField::new("key", key.arrow(), false), value.arrow_named("value")];
                let entries = ArrowField::new("entries", DataType::Struct(Fields::from(entry.to_vec())), false);
                DataType::Map(Arc::new(entries), false)
            }
            Self::Row(fields) => DataType::Struct(fields.iter().map(|f| f.arrow_named(&f.name)).collect()),
        }
    }

    /// The SQL type of values that lie in this Arrow type; `None` for types that SQL does not have here.
    #[must_use]
    pub fn from_arrow(data_type: &DataType) -> Option<Self> {
        Some(match data_type {
            DataType::Boolean => Self::Boolean,
            DataType::Int8 => Self::TinyInt,
            DataType::Int16 => Self::SmallInt,
            DataType::Int32 => Self::Int,
            DataType::Int64 => Self::BigInt,
            DataType::Float32 => Self::Float,
            DataType::Float64 => Self::Double,
            DataType::Decimal128(precision, scale) => {
                Self::Decimal { precision: *precision, scale: u8::try_from(*scale).ok()? }
            }
            DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => Self::STRING,
            DataType::Binary | DataType::LargeBinary | DataType::BinaryView => Self::BYTES,
            DataType::Date32 => Self::Date,
            DataType::Time32(TimeUnit::Second) => Self::Time(0),
            DataType::Time32(unit) | DataType::Time64(unit) => Self::Time(digits(*unit)),
            DataType::Timestamp(unit, None) => Self::Timestamp(digits(*unit)),
            DataType::Timestamp(unit, Some(_)) => Self::TimestampLtz(digits(*unit)),
            DataType::List(element) | DataType::LargeList(element) => {
                Self::Array(Box::new(Field { name: String::new(), ..Field::from_arrow(element)? }))
            }
            DataType::Map(entries, _) => match entries.data_type() {
                DataType::Struct(fields) if fields.len() == 2 => Self::Map(
                    Box::new(Self::from_arrow(fields[0].data_type())?),
                    Box::new(Field { name: String::new(), ..Field::from_arrow(&fields[1])? }),
                ),
                _ => return None,
            },
            DataType::Struct(fields) => {
                Self::Row(fields.iter().map(|field| Field::from_arrow(field)).collect::<Option<_>>()?)
            }
            _ => return None,
        })
    }

    /// How messages call an Arrow type: by its SQL name where it has one.
    #[must_use]
    pub fn name_of(data_type: &DataType) -> String {
        Self::from_arrow(data_type).map_or_else(|| data_type.to_string(), |sql| sql.to_string())
    }
}

impl Field {
    /// As a column of an Arrow schema.
    #[must_use]
    pub fn arrow(&self) -> ArrowField {
        self.arrow_named(&self.name)
    }

    fn arrow_named(&self, name: &str) -> ArrowField {
        ArrowField::new(name, self.data_type.arrow(), self.nullable)
    }

    fn from_arrow(field: &ArrowField) -> Option<Self> {
        let data_type = SqlType::from_arrow(field.data_type())?;
        Some(Self { name: field.name().clone(), data_type, nullable: field.is_nullable() })
    }
}

/// Unit of a TIMESTAMP with this many fractional digits.
fn unit(precision: u8) -> TimeUnit {
    match precision {
        0..=3 => TimeUnit::Millisecond,
        4..=6 => TimeUnit::Microsecond,
        _ => TimeUnit::Nanosecond,
    }
}

fn digits(unit: TimeUnit) -> u8 {
    match unit {
        TimeUnit::Second => 0,
        TimeUnit::Millisecond => 3,
        TimeUnit::Microsecond => 6,
        TimeUnit::Nanosecond => 9,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::types::parse_type;

    #[test]
    fn sql_types_have_their_documented_arrow_types() {
        let check = |sql: &str, arrow: DataType| assert_eq!(parse_type(sql).unwrap().arrow(), arrow, "{sql}");
        check("STRING", DataType::Utf8);
        check("VARCHAR(10)", DataType::Utf8);
        check("INT", DataType::Int32);
        check("DECIMAL(10, 2)", DataType::Decimal128(10, 2));
        check("DATE", DataType::Date32);
        check("TIME", DataType::Time32(TimeUnit::Millisecond));
        check("TIMESTAMP(3)", DataType::Timestamp(TimeUnit::Millisecond, None));
        check("TIMESTAMP", DataType::Timestamp(TimeUnit::Microsecond, None));
        check("TIMESTAMP(9)", DataType::Timestamp(TimeUnit::Nanosecond, None));
        check("TIMESTAMP_LTZ(3)", DataType::Timestamp(TimeUnit::Millisecond, Some("UTC".into())));
        check("BYTES", DataType::Binary);
        check("ARRAY<INT>", DataType::List(Arc::new(ArrowField::new("item", DataType::Int32, true))));
    }

    #[test]
    fn arrow_types_read_back_as_the_widest_sql_type_they_hold() {
        for sql in [
            "ARRAY<INT NOT NULL>",
            "MAP<STRING, BIGINT>",
            "ROW<`a` INT, `b` ROW<`c` STRING NOT NULL>>",
            "DECIMAL(38, 0)",
        ] {
            let parsed = parse_type(sql).unwrap();
            assert_eq!(SqlType::from_arrow(&parsed.arrow()), Some(parsed), "{sql}");
        }
        assert_eq!(SqlType::from_arrow(&parse_type("CHAR(3)").unwrap().arrow()), Some(SqlType::STRING));
    }
}
