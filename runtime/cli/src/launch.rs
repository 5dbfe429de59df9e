//! From a planned job to a running one in this process: memory, folders, backend, settings.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use streamkeeper_api::{CheckpointSettings, RestartStrategy as JobRestart, config::Config, state::StateBackend};
use streamkeeper_checkpoint::restore::DroppedState;
use streamkeeper_engine::{StreamGraph, SystemClock};
use streamkeeper_jobmanager::engine::{
    Bounds, CheckpointOptions, SchedulerOptions, Sharing,
    failover::{ExponentialDelay, RestartStrategy},
};
use streamkeeper_state::{Backend, MemoryBackend, MemoryBudget};
use streamkeeper_state_rocksdb::RocksdbBackend;
use streamkeeper_storage::{Environment, StorageOptions, open_job_with};
use streamkeeper_taskmanager::{
    MemoryPlan, TaskManagerOptions,
    local::{JobSpec, LocalJob, RestoreChoice},
};
use streamkeeper_types::Result;

use crate::job_file::{JobFile, LOCAL_STORAGE};

/// What the command line decides beside the file.
#[derive(Debug, Clone)]
pub struct Launch {
    pub parallelism: u32,
    pub backend: StateBackend,
    /// URI or path; `None`: the file's, else beside the file.
    pub storage: Option<String>,
    /// Bytes; `None`: derived from the machine.
    pub memory: Option<u64>,
    pub restore: RestoreChoice,
    pub dropped_state: DroppedState,
}

/// Everything that `run_local` needs.
///
/// # Errors
/// When storage cannot be opened or memory not be divided.
pub fn local_job(file: &JobFile, graph: StreamGraph, launch: &Launch) -> Result<LocalJob> {
    let job = &file.job;
    let base_dir = file.base_dir();
    let url = storage_url(file, launch.storage.as_deref());
    let names = (job.namespace.as_str(), job.name.as_str());
    let storage = open_job_with(url, &base_dir, names, &storage_options(&job.config), &Environment::of_process())?;
    let work_dir = work_dir(&base_dir, url, &job.namespace, &job.name);
    let plan = MemoryPlan::new(launch.memory.or(job.config.size("memory.total")), Some(job.state.memory_percent))?;
    let mut tasks = TaskManagerOptions::new(launch.parallelism, plan.network, work_dir.clone());
    tasks.flush_timeout = job.config.duration("network.flush-timeout").unwrap_or(tasks.flush_timeout);
    tasks.cancel_timeout = job.config.duration("task.cancel-timeout").unwrap_or(tasks.cancel_timeout);
    Ok(LocalJob {
        job: JobSpec {
            namespace: job.namespace.clone(),
            name: job.name.clone(),
            graph,
            program: file.sql.clone(),
            bounds: Bounds::exactly(launch.parallelism),
            scheduler: SchedulerOptions::default(),
            max_parallelism: job.max_parallelism,
            restart: restart_strategy(job.restart),
            checkpoints: checkpoint_options(&job.checkpoint, &job.config),
            storage,
            lock: Some(lock_file(&work_dir)),
            address: None,
            restore: launch.restore.clone(),
            dropped_state: launch.dropped_state,
            clock: Arc::new(SystemClock),
        },
        tasks,
        backend: configured_backend(launch.backend, plan.state, job.config.integer(MOST_FILES)),
    })
}

/// Option of [`RocksdbBackend::with_most_files`].
const MOST_FILES: &str = "state.rocksdb.max-files-per-snapshot";

/// The backend within its share of the memory.
#[must_use]
pub fn backend(kind: StateBackend, bytes: u64) -> Arc<dyn Backend> {
    configured_backend(kind, bytes, None)
}

fn configured_backend(kind: StateBackend, bytes: u64, most_files: Option<u64>) -> Arc<dyn Backend> {
    let budget = MemoryBudget::new(usize::try_from(bytes).unwrap_or(usize::MAX));
    match kind {
        StateBackend::Rocksdb => {
            let backend = RocksdbBackend::new(budget);
            Arc::new(match most_files {
                Some(files) => backend.with_most_files(files),
                None => backend,
            })
        }
        StateBackend::Memory => Arc::new(MemoryBackend::new(budget)),
    }
}

/// The job's folder on this machine: what `state list` and `state query` are given.
#[must_use]
pub fn job_folder(file: &JobFile, storage: Option<&str>) -> PathBuf {
    let url = storage_url(file, storage);
    root(&file.base_dir(), url).join(&file.job.namespace).join(&file.job.name)
}

/// URL of the job's folder; for a folder of this machine with its absolute path.
#[must_use]
pub fn job_location(file: &JobFile, storage: Option<&str>) -> String {
    let url = storage_url(file, storage);
    if url.contains("://") && !url.starts_with("file://") {
        return format!("{}/{}/{}", url.trim_end_matches('/'), file.job.namespace, file.job.name);
    }
    let folder = job_folder(file, storage);
    format!("file://{}", std::path::absolute(&folder).unwrap_or(folder).display())
}

/// Where state lies: what the command line says, else the file, else beside the file.
#[must_use]
pub fn storage_url<'a>(file: &'a JobFile, storage: Option<&'a str>) -> &'a str {
    storage.or(file.job.checkpoint.storage.as_deref()).unwrap_or(LOCAL_STORAGE)
}

/// The folder that a storage URL names.
fn root(base_dir: &Path, url: &str) -> PathBuf {
    match (url.strip_prefix("file://"), url.contains("://")) {
        (Some(path), _) => base_dir.join(path),
        (None, true) => base_dir.join(LOCAL_STORAGE),
        (None, false) => base_dir.join(url),
    }
}

/// Local working state lies beside local checkpoints, so that files are linked instead of copied.
fn work_dir(base_dir: &Path, url: &str, namespace: &str, name: &str) -> PathBuf {
    root(base_dir, url).join(".work").join(format!("{namespace}.{name}"))
}

/// Beside the working folder, which each start empties.
fn lock_file(work_dir: &Path) -> PathBuf {
    let mut name = work_dir.as_os_str().to_owned();
    name.push(".lock");
    PathBuf::from(name)
}

fn storage_options(config: &Config) -> StorageOptions {
    let defaults = StorageOptions::default();
    let retries = config.integer("storage.retries").and_then(|retries| u32::try_from(retries).ok());
    StorageOptions {
        timeout: config.duration("storage.timeout").unwrap_or(defaults.timeout),
        retries: retries.unwrap_or(defaults.retries),
        part_size: config.size("storage.part-size").unwrap_or(defaults.part_size),
    }
}

fn checkpoint_options(settings: &CheckpointSettings, config: &Config) -> CheckpointOptions {
    let defaults = CheckpointOptions::default();
    let count = |key: &str, default: usize| {
        config.integer(key).and_then(|number| usize::try_from(number).ok()).unwrap_or(default)
    };
    CheckpointOptions {
        max_queued: count("checkpoint.max-queued", defaults.max_queued),
        history: count("checkpoint.history", defaults.history),
        interval: settings.interval,
        min_pause: settings.min_pause,
        timeout: settings.timeout,
        tolerable_failures: settings.tolerable_failures,
        retained: settings.retained as usize,
        sharing: if settings.incremental { Sharing::Incremental } else { Sharing::Full },
        ..defaults
    }
}

fn restart_strategy(strategy: JobRestart) -> RestartStrategy {
    match strategy {
        JobRestart::None => RestartStrategy::None,
        JobRestart::FixedDelay { attempts, delay } => RestartStrategy::FixedDelay { attempts, delay },
        JobRestart::FailureRate { failures, window, delay } => {
            RestartStrategy::FailureRate { failures: failures as usize, window, delay }
        }
        JobRestart::ExponentialDelay { initial, max, reset_after, multiplier, jitter } => {
            RestartStrategy::ExponentialDelay(ExponentialDelay { initial, max, multiplier, jitter, reset_after })
        }
    }
}
