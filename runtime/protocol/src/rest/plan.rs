//! The dataflow.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// `/jobs/{job}/plan`
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PlanView {
    pub vertices: Vec<PlanVertex>,
    pub edges: Vec<PlanEdge>,
    /// The job's SQL.
    pub program: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PlanVertex {
    pub id: u32,
    pub name: String,
    pub parallelism: u32,
    /// Chained, in the order of the records' way.
    pub operators: Vec<PlanOperator>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PlanOperator {
    /// Stable across restarts and edits of other operators.
    pub id: String,
    pub name: String,
    pub details: Vec<String>,
    /// Names of its state tables.
    pub state: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PlanEdge {
    pub from: u32,
    pub to: u32,
    /// How records find their subtask: `forward`, `hash`, `rebalance`, `broadcast` or `global` (all to one).
    pub partitioning: String,
}
