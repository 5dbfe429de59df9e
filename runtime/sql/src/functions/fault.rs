//! Errors of expressions: ours travel inside DataFusion's, and come out again with their code.

use arrow::error::ArrowError;
use datafusion::{
    common::{
        DataFusionError, Diagnostic, Span,
        tree_node::{TreeNode, TreeNodeRecursion},
    },
    logical_expr::Expr,
};
use streamkeeper_types::{Code, Error};

/// An expression that fails on a row.
pub(crate) fn evaluation(cause: impl Into<String>) -> DataFusionError {
    external(Error::new(Code::Evaluation, cause))
}

/// As [`evaluation`], with what to do about it.
pub(crate) fn evaluation_with(cause: impl Into<String>, way_out: impl Into<String>) -> DataFusionError {
    external(Error::new(Code::Evaluation, cause).way_out(way_out))
}

/// A call that can be refused while it is planned.
pub(crate) fn invalid(cause: impl Into<String>, way_out: impl Into<String>) -> DataFusionError {
    external(Error::new(Code::SqlInvalid, cause).way_out(way_out))
}

pub(crate) fn external(error: Error) -> DataFusionError {
    DataFusionError::External(Box::new(error))
}

/// What [`in_call`] puts before a function's name.
const CALL: &str = "in the call of ";

/// Says which function's call an error is about, so that its place in the text can be found.
pub(crate) fn in_call(error: DataFusionError, function: &str) -> DataFusionError {
    error.context(format!("{CALL}{function}"))
}

/// The function that [`in_call`] named, from an error's context.
pub(crate) fn called(context: &str) -> Option<&str> {
    context.strip_prefix(CALL)
}

/// Gives an error a place in the text, unless it has one: that of a column, see [`first_column`].
pub(crate) fn at_column(error: DataFusionError, span: Option<Span>) -> DataFusionError {
    match span {
        Some(span) if error.diagnostic().is_none() => error.with_diagnostic(Diagnostic::new_error("", Some(span))),
        _ => error,
    }
}

/// Where the first column of an expression that has a place stands in the text.
pub(crate) fn first_column(expr: &Expr) -> Option<Span> {
    let mut found = None;
    // The closure never fails.
    let _ = expr.apply(|inner| {
        if let Expr::Column(column) = inner {
            found = column.spans.first();
        }
        Ok(if found.is_some() { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    });
    found
}

/// The error as users see it. Errors that are not ours get `code`: EVALUATION where rows are evaluated, SQL_INVALID where
/// a statement is planned.
#[must_use]
pub fn to_error(error: &DataFusionError, code: Code) -> Error {
    match error {
        DataFusionError::External(inner) => boxed(inner.as_ref(), code),
        DataFusionError::Context(_, inner) | DataFusionError::Diagnostic(_, inner) => to_error(inner, code),
        DataFusionError::ArrowError(inner, _) => arrow(inner, code),
        DataFusionError::Shared(inner) => to_error(inner, code),
        DataFusionError::Plan(text) | DataFusionError::Execution(text) => with_way_out(Error::new(code, text.clone())),
        other => Error::new(code, other.strip_backtrace()),
    }
}

fn arrow(error: &ArrowError, code: Code) -> Error {
    match error {
        ArrowError::DivideByZero => division_by_zero(),
        ArrowError::ExternalError(inner) => boxed(inner.as_ref(), code),
        other => Error::new(code, other.to_string()),
    }
}

/// An error that went through Arrow and DataFusion, which wrap each other's.
fn boxed(error: &(dyn std::error::Error + Send + Sync + 'static), code: Code) -> Error {
    if let Some(ours) = error.downcast_ref::<Error>() {
        return ours.clone();
    }
    if let Some(inner) = error.downcast_ref::<DataFusionError>() {
        return to_error(inner, code);
    }
    match error.downcast_ref::<ArrowError>() {
        Some(inner) => arrow(inner, code),
        None => Error::new(code, error.to_string()),
    }
}

/// DataFusion's planner finds some faults before our rewriting does; its texts lack the way out.
fn with_way_out(error: Error) -> Error {
    const WAYS_OUT: [(&str, &str); 3] = [
        (
            "Cannot coerce arithmetic expression",
            "CAST the operands to numbers; to a time add an interval: ts + INTERVAL '1' DAY",
        ),
        ("Cannot infer common argument type for comparison", "CAST one of them to the other's type"),
        ("must appear in the GROUP BY clause", "group by the column, or aggregate it: MAX(x)"),
    ];
    match WAYS_OUT.iter().find(|(text, _)| error.cause.contains(text)) {
        Some((_, way_out)) => error.way_out(*way_out),
        None => error,
    }
}

/// How a zero divisor does no harm.
pub(crate) const WITHOUT_FAILING: &str = "divide by NULLIF(x, 0) to get NULL instead";

pub(crate) fn division_by_zero() -> Error {
    Error::new(Code::Evaluation, "division by zero").way_out(WITHOUT_FAILING)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_of_ours_comes_out_of_every_wrapping_as_it_was() {
        let wrapped = ArrowError::ExternalError(Box::new(external(division_by_zero())));
        let wrapped = DataFusionError::ArrowError(Box::new(wrapped), None);
        let wrapped = in_call(DataFusionError::External(Box::new(wrapped)), "MOD");
        assert_eq!(to_error(&wrapped, Code::SqlInvalid), division_by_zero());
    }
}
