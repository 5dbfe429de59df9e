//! Expressions as plans and errors show them: near to what the user wrote.

use datafusion::{
    common::ScalarValue,
    logical_expr::{Expr, expr::ScalarFunction},
};

use super::wording::in_sql;

/// Longer texts are cut.
const MAX_CHARS: usize = 200;

/// The expression's text; its columns are shown by their names.
pub(super) fn shown(expr: &Expr) -> String {
    let text = whole(expr);
    match text.char_indices().nth(MAX_CHARS) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

/// As [`shown`], however long.
pub(super) fn whole(expr: &Expr) -> String {
    match expr {
        Expr::Alias(alias) => whole(&alias.expr),
        Expr::Column(column) => column.name.clone(),
        Expr::Literal(value, _) => literal(value),
        // What brings two values to one type; CAST in the text is a function.
        Expr::Cast(cast) => whole(&cast.expr),
        Expr::BinaryExpr(binary) => format!("{} {} {}", operand(&binary.left), binary.op, operand(&binary.right)),
        Expr::Not(inner) => format!("NOT {}", operand(inner)),
        Expr::Negative(inner) => format!("-{}", operand(inner)),
        Expr::IsNull(inner) => format!("{} IS NULL", operand(inner)),
        Expr::IsNotNull(inner) => format!("{} IS NOT NULL", operand(inner)),
        Expr::ScalarFunction(call) => function(call),
        other => in_sql(&other.human_display().to_string()),
    }
}

fn operand(expr: &Expr) -> String {
    match expr {
        Expr::BinaryExpr(_) => format!("({})", whole(expr)),
        _ => whole(expr),
    }
}

fn literal(value: &ScalarValue) -> String {
    match value {
        ScalarValue::Utf8(Some(text)) => format!("'{}'", text.replace('\'', "''")),
        other if other.is_null() => "NULL".to_owned(),
        other => other.to_string(),
    }
}

fn function(call: &ScalarFunction) -> String {
    let (name, args) = (call.func.name(), call.args.as_slice());
    match (name, args) {
        ("__cast" | "__try_cast", [value, Expr::Literal(ScalarValue::Utf8(Some(data_type)), _)]) => {
            format!("{}({} AS {data_type})", name.trim_start_matches('_').to_uppercase(), whole(value))
        }
        ("get_field", [row, Expr::Literal(ScalarValue::Utf8(Some(field)), _)]) => format!("{}.{field}", operand(row)),
        ("__divide", [left, right]) => format!("{} / {}", operand(left), operand(right)),
        _ => {
            let args: Vec<String> = args.iter().map(whole).collect();
            format!("{}({})", name.trim_start_matches('_').to_uppercase(), args.join(", "))
        }
    }
}

#[cfg(test)]
mod tests {
    use datafusion::logical_expr::{col, lit};

    use super::*;

    #[test]
    fn expressions_read_like_sql() {
        assert_eq!(shown(&col("a").gt(lit(3_i32)).and(col("b").eq(lit("it's")))), "(a > 3) AND (b = 'it''s')");
        assert_eq!(shown(&col("a").is_not_null()), "a IS NOT NULL");
        assert_eq!(shown(&lit(ScalarValue::Int32(None))), "NULL");
    }

    #[test]
    fn long_texts_are_cut() {
        assert_eq!(shown(&lit("x".repeat(500))).chars().count(), MAX_CHARS + 1);
    }
}
