//! The JobManager's own process.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// `/healthz`
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Health {
    pub role: Role,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// It leads the job.
    Leader,
    /// Another JobManager leads the job, or nobody yet.
    Standby,
}

/// `/config`: options in force, by their names in docs/reference/config.md. No secret is among them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ConfigView {
    pub options: BTreeMap<String, String>,
}
