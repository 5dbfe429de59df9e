//! Who runs the tasks.

use serde::{Deserialize, Serialize};
use streamkeeper_types::{Millis, SubtaskId};
use utoipa::ToSchema;

/// `/taskmanagers`
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TaskManagerList {
    pub task_managers: Vec<TaskManagerView>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TaskManagerView {
    pub id: String,
    /// Of its data plane.
    pub address: String,
    pub version: String,
    pub slots: u32,
    /// Tasks that it runs, as in `2/0` for vertex and subtask.
    pub tasks: Vec<String>,
    #[schema(value_type = i64)]
    pub connected_at: Millis,
}

/// How a task is named in bodies: `2/0` for vertex and subtask.
#[must_use]
pub fn task_name(subtask: SubtaskId) -> String {
    format!("{}/{}", subtask.vertex.0, subtask.index)
}
