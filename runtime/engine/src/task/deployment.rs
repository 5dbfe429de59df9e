//! What a task is made from, and the handle by which its process steers it.

use std::{
    collections::BTreeMap,
    convert::Infallible,
    path::PathBuf,
    sync::Arc,
    thread::{Builder, JoinHandle},
    time::Duration,
};

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, bounded, unbounded};
use streamkeeper_network::{GateWaker, InputGate, Interrupt};
use streamkeeper_protocol::{TaskState, ToTask};
use streamkeeper_state::Backend;
use streamkeeper_storage::Storage;
use streamkeeper_types::{AttemptId, Code, OperatorId, Result, ResultExt};

use super::{
    OutputEdge, ReportSink, UploadPool, keyed, panics,
    reporter::Reporter,
    run::{self, TaskEnd},
};
use crate::{Clock, OperatorRestore, Vertex};

/// One attempt to run one subtask: plain data but for the graph's factories.
#[derive(Clone)]
pub struct TaskSpec {
    pub attempt: AttemptId,
    pub vertex: Vertex,
    pub max_parallelism: u32,
    /// Operators that are not here start empty.
    pub restore: BTreeMap<OperatorId, OperatorRestore>,
}

/// A subtask's place in the dataflow.
pub struct TaskWiring {
    /// `None` for sources.
    pub input: Option<TaskInput>,
    pub outputs: Vec<OutputEdge>,
    /// Ends the task's blocking sends; the senders of `outputs` were made with it.
    pub interrupt: Interrupt,
}

/// The input channels of a subtask.
pub struct TaskInput {
    pub gate: InputGate,
    /// Logical input of each channel.
    pub logical: Vec<usize>,
}

/// What the tasks of a process share.
#[derive(Clone)]
pub struct TaskEnvironment {
    pub clock: Arc<dyn Clock>,
    pub backend: Arc<dyn Backend>,
    /// The job's folder.
    pub storage: Arc<dyn Storage>,
    /// Folder of the local machine, below which each attempt has a folder of its own.
    pub local_dir: PathBuf,
    pub uploads: UploadPool,
    pub reports: ReportSink,
    /// Rows that a batch should have.
    pub batch_rows: usize,
    /// How long small batches may be held back to be joined.
    pub flush_timeout: Duration,
}

/// Steers a running task.
#[derive(Debug)]
pub struct TaskHandle {
    attempt: AttemptId,
    commands: Sender<ToTask>,
    waker: Option<GateWaker>,
    interrupt: Interrupt,
    thread: JoinHandle<()>,
    end: TaskEnding,
}

/// Lets another thread wait for a task's end. Cheap to clone.
#[derive(Debug, Clone)]
pub struct TaskEnding(Receiver<Infallible>);

impl TaskEnding {
    /// Waits until the task has ended, at most for `timeout`; whether it has.
    #[must_use]
    pub fn wait(&self, timeout: Duration) -> bool {
        // Nothing is ever sent: the task's thread drops its end when it is done.
        self.0.recv_timeout(timeout) == Err(RecvTimeoutError::Disconnected)
    }
}

impl TaskHandle {
    #[must_use]
    pub fn attempt(&self) -> AttemptId {
        self.attempt
    }

    /// Hands a command to the task; in order. A task that ended ignores it.
    pub fn send(&self, command: ToTask) {
        if command == ToTask::Cancel {
            self.interrupt.set();
        }
        // The receiver is gone only if the task ended.
        let _ = self.commands.send(command);
        if let Some(waker) = &self.waker {
            waker.wake();
        }
    }

    #[must_use]
    pub fn is_finished(&self) -> bool {
        self.thread.is_finished()
    }

    #[must_use]
    pub fn ending(&self) -> TaskEnding {
        self.end.clone()
    }
}

/// Starts a task on a thread of its own. Everything from here on, its failure too, comes as a report.
///
/// # Errors
/// When the machine gives no thread.
pub fn spawn(spec: TaskSpec, wiring: TaskWiring, environment: TaskEnvironment) -> Result<TaskHandle> {
    let attempt = spec.attempt;
    let (commands, receiver) = unbounded();
    let waker = wiring.input.as_ref().map(|input| input.gate.waker());
    let interrupt = wiring.interrupt.clone();
    let reporter = Reporter::new(attempt, environment.reports.clone());
    let place = format!("{} {}", attempt.subtask, spec.vertex.name);
    let name = thread_name(&place);
    let (alive, end) = bounded::<Infallible>(0);
    let body = move || {
        let _alive = alive;
        reporter.state(TaskState::Initializing);
        // The task's resources are gone before its end is reported: a restart finds nothing left of it.
        let ended = panics::caught("the task", || run::run(spec, wiring, &environment, receiver));
        keyed::remove_local(&environment, attempt);
        reporter.state(match ended {
            Ok(TaskEnd::Finished) => TaskState::Finished,
            Ok(TaskEnd::Cancelled) => TaskState::Cancelled,
            Err(error) => TaskState::Failed(error.at(place)),
        });
    };
    let thread =
        Builder::new().name(name).spawn(body).or_code(Code::Internal, || format!("starting a thread for {attempt}"))?;
    Ok(TaskHandle { attempt, commands, waker, interrupt, thread, end: TaskEnding(end) })
}

/// As much of the task's name as Linux shows of a thread's: 15 bytes.
fn thread_name(place: &str) -> String {
    let end = (0..=place.len().min(15)).rev().find(|end| place.is_char_boundary(*end)).unwrap_or(0);
    place[..end].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_has_the_start_of_its_tasks_name() {
        assert_eq!(thread_name("v0/1 Source(log) → Filter"), "v0/1 Source(log");
        assert_eq!(thread_name("v0/1 Source() →"), "v0/1 Source() ");
    }
}
