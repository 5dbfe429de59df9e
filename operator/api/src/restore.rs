//! Which state a job starts from, where that shall not be the newest.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::cel;

/// Which state the job starts from, where that shall not be the newest.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(extend("x-kubernetes-validations" = cel::restore()))]
pub struct Restore {
    /// Name of a Savepoint object, or the address of a savepoint. Acts once per new value; newer points win afterwards.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 1024))]
    pub from_savepoint: Option<String>,
    /// Consent to forget all state up to this restore point's id; void for any later one.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub discard_up_to: Option<i64>,
}
