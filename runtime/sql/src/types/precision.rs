//! Digits of a TIMESTAMP's fraction, noted on Arrow fields while a query is planned: Arrow's units are seconds and every
//! third digit, SQL's types have any number from 0 to 9.

use arrow::datatypes::Field;

use super::SqlType;

const KEY: &str = "precision";

/// The field with the digits of its SQL type, if Arrow's type alone does not tell them.
pub(crate) fn with_precision(field: Field, data_type: &SqlType) -> Field {
    let digits = match data_type {
        SqlType::Timestamp(digits) | SqlType::TimestampLtz(digits) if !matches!(digits, 3 | 6 | 9) => *digits,
        _ => return field,
    };
    field.with_metadata([(KEY.to_owned(), digits.to_string())].into())
}

/// The digits that [`with_precision`] noted.
pub(crate) fn precision_of(field: &Field) -> Option<u8> {
    field.metadata().get(KEY)?.parse().ok()
}

/// The field as batches carry it.
pub(crate) fn without_precision(field: &Field) -> Field {
    let mut field = field.clone();
    field.metadata_mut().remove(KEY);
    field
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_digits_that_arrow_does_not_tell_are_noted() {
        let noted = |sql: SqlType| precision_of(&with_precision(Field::new("t", sql.arrow(), true), &sql));
        assert_eq!(noted(SqlType::Timestamp(0)), Some(0));
        assert_eq!(noted(SqlType::TimestampLtz(1)), Some(1));
        assert_eq!(noted(SqlType::Timestamp(3)), None);
        assert_eq!(noted(SqlType::Int), None);
    }
}
