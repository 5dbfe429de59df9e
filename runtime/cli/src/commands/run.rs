//! `streamkeeper run`: a StreamJob on this machine, from where it was to its end or to Ctrl-C.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use serde::Serialize;
use signal_hook::consts::{SIGINT, SIGTERM};
use streamkeeper_api::state::StateBackend;
use streamkeeper_checkpoint::{CompletedCheckpoint, restore::DroppedState};
use streamkeeper_jobmanager::shell::{JobHandle, JobOutcome, JobStatus, Phase};
use streamkeeper_protocol::{CheckpointKind, SnapshotFormat};
use streamkeeper_taskmanager::local::{RestoreChoice, run_local};
use streamkeeper_types::{Code, Error, Result, ResultExt, size};

use crate::{
    args::{Backend, Global, Output, Run},
    import,
    job_file::JobFile,
    launch::{Launch, local_job},
    progress::Progress,
    report, results,
};

/// Between two looks at the job.
const TICK: Duration = Duration::from_millis(100);

/// What the command ends with, for scripts.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Summary<'a> {
    outcome: &'static str,
    status: &'a JobStatus,
    savepoint: Option<&'a CompletedCheckpoint>,
    results: Vec<results::FileResult>,
}

pub fn execute(arguments: &Run, global: &Global) -> Result<()> {
    let file = JobFile::read(&arguments.job)?;
    for object in &file.aside {
        eprintln!("left aside: {} {} (only a cluster has a use for it)", object.kind, object.name);
    }
    let plan = file.plan()?;
    if plan.explain_only {
        report::line(plan.explain(streamkeeper_sql::explain::Format::Tree).trim_end());
        return Ok(());
    }
    let mut local = local_job(&file, plan.graph, &launch(arguments, &file)?)?;
    if let Some(snapshot) = &arguments.restore {
        let path = import::into_job(snapshot, &file.base_dir(), local.job.storage.as_ref())?;
        local.job.restore = RestoreChoice::From(path);
    }
    let stop = stop::signal()?;
    let handle = run_local(local)?;
    let board = handle.board().clone();
    let mut progress = Progress::new(global.output, arguments.quiet);
    let drain = file.job.config.flag("stop.drain").unwrap_or(false);
    watch(&handle, &stop, Stopping { arguments, drain }, &mut progress);
    let outcome = handle.join();
    let status = board.read();
    progress.finish(&status);
    finish(outcome?, &status, &file, global)
}

fn launch(arguments: &Run, file: &JobFile) -> Result<Launch> {
    let backend = match arguments.backend {
        Some(Backend::Rocksdb) => StateBackend::Rocksdb,
        Some(Backend::Memory) => StateBackend::Memory,
        None => file.job.state.backend,
    };
    let memory = arguments
        .memory
        .as_deref()
        .map(|text| size::parse(text).map_err(|cause| Error::new(Code::JobInvalid, cause).at("--memory")))
        .transpose()?;
    let dropped = arguments.allow_dropped_state || file.job.allow_dropped_state;
    Ok(Launch {
        parallelism: arguments.parallelism.unwrap_or(file.job.parallelism),
        backend,
        storage: arguments.storage.clone(),
        memory,
        restore: if arguments.discard_state { RestoreChoice::Discard } else { RestoreChoice::Auto },
        dropped_state: if dropped { DroppedState::Allow } else { DroppedState::Refuse },
    })
}

/// How Ctrl-C stops the job.
struct Stopping<'a> {
    arguments: &'a Run,
    /// `stop.drain`: end event time first.
    drain: bool,
}

/// Shows the job until it ends; a stop takes a savepoint first.
fn watch(handle: &JobHandle, stop: &AtomicBool, how: Stopping<'_>, progress: &mut Progress) {
    let Stopping { arguments, drain } = how;
    let mut stopping = false;
    loop {
        let status = handle.wait_until(TICK, |status| status.phase == Phase::Ended);
        progress.update(&status);
        if status.phase == Phase::Ended {
            return;
        }
        if stop.load(Ordering::SeqCst) && !stopping {
            stopping = true;
            if !arguments.quiet {
                eprintln!("stopping with a savepoint (again to stop at once) …");
            }
            let name = arguments.savepoint.clone().unwrap_or_else(default_name);
            let kind = CheckpointKind::StopSavepoint { drain };
            if let Err(error) = handle.snapshot(kind, SnapshotFormat::Canonical, Some(format!("savepoints/{name}"))) {
                eprintln!(
                    "no savepoint was taken: {error}\nthe job goes on from its latest checkpoint when it is run again"
                );
                handle.cancel();
            }
        }
    }
}

fn default_name() -> String {
    format!("stop-{}", chrono::Utc::now().format("%Y%m%d-%H%M%S%.3f"))
}

/// Tells how the job ended, and what it made.
pub(super) fn finish(outcome: JobOutcome, status: &JobStatus, file: &JobFile, global: &Global) -> Result<()> {
    let results = results::of(file)?;
    let (word, savepoint) = match &outcome {
        JobOutcome::Finished => ("finished", None),
        JobOutcome::AlreadyFinished => ("already-finished", None),
        JobOutcome::Stopped(savepoint) => ("stopped", Some(savepoint.as_ref())),
        JobOutcome::Cancelled => ("cancelled", None),
    };
    if global.output == Output::Json {
        return report::json_line(&Summary { outcome: word, status, savepoint, results });
    }
    match &outcome {
        JobOutcome::Finished => {
            report::line("finished: all input is read and committed");
            results::print(&results);
        }
        JobOutcome::AlreadyFinished => {
            report::line("already finished by an earlier run; nothing was changed");
            results::print(&results);
            report::line("to run it once more from the beginning: --discard-state");
        }
        JobOutcome::Stopped(savepoint) => {
            let folder = savepoint.manifest.trim_end_matches("/_metadata");
            report::line(&format!(
                "stopped with savepoint {folder} ({}); run again to go on from it",
                size::display(savepoint.size)
            ));
        }
        JobOutcome::Cancelled => {
            report::line("stopped without a savepoint; run again to go on from the latest checkpoint");
        }
    }
    Ok(())
}
