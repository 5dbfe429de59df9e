//! `streamkeeper run`: a StreamJob on this machine, from where it was to its end or to Ctrl-C.

use std::{
    path::{Path, PathBuf},
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use serde::Serialize;
use streamkeeper_api::state::StateBackend;
use streamkeeper_checkpoint::{CompletedCheckpoint, files, restore::DroppedState};
use streamkeeper_jobmanager::shell::{JobHandle, JobOutcome, JobStatus, Phase, peek};
use streamkeeper_protocol::{CheckpointKind, SnapshotFormat};
use streamkeeper_storage::Storage;
use streamkeeper_taskmanager::local::{RestoreChoice, run_local};
use streamkeeper_types::{Code, Error, Result, size};

use super::stop;
use crate::{
    args::{Backend, Global, Output, Run},
    import,
    job_file::JobFile,
    launch::{Launch, job_folder, local_job},
    migration,
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
    /// Of a job that has finished earlier: whether the file's SQL is another one now.
    #[serde(skip_serializing_if = "Option::is_none")]
    sql_changed: Option<bool>,
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
    let mut launch = launch(arguments, &file)?;
    let mut local = local_job(&file, plan.graph, &launch)?;
    if let Some(snapshot) = &arguments.restore {
        let path = import::into_job(snapshot, &file.base_dir(), local.job.storage.as_ref())?;
        launch.restore = RestoreChoice::From(path);
        local.job.restore = launch.restore.clone();
    }
    // What speaks against the start is said by the start itself.
    let preview = migration::of_job(&file, &local.job.graph, &launch).ok().flatten();
    let finished_program = finished_program(local.job.storage.as_ref());
    if let Some(name) = &arguments.savepoint {
        refuse_taken(name, local.job.storage.as_ref())?;
    }
    let stop = stop::signal()?;
    let handle = run_local(local)?;
    for change in preview.iter().flat_map(migration::lines).filter(|_| !arguments.quiet) {
        eprintln!("{change}");
    }
    let board = handle.board().clone();
    let mut progress = Progress::new(global.output, arguments.quiet);
    let drain = file.job.config.flag("stop.drain").unwrap_or(false);
    let no_savepoint = watch(&handle, &stop, Stopping { arguments, drain }, &mut progress);
    let outcome = handle.join();
    let status = board.read();
    if !matches!(outcome, Ok(JobOutcome::AlreadyFinished)) {
        progress.finish(&status);
    }
    let outcome = outcome?;
    let end = End::new(&file, arguments.storage.as_deref(), finished_program.as_deref());
    finish(&outcome, &status, &file, &end, global)?;
    match no_savepoint {
        // The job ended by itself before the savepoint could be taken: nothing is missing.
        Some(error) if outcome != JobOutcome::Finished => Err(error),
        _ => Ok(()),
    }
}

/// The program with which the job finished; `None` if it did not, or if that can't be read any more.
pub(super) fn finished_program(job: &dyn Storage) -> Option<String> {
    let state = peek(job).ok().flatten()?;
    state.result.as_ref()?;
    let last = state.completed.iter().max_by_key(|completed| completed.id)?;
    files::read_completed(job, last).ok().map(|manifest| manifest.program)
}

/// What the last lines need besides the outcome.
pub(super) struct End {
    program: Program,
    /// The job's folder.
    folder: PathBuf,
}

impl End {
    /// `finished` is the program with which the job had finished before.
    pub(super) fn new(file: &JobFile, storage: Option<&str>, finished: Option<&str>) -> Self {
        let is_changed = finished.is_some_and(|program| program.trim() != file.sql.trim());
        let program = if is_changed { Program::Changed } else { Program::Same };
        Self { program, folder: job_folder(file, storage) }
    }
}

/// Whether the job that finished had the SQL of the file.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Program {
    Same,
    Changed,
}

/// A path as a person at the current folder types it.
fn from_here(path: &Path) -> String {
    let here = std::env::current_dir().ok();
    let below = here.as_deref().and_then(|here| path.strip_prefix(here).ok());
    below.unwrap_or(path).display().to_string()
}

/// Said before the job runs, not when it is stopped.
fn refuse_taken(name: &str, job: &dyn Storage) -> Result<()> {
    let path = files::manifest_path(&savepoint_folder(name));
    if job.head(&path)?.is_none() {
        return Ok(());
    }
    Err(Error::new(Code::JobInvalid, format!("the job has a savepoint `{name}` already"))
        .way_out("choose another name")
        .at("--savepoint"))
}

fn savepoint_folder(name: &str) -> String {
    format!("{}/{name}", files::SAVEPOINTS)
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

/// Shows the job until it ends; a stop takes a savepoint first. Says why there is none.
fn watch(handle: &JobHandle, stop: &AtomicBool, how: Stopping<'_>, progress: &mut Progress) -> Option<Error> {
    let Stopping { arguments, drain } = how;
    let mut stopping = false;
    let mut no_savepoint = None;
    loop {
        let status = handle.wait_until(TICK, |status| status.phase == Phase::Ended);
        progress.update(&status);
        if status.phase == Phase::Ended {
            return no_savepoint;
        }
        if stop.load(Ordering::SeqCst) && !stopping {
            stopping = true;
            if !arguments.quiet {
                eprintln!("stopping with a savepoint (again to stop at once) …");
            }
            let name = arguments.savepoint.clone().unwrap_or_else(default_name);
            let kind = CheckpointKind::StopSavepoint { drain };
            if let Err(error) = handle.snapshot(kind, SnapshotFormat::Canonical, Some(savepoint_folder(&name))) {
                no_savepoint = Some(error.at("no savepoint was taken"));
                handle.cancel();
            }
        }
    }
}

fn default_name() -> String {
    format!("stop-{}", chrono::Utc::now().format("%Y%m%d-%H%M%S%.3f"))
}

/// Tells how the job ended, and what it made.
pub(super) fn finish(
    outcome: &JobOutcome,
    status: &JobStatus,
    file: &JobFile,
    end: &End,
    global: &Global,
) -> Result<()> {
    let results = results::of(file)?;
    let (word, savepoint) = match outcome {
        JobOutcome::Finished => ("finished", None),
        JobOutcome::AlreadyFinished => ("already-finished", None),
        JobOutcome::Stopped(savepoint) => ("stopped", Some(savepoint.as_ref())),
        JobOutcome::Cancelled => ("cancelled", None),
    };
    if global.output == Output::Json {
        let sql_changed = (*outcome == JobOutcome::AlreadyFinished).then_some(end.program == Program::Changed);
        return report::json_line(&Summary { outcome: word, sql_changed, status, savepoint, results });
    }
    match outcome {
        JobOutcome::Finished => {
            report::line("finished: all input is read and committed");
            results::print(&results);
        }
        JobOutcome::AlreadyFinished => {
            report::line("already finished by an earlier run; nothing was changed");
            results::print(&results);
            report::line(match end.program {
                Program::Same => "to run it once more from the beginning: --discard-state",
                Program::Changed => "the SQL has changed since; to run the new text: --discard-state",
            });
        }
        JobOutcome::Stopped(savepoint) => {
            let folder = end.folder.join(savepoint.manifest.trim_end_matches("/_metadata"));
            let size = size::display(savepoint.size);
            report::line(&format!("stopped with savepoint {} ({size})", from_here(&folder)));
            report::line("run again to go on from it; `streamkeeper state list` with that folder shows what it holds");
        }
        JobOutcome::Cancelled => {
            report::line("stopped without a savepoint; run again to go on from the latest checkpoint, if there is one");
        }
    }
    Ok(())
}
