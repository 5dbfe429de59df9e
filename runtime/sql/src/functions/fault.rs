//! Errors of expressions: ours travel inside DataFusion's, and come out again with their code.

use arrow::error::ArrowError;
use datafusion::common::DataFusionError;
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

/// The error as users see it. Errors that are not ours get `code`: EVALUATION where rows are evaluated, SQL_INVALID where
/// a statement is planned.
#[must_use]
pub fn to_error(error: &DataFusionError, code: Code) -> Error {
    match error {
        DataFusionError::External(inner) => match inner.downcast_ref::<Error>() {
            Some(ours) => ours.clone(),
            None => Error::new(code, inner.to_string()),
        },
        DataFusionError::Context(_, inner) | DataFusionError::Diagnostic(_, inner) => to_error(inner, code),
        DataFusionError::ArrowError(inner, _) => match inner.as_ref() {
            ArrowError::DivideByZero => division_by_zero(),
            ArrowError::ExternalError(inner) => match inner.downcast_ref::<Error>() {
                Some(ours) => ours.clone(),
                None => Error::new(code, inner.to_string()),
            },
            other => Error::new(code, other.to_string()),
        },
        DataFusionError::Shared(inner) => to_error(inner, code),
        DataFusionError::Plan(text) | DataFusionError::Execution(text) => with_way_out(Error::new(code, text.clone())),
        other => Error::new(code, other.strip_backtrace()),
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

pub(crate) fn division_by_zero() -> Error {
    Error::new(Code::Evaluation, "division by zero").way_out("divide by NULLIF(x, 0) to get NULL instead")
}
