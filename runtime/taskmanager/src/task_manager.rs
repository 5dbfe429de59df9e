//! Runs the tasks of a job in this process: slots, deployment, commands, and a watchdog over cancellation.

use std::{
    collections::{BTreeMap, HashMap},
    path::PathBuf,
    sync::Arc,
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
use streamkeeper_types::{AttemptId, Code, Error, Result, SubtaskId};

use crate::{
    watchdog::{OnStuck, Watchdog, end_process},
    wiring::{Hosts, wire},
};

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
    /// `task.cancel-timeout`: how long a task may take to end after its cancellation.
    pub cancel_timeout: Duration,
    /// Called when it takes longer; by default the process ends, so that its supervisor starts a fresh one.
    pub on_stuck: OnStuck,
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
            on_stuck: Arc::new(|error: Error| end_process(&error)),
        }
    }
}

/// The tasks of one job in this process.
pub struct TaskManager {
    options: TaskManagerOptions,
    environment: TaskEnvironment,
    watchdog: Watchdog,
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
        let watchdog = Watchdog { timeout: options.cancel_timeout, on_stuck: Arc::clone(&options.on_stuck) };
        Ok(Self { options, environment, watchdog, running: Mutex::default() })
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
    /// When the attempt does not run here, or a cancelled one cannot be watched.
    pub fn send(&self, attempt: AttemptId, command: ToTask) -> Result<()> {
        let cancels = command == ToTask::Cancel;
        let ending = {
            let running = self.running.lock();
            let handle = running.tasks.get(&attempt).filter(|handle| !handle.is_finished());
            let handle = handle.ok_or_else(|| Error::internal(format!("{attempt} does not run here")))?;
            handle.send(command);
            handle.ending()
        };
        if cancels { self.watchdog.watch(attempt, ending) } else { Ok(()) }
    }

    /// Cancels every task and waits until all have ended, at most for the cancel timeout.
    pub fn shut_down(&self) {
        let handles: Vec<TaskHandle> = self.running.lock().tasks.drain().map(|(_, handle)| handle).collect();
        handles.iter().for_each(|handle| handle.send(ToTask::Cancel));
        let deadline = Instant::now() + self.options.cancel_timeout;
        for handle in handles {
            let left = deadline.saturating_duration_since(Instant::now());
            if !handle.ending().wait(left) {
                self.watchdog.bark(handle.attempt());
            }
        }
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
