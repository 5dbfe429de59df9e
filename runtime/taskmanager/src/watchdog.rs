//! What becomes of a cancelled task that does not end.
//!
//! A thread cannot be ended from outside. One that hangs, in a connector's call say, holds memory, files and a slot; only
//! the end of the process gives them back, and its supervisor starts another.

use std::{sync::Arc, thread, time::Duration};

use streamkeeper_engine::task::TaskEnding;
use streamkeeper_types::{AttemptId, Code, Error, Result, ResultExt};

/// Takes the error that says which task hangs.
pub type OnStuck = Arc<dyn Fn(Error) + Send + Sync>;

/// Watches over cancelled tasks.
pub(crate) struct Watchdog {
    pub timeout: Duration,
    pub on_stuck: OnStuck,
}

impl Watchdog {
    /// Barks if the task, just cancelled, does not end in time.
    ///
    /// # Errors
    /// When the machine gives no thread.
    pub(crate) fn watch(&self, attempt: AttemptId, ending: TaskEnding) -> Result<()> {
        let Self { timeout, on_stuck } = self;
        let (timeout, on_stuck) = (*timeout, Arc::clone(on_stuck));
        let watch = move || {
            if !ending.wait(timeout) {
                on_stuck(stuck(attempt, timeout));
            }
        };
        let started = thread::Builder::new().name("cancel-watchdog".into()).spawn(watch);
        started.map(drop).or_code(Code::Internal, || "starting the watchdog".into())
    }

    pub(crate) fn bark(&self, attempt: AttemptId) {
        (self.on_stuck)(stuck(attempt, self.timeout));
    }
}

fn stuck(attempt: AttemptId, timeout: Duration) -> Error {
    let cause = format!("task {attempt} was cancelled and does not end within {} s", timeout.as_secs_f64());
    Error::internal(cause).way_out("start the process again; raise task.cancel-timeout if its calls may take so long")
}

/// Ends this process without waiting for anything: destructors could hang as the task does.
pub(crate) fn end_process(error: &Error) {
    tracing::error!(%error, "the process ends");
    std::process::abort();
}
