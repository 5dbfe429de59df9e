//! LIKE: DataFusion takes a backslash as escape character, Flink none, or the one that ESCAPE names.

use datafusion::{
    common::{DFSchema, Result, ScalarValue, tree_node::Transformed},
    functions::string,
    logical_expr::{Expr, ExprSchemable, Like, lit},
};

use crate::{
    functions::{definition::is_text, fault::invalid},
    types::SqlType,
};

pub(super) fn rewrite(like: Like, schema: &DFSchema) -> Result<Transformed<Expr>> {
    for operand in [&like.expr, &like.pattern] {
        match operand.get_type(schema) {
            Ok(given) if is_text(&given) || given.is_null() => {}
            Ok(given) => {
                let cause = format!("LIKE compares STRINGs, not {}", SqlType::name_of(&given));
                return Err(invalid(cause, "CAST it: CAST(x AS STRING) LIKE '1%'"));
            }
            // Operands without a type are DataFusion's to report.
            Err(_) => {}
        }
    }
    let Like { negated, expr, pattern, escape_char, case_insensitive } = like;
    let pattern = match *pattern {
        Expr::Literal(value, metadata) => match value.try_as_str().flatten() {
            Some(text) => Expr::Literal(ScalarValue::Utf8(Some(with_backslashes(text, escape_char)?)), metadata),
            None => Expr::Literal(value, metadata),
        },
        _ if escape_char.is_some() => {
            return Err(invalid(
                "ESCAPE with a pattern that is no literal is not supported",
                "write the pattern as a literal",
            ));
        }
        other => string::replace().call(vec![other, lit("\\"), lit("\\\\")]),
    };
    let like = Like { negated, expr, pattern: Box::new(pattern), escape_char: None, case_insensitive };
    Ok(Transformed::yes(Expr::Like(like)))
}

/// The pattern with a backslash as its escape character.
fn with_backslashes(pattern: &str, escape: Option<char>) -> Result<String> {
    let mut result = String::with_capacity(pattern.len() + 4);
    let mut rest = pattern.chars();
    while let Some(c) = rest.next() {
        if Some(c) == escape {
            match rest.next() {
                Some(next) if Some(next) == escape || matches!(next, '%' | '_') => result.extend(['\\', next]),
                _ => {
                    let cause =
                        format!("the escape character of the pattern '{pattern}' stands before a plain character");
                    return Err(invalid(cause, "it may stand before %, _ and itself"));
                }
            }
        } else if c == '\\' {
            result.push_str("\\\\");
        } else {
            result.push(c);
        }
    }
    Ok(result)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_backslash_is_a_plain_character_unless_named() {
        assert_eq!(with_backslashes("a\\%_", None).unwrap(), "a\\\\%_");
        assert_eq!(with_backslashes("a!%!!_", Some('!')).unwrap(), "a\\%\\!_");
        assert_eq!(with_backslashes("a\\%", Some('\\')).unwrap(), "a\\%");
        assert!(with_backslashes("a!b", Some('!')).is_err());
        assert!(with_backslashes("a!", Some('!')).is_err());
    }
}
