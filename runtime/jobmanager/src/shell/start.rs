//! Begins to run a job.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
    thread,
};

use streamkeeper_types::{Code, Error, Result, ResultExt};

use super::{
    Inbox, JobHandle, JobOutcome, JobSpec, Mail, Phase, StatusBoard, TaskManagers,
    driver::{Driver, DriverState},
    janitor::Janitor,
    open::{self, Opened, Reigning},
    restore,
};
use crate::engine::{Job, Scheduler};

/// Takes the job over and runs it on a thread of its own. `task_managers` report to `inbox`; `mail` is its other end.
/// `ended` runs on that thread when the job is over, before the handle's `join` returns.
///
/// # Errors
/// Everything that speaks against a start: another process runs the job, the snapshot does not fit, storage cannot be
/// reached. Nothing was started then.
pub fn start(
    spec: JobSpec,
    task_managers: Arc<dyn TaskManagers>,
    inbox: Inbox,
    mail: Mail,
    ended: impl FnOnce() + Send + 'static,
) -> Result<JobHandle> {
    let board = StatusBoard::default();
    let mut lock = None;
    let run: Box<dyn FnOnce() -> Result<JobOutcome> + Send> = match open::open(&spec)? {
        Opened::AlreadyFinished => {
            board.change(|status| status.phase = Phase::Ended);
            Box::new(|| Ok(JobOutcome::AlreadyFinished))
        }
        Opened::Reigning(mut reigning) => {
            lock = reigning.lock.take();
            let driver = driver(spec, *reigning, task_managers, &inbox, mail, board.clone())?;
            Box::new(move || driver.run())
        }
    };
    let shown = board.clone();
    let body = move || {
        // Whatever happens here, the tasks must be stopped and whoever waits be told.
        let outcome = catch_unwind(AssertUnwindSafe(run))
            .unwrap_or_else(|_| Err(Error::internal("the JobManager panicked").way_out("report this as a bug")));
        shown.change(|status| status.phase = Phase::Ended);
        ended();
        drop(lock);
        outcome
    };
    let thread = thread::Builder::new()
        .name("jobmanager".into())
        .spawn(body)
        .or_code(Code::Internal, || "starting a thread".into())?;
    Ok(JobHandle { inbox, board, thread: Some(thread) })
}

/// A driver that has not begun.
fn driver(
    spec: JobSpec,
    reigning: Reigning,
    task_managers: Arc<dyn TaskManagers>,
    inbox: &Inbox,
    mail: Mail,
    board: StatusBoard,
) -> Result<Driver> {
    let Reigning { log, plan, inherited, orphans, restored_from, lock: _ } = reigning;
    let graph = restore::chain(&spec, spec.bounds.target, &plan);
    let janitor = Janitor::start(Arc::clone(&spec.storage), inbox.clone())?;
    janitor.remove(None, orphans);
    let job = Job::new(
        log.generation(),
        spec.checkpoints.clone(),
        spec.restart.clone(),
        Scheduler::new(spec.scheduler.clone(), spec.bounds),
        inherited,
        rand::random(),
    )?;
    board.change(|status| status.restored_from = restored_from);
    let (generation, started_at) = (log.generation(), spec.clock.now());
    board.change_details(|details| {
        details.generation = generation;
        details.started_at = started_at;
        details.bounds = Some(spec.bounds);
    });
    let state = DriverState::new();
    let driver = Driver { spec, job, log, graph, task_managers, mail, janitor, board, state };
    driver.show_plan();
    Ok(driver)
}
