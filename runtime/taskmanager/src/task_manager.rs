//! Runs the tasks of a job in this process: slots, deployment, commands, and a watchdog over cancellation.

use std::{
    collections::{BTreeMap, HashMap},
    path::PathBuf,
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

use parking_lot::Mutex;
use streamkeeper_engine::{
    Clock, Deployment,
    task::{ReportSink, TaskEnvironment, TaskHandle, TaskSpec, TaskWiring, UploadPool, spawn},
};
use streamkeeper_protocol::ToTask;
use streamkeeper_state::Backend;
use streamkeeper_storage::Storage;
use streamkeeper_types::{AttemptId, Code, Error, Result, ResultExt, SubtaskId};

use crate::wiring::{Hosts, wire};

/// What a TaskManager is started with.
#[derive(Clone)]
pub struct TaskManagerOptions {
    /// Subtasks of each vertex that it can run at once.
    pub slots: u32,
    /// Memory of the channels between tasks.
    pub network_bytes: u64,
    /// Rows that a batch should have.
    pub batch_rows: usize,
    /// How long small batches may be held back to be joined.
    pub flush_timeout: Duration,
    pub upload_threads: usize,
    /// Folder of the local machine for the tasks' state; what earlier processes left there is removed.
    pub local_dir: PathBuf,
    /// A task that does not stop within this time after a cancellation takes the process down.
    pub cancel_timeout: Duration,
}

impl TaskManagerOptions {
    /// The defaults of runtime-rules.md §1.5 and §1.6.
    #[must_use]
    pub fn new(slots: u32, network_bytes: u64, local_dir: PathBuf) -> Self {
        Self {
            slots,
            network_bytes,
            batch_rows: 8_192,
            flush_timeout: Duration::from_millis(10),
            upload_threads: 4,
            local_dir,
            cancel_timeout: Duration::from_secs(30),
        }
    }
}

/// The tasks of one job in this process.
pub struct TaskManager {
    options: TaskManagerOptions,
    environment: TaskEnvironment,
    running: Mutex<Running>,
}

#[derive(Default)]
struct Running {
    tasks: HashMap<AttemptId, TaskHandle>,
    /// The local folder is ours: emptied at the first deployment, since only then nobody else may run the job.
    prepared: bool,
}

impl TaskManager {
    /// A TaskManager without tasks. `storage` is the job's folder; `reports` takes what the tasks say.
    ///
    /// # Errors
    /// When the machine gives no threads.
    pub fn start(
        options: TaskManagerOptions,
        storage: Arc<dyn Storage>,
        backend: Arc<dyn Backend>,
        clock: Arc<dyn Clock>,
        reports: ReportSink,
    ) -> Result<Self> {
        let environment = TaskEnvironment {
            clock,
            backend,
            storage,
            local_dir: options.local_dir.clone(),
            uploads: UploadPool::start(options.upload_threads)?,
            reports,
            batch_rows: options.batch_rows,
            flush_timeout: options.flush_timeout,
        };
        Ok(Self { options, environment, running: Mutex::default() })
    }

    /// Subtasks of each vertex that it can run at once.
    #[must_use]
    pub fn slots(&self) -> u32 {
        self.options.slots
    }

    /// Starts all tasks of a run.
    ///
    /// # Errors
    /// When a vertex needs more slots than there are, the local folder cannot be made, an edge cannot be made, or the
    /// machine gives no thread; then the tasks that did start are cancelled.
    pub fn deploy(&self, deployment: Deployment) -> Result<()> {
        let needed = deployment.graph.vertices.iter().map(|v| v.parallelism).max().unwrap_or(0);
        if needed > self.options.slots {
            let cause = format!("the job needs {needed} slots, and there are {}", self.options.slots);
            return Err(Error::new(Code::ParallelismInvalid, cause).way_out("lower the parallelism"));
        }
        self.deploy_among(deployment, &Hosts::AllHere)
    }

    /// Starts the tasks of a run that are ours.
    pub(crate) fn deploy_among(&self, deployment: Deployment, hosts: &Hosts) -> Result<()> {
        let graph = &deployment.graph;
        let network = usize::try_from(self.options.network_bytes).unwrap_or(usize::MAX);
        let mut wirings = wire(graph, network, hosts)?;
        let mut running = self.running.lock();
        if !running.prepared {
            prepare_local_dir(&self.options.local_dir)?;
            running.prepared = true;
        }
        running.tasks.retain(|_, task| !task.is_finished());
        let mut started = Vec::with_capacity(deployment.tasks.len());
        for task in deployment.tasks {
            let spawned = take_wiring(&mut wirings, task.attempt.subtask).and_then(|wiring| {
                let vertex = graph.vertices.iter().find(|v| v.id == task.attempt.subtask.vertex);
                let vertex = vertex.ok_or_else(|| Error::internal(format!("{} has no vertex", task.attempt)))?.clone();
                let spec = TaskSpec {
                    attempt: task.attempt,
                    vertex,
                    max_parallelism: graph.max_parallelism,
                    restore: task.restore,
                };
                spawn(spec, wiring, self.environment.clone())
            });
            match spawned {
                Ok(handle) => started.push(handle),
                Err(error) => {
                    started.iter().for_each(|handle| handle.send(ToTask::Cancel));
                    return Err(error);
                }
            }
        }
        running.tasks.extend(started.into_iter().map(|handle| (handle.attempt(), handle)));
        Ok(())
    }

    /// Hands a command to an attempt.
    ///
    /// # Errors
    /// When the attempt does not run here.
    pub fn send(self: &Arc<Self>, attempt: AttemptId, command: ToTask) -> Result<()> {
        let running = self.running.lock();
        let handle = running.tasks.get(&attempt).filter(|handle| !handle.is_finished());
        let handle = handle.ok_or_else(|| Error::internal(format!("{attempt} does not run here")))?;
        let cancels = command == ToTask::Cancel;
        handle.send(command);
        drop(running);
        if cancels {
            self.watch(attempt)?;
        }
        Ok(())
    }

    /// Cancels every task and waits until all have ended.
    pub fn shut_down(&self) {
        let handles: Vec<TaskHandle> = self.running.lock().tasks.drain().map(|(_, handle)| handle).collect();
        handles.iter().for_each(|handle| handle.send(ToTask::Cancel));
        handles.into_iter().for_each(TaskHandle::join);
    }

    /// Takes the process down if `attempt` does not end in time: whatever holds it, holds memory and files too.
    fn watch(self: &Arc<Self>, attempt: AttemptId) -> Result<()> {
        let manager = Arc::downgrade(self);
        let timeout = self.options.cancel_timeout;
        let watch = move || {
            let deadline = Instant::now() + timeout;
            loop {
                thread::sleep(Duration::from_millis(200).min(timeout));
                let Some(manager) = manager.upgrade() else { return };
                if manager.running.lock().tasks.get(&attempt).is_none_or(TaskHandle::is_finished) {
                    return;
                }
                if Instant::now() >= deadline {
                    tracing::error!(%attempt, ?timeout, "a cancelled task does not stop; the process ends");
                    std::process::abort();
                }
            }
        };
        let started = thread::Builder::new().name("cancel-watchdog".into()).spawn(watch);
        started.map(drop).or_code(Code::Internal, || "starting the watchdog".into())
    }
}

fn take_wiring(wirings: &mut BTreeMap<SubtaskId, TaskWiring>, subtask: SubtaskId) -> Result<TaskWiring> {
    wirings
        .remove(&subtask)
        .ok_or_else(|| Error::internal(format!("{subtask} is deployed twice or not part of the graph")))
}

/// Local state is a cache of what checkpoints hold: nothing of an earlier process is of use.
fn prepare_local_dir(dir: &std::path::Path) -> Result<()> {
    if dir.exists() {
        std::fs::remove_dir_all(dir).map_err(|e| Error::io(Code::NotWritable, dir.display(), &e))?;
    }
    std::fs::create_dir_all(dir).map_err(|e| Error::io(Code::NotWritable, dir.display(), &e))
}
