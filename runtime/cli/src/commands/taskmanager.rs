//! `streamkeeper taskmanager`: tasks for a JobManager elsewhere.

use std::{path::PathBuf, sync::Arc, time::Duration};

use streamkeeper_checkpoint::restore::DroppedState;
use streamkeeper_protocol::control::JobProgram;
use streamkeeper_taskmanager::{
    local::RestoreChoice,
    remote::{self, Prepare, Prepared, RemoteOptions},
};
use streamkeeper_types::{Code, Error, Result, size};

use super::{jobmanager::read_token, stop};
use crate::{
    args::TaskManager,
    job_file::JobFile,
    launch::{Launch, local_job},
};

pub fn execute(arguments: &TaskManager) -> Result<()> {
    let memory = arguments
        .memory
        .as_deref()
        .map(|text| size::parse(text).map_err(|cause| Error::new(Code::JobInvalid, cause).at("--memory")))
        .transpose()?;
    let options = RemoteOptions {
        job_managers: arguments.jobmanager.clone(),
        token: arguments.token_file.as_deref().map(read_token).transpose()?.unwrap_or_default(),
        tls: arguments.tls.read()?,
        slots: arguments.slots,
        data_listen: arguments.data_listen,
        advertise: arguments.advertise.clone(),
        metrics: arguments.metrics,
        alive_every: Duration::from_millis(250),
        silence: Duration::from_secs(2),
        retry: Duration::from_millis(50),
    };
    let work_dir = arguments.work_dir.clone();
    let slots = arguments.slots;
    let prepare: Prepare = Arc::new(move |program| prepare(program, slots, memory, work_dir.clone()));
    let stop = stop::signal()?;
    remote::serve(&options, &prepare, &stop)
}

/// Plans the job as its JobManager did.
fn prepare(program: &JobProgram, slots: u32, memory: Option<u64>, work_dir: Option<PathBuf>) -> Result<Prepared> {
    let file = JobFile::parse(&PathBuf::from(&program.path), program.manifest.clone())?;
    let graph = file.plan()?.graph;
    let launch = Launch {
        parallelism: slots,
        backend: file.job.state.backend,
        storage: Some(program.storage.clone()),
        memory,
        restore: RestoreChoice::Auto,
        dropped_state: DroppedState::Refuse,
    };
    let local = local_job(&file, graph.clone(), &launch)?;
    let mut tasks = local.tasks;
    tasks.local_dir = work_dir.unwrap_or(tasks.local_dir);
    Ok(Prepared {
        namespace: local.job.namespace,
        name: local.job.name,
        graph,
        storage: local.job.storage,
        backend: local.backend,
        clock: local.job.clock,
        tasks,
    })
}
