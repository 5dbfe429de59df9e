//! Which types a sink's column takes without a CAST in the text: Flink's implicit casts.

use crate::types::SqlType;

/// Whether a value of type `from` may be inserted into a column of type `into`.
pub(super) fn is_assignable(from: &SqlType, into: &SqlType) -> bool {
    use SqlType::{
        Array, BigInt, Boolean, Date, Decimal, Double, Float, Int, Map, Row, SmallInt, Time, Timestamp, TimestampLtz,
        TinyInt,
    };
    match into {
        TinyInt | SmallInt | Int | BigInt => from.is_integer() && width(from) <= width(into),
        Decimal { .. } | Double => from.is_numeric(),
        Float => from.is_numeric() && *from != Double,
        Boolean => *from == Boolean,
        text if text.is_text() => from.is_text(),
        SqlType::Binary(_) | SqlType::Varbinary(_) => matches!(from, SqlType::Binary(_) | SqlType::Varbinary(_)),
        Date => matches!(from, Date | Timestamp(_)),
        Time(_) => matches!(from, Time(_) | Timestamp(_)),
        Timestamp(_) | TimestampLtz(_) => matches!(from, Timestamp(_) | TimestampLtz(_)),
        Array(element) => {
            matches!(from, Array(other) if is_assignable(&other.data_type, &element.data_type))
        }
        Map(key, value) => matches!(from, Map(other_key, other_value)
            if is_assignable(other_key, key) && is_assignable(&other_value.data_type, &value.data_type)),
        Row(fields) => matches!(from, Row(others)
            if fields.len() == others.len()
                && fields.iter().zip(others).all(|(field, other)| is_assignable(&other.data_type, &field.data_type))),
        _ => false,
    }
}

/// Bytes of an integer.
fn width(data_type: &SqlType) -> u8 {
    match data_type {
        SqlType::TinyInt => 1,
        SqlType::SmallInt => 2,
        SqlType::Int => 4,
        _ => 8,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::types::parse_type;

    #[test]
    fn implicit_casts_are_those_of_flink() {
        let check = |from: &str, into: &str, expected: bool| {
            let (parsed_from, parsed_into) = (parse_type(from).unwrap(), parse_type(into).unwrap());
            assert_eq!(is_assignable(&parsed_from, &parsed_into), expected, "{from} into {into}");
        };
        check("INT", "BIGINT", true);
        check("BIGINT", "INT", false);
        check("BIGINT", "DOUBLE", true);
        check("DOUBLE", "FLOAT", false);
        check("DOUBLE", "DECIMAL(10, 2)", true);
        check("STRING", "INT", false);
        check("INT", "STRING", false);
        check("VARCHAR(3)", "STRING", true);
        check("TIMESTAMP(3)", "TIMESTAMP_LTZ(3)", true);
        check("TIMESTAMP(3)", "DATE", true);
        check("DATE", "TIMESTAMP(3)", false);
        check("BOOLEAN", "INT", false);
        check("ARRAY<INT>", "ARRAY<BIGINT>", true);
        check("ROW<a INT>", "ROW<b BIGINT>", true);
        check("ROW<a INT>", "ROW<a INT, b INT>", false);
    }
}
