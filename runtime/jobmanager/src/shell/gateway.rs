//! What a JobManager needs of TaskManagers; transports implement it.

use streamkeeper_engine::Deployment;
use streamkeeper_protocol::{ToTask, rest::TaskManagerView};
use streamkeeper_types::{AttemptId, Result};

/// The TaskManagers of a job. Their tasks' reports come back through [`super::ReportSender`]; calls do not wait for tasks.
pub trait TaskManagers: Send + Sync {
    /// Slots of all TaskManagers that are there; each runs one subtask of every vertex. A change of it is told to the
    /// inbox.
    fn slots(&self) -> u32;

    /// Who is there, for people. None where tasks run in the JobManager's own process.
    fn members(&self) -> Vec<TaskManagerView> {
        Vec::new()
    }

    /// Starts all tasks of a run. Each reports its state from then on.
    ///
    /// # Errors
    /// When no task was started.
    fn deploy(&self, deployment: Deployment) -> Result<()>;

    /// Hands a command to an attempt, in order.
    ///
    /// # Errors
    /// When the attempt does not run.
    fn send(&self, attempt: AttemptId, command: ToTask) -> Result<()>;
}
