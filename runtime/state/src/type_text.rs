//! The stable text form of data types in snapshots. Only written and compared, so that it needs no parser.

use arrow::datatypes::{DataType, IntervalUnit, TimeUnit};

/// Text of a type, as `int64`, `decimal(38,2)` or `row<name string, tags list<string>>`. Equal types have equal texts;
/// whether NULL is allowed inside is no part of it.
#[must_use]
pub(crate) fn display(data_type: &DataType) -> String {
    let plain = match data_type {
        DataType::Null => "null",
        DataType::Boolean => "boolean",
        DataType::Int8 => "int8",
        DataType::Int16 => "int16",
        DataType::Int32 => "int32",
        DataType::Int64 => "int64",
        DataType::UInt8 => "uint8",
        DataType::UInt16 => "uint16",
        DataType::UInt32 => "uint32",
        DataType::UInt64 => "uint64",
        DataType::Float32 => "float32",
        DataType::Float64 => "float64",
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => "string",
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView => "bytes",
        DataType::Date32 => "date",
        DataType::Date64 => "date(ms)",
        DataType::Interval(IntervalUnit::YearMonth) => "interval(month)",
        DataType::Interval(IntervalUnit::DayTime) => "interval(day-ms)",
        DataType::Interval(IntervalUnit::MonthDayNano) => "interval(month-day-ns)",
        _ => return compound(data_type),
    };
    plain.to_owned()
}

fn compound(data_type: &DataType) -> String {
    match data_type {
        DataType::Decimal128(precision, scale) => format!("decimal({precision},{scale})"),
        DataType::FixedSizeBinary(size) => format!("bytes({size})"),
        DataType::Time32(unit) | DataType::Time64(unit) => format!("time({})", unit_text(*unit)),
        DataType::Timestamp(unit, None) => format!("timestamp({})", unit_text(*unit)),
        DataType::Timestamp(unit, Some(zone)) => format!("timestamp({},{zone})", unit_text(*unit)),
        DataType::Duration(unit) => format!("duration({})", unit_text(*unit)),
        DataType::List(item) | DataType::LargeList(item) => format!("list<{}>", display(item.data_type())),
        DataType::Map(entries, _) => format!("map<{}>", display(entries.data_type())),
        DataType::Struct(fields) => {
            let fields: Vec<String> =
                fields.iter().map(|field| format!("{:?} {}", field.name(), display(field.data_type()))).collect();
            format!("row<{}>", fields.join(", "))
        }
        // No other type gets as far as a table.
        other => format!("{other}"),
    }
}

fn unit_text(unit: TimeUnit) -> &'static str {
    match unit {
        TimeUnit::Second => "s",
        TimeUnit::Millisecond => "ms",
        TimeUnit::Microsecond => "us",
        TimeUnit::Nanosecond => "ns",
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::datatypes::Field;

    use super::*;

    #[test]
    fn types_have_the_documented_texts() {
        assert_eq!(display(&DataType::Int64), "int64");
        assert_eq!(display(&DataType::Decimal128(38, 2)), "decimal(38,2)");
        assert_eq!(display(&DataType::Timestamp(TimeUnit::Millisecond, Some("UTC".into()))), "timestamp(ms,UTC)");
        let list = DataType::List(Arc::new(Field::new("item", DataType::Utf8, true)));
        let row =
            DataType::Struct(vec![Field::new("a b", DataType::Int32, true), Field::new("tags", list, true)].into());
        assert_eq!(display(&row), r#"row<"a b" int32, "tags" list<string>>"#);
    }
}
