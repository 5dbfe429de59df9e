//! JobManager and TaskManager in one process, joined by calls and a queue instead of a network.

use std::sync::Arc;

use streamkeeper_engine::Deployment;
use streamkeeper_jobmanager::shell::{self, Inbox, TaskManagers};
pub use streamkeeper_jobmanager::shell::{JobHandle, JobOutcome, JobSpec, JobStatus, RestoreChoice};
use streamkeeper_protocol::ToTask;
use streamkeeper_state::Backend;
use streamkeeper_types::{AttemptId, Result};

use crate::{TaskManager, TaskManagerOptions};

/// A job and what this process gives it.
#[derive(Clone)]
pub struct LocalJob {
    pub job: JobSpec,
    pub tasks: TaskManagerOptions,
    pub backend: Arc<dyn Backend>,
}

/// The in-memory transport.
struct InProcess(Arc<TaskManager>);

impl TaskManagers for InProcess {
    fn slots(&self) -> u32 {
        self.0.slots()
    }

    fn deploy(&self, deployment: Deployment) -> Result<()> {
        self.0.deploy(deployment)
    }

    fn send(&self, attempt: AttemptId, command: ToTask) -> Result<()> {
        self.0.send(attempt, command)
    }
}

/// Starts the job in this process. It goes on where an earlier run was, fences that run if it still lives, and ends
/// with [`JobOutcome::AlreadyFinished`] if nothing is left to do.
///
/// # Errors
/// As [`shell::start`], and those of [`TaskManager::start`]. Nothing was started then.
pub fn run_local(local: LocalJob) -> Result<JobHandle> {
    let LocalJob { job, tasks, backend } = local;
    let (inbox, mail) = Inbox::new();
    let (storage, clock) = (Arc::clone(&job.storage), Arc::clone(&job.clock));
    let manager = Arc::new(TaskManager::start(tasks, storage, backend, clock, inbox.report_sink())?);
    let transport = Arc::new(InProcess(Arc::clone(&manager)));
    shell::start(job, transport, inbox, mail, move || manager.shut_down())
}
