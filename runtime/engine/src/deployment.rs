//! What a JobManager hands to TaskManagers to start a run of a job.

use std::{collections::BTreeMap, sync::Arc};

use streamkeeper_types::{AttemptId, OperatorId};

use crate::{JobGraph, OperatorRestore};

/// All tasks of one run of a job.
#[derive(Clone)]
pub struct Deployment {
    pub graph: Arc<JobGraph>,
    /// One for each subtask of the graph.
    pub tasks: Vec<TaskDeployment>,
}

/// One attempt, and what its operators are restored from.
#[derive(Debug, Clone)]
pub struct TaskDeployment {
    pub attempt: AttemptId,
    /// Operators that are not here start empty.
    pub restore: BTreeMap<OperatorId, OperatorRestore>,
}
