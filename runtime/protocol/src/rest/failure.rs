//! Why something went wrong.

use serde::{Deserialize, Serialize};
use streamkeeper_types::{Error, Fault, Millis};
use utoipa::ToSchema;

/// Body of every answer with a status of 400 or above, and the cause wherever something failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Failure {
    /// Stable, as in `SQL_SYNTAX`; docs/reference/errors.md lists all.
    pub code: String,
    /// What happened, and to which thing.
    pub cause: String,
    /// What to do about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub way_out: Option<String>,
    /// Where, outermost first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub place: Vec<String>,
    /// Who can mend it: `user`, `external` or `internal`.
    pub fault: String,
}

impl From<&Error> for Failure {
    fn from(error: &Error) -> Self {
        let fault = match error.fault() {
            Fault::User => "user",
            Fault::External => "external",
            Fault::Internal => "internal",
        };
        Self {
            code: error.code.as_str().to_owned(),
            cause: error.cause.clone(),
            way_out: error.way_out.clone(),
            place: error.place.clone(),
            fault: fault.to_owned(),
        }
    }
}

/// Failures of the job, newest first.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Exceptions {
    pub exceptions: Vec<ExceptionView>,
    /// Earlier ones that are not kept.
    pub dropped: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ExceptionView {
    #[schema(value_type = i64)]
    pub at: Millis,
    pub failure: Failure,
    /// The task that failed first, as in `2/0` for vertex and subtask.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<String>,
    /// Whether the job was restarted because of it; `false`: it ended.
    pub restarted: bool,
}
