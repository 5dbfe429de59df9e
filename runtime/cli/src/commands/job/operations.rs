//! What takes time: asked for by a POST, then watched by the id that it answers with.

use std::io::IsTerminal;

use indicatif::{ProgressBar, ProgressStyle};
use serde::Serialize;
use streamkeeper_protocol::rest::{
    Accepted, DisposalRequest, OperationKind, OperationState, OperationView, SavepointRequest, StopRequest,
};
use streamkeeper_types::{Code, Error, Result};

use super::{
    figures,
    patience::{POLL, Patience},
};
use crate::{
    args::{Output, Waiting},
    report,
    rest::{Client, error_of},
};

#[derive(Serialize)]
struct Nothing {}

pub(super) fn checkpoint(client: &Client, job: &str, waiting: &Waiting, output: Output) -> Result<()> {
    start(client, &["jobs", job, "checkpoints"], &Nothing {}, waiting, output)
}

pub(super) fn savepoint(
    client: &Client,
    job: &str,
    request: &SavepointRequest,
    waiting: &Waiting,
    output: Output,
) -> Result<()> {
    start(client, &["jobs", job, "savepoints"], request, waiting, output)
}

pub(super) fn stop(client: &Client, job: &str, request: &StopRequest, waiting: &Waiting, output: Output) -> Result<()> {
    start(client, &["jobs", job, "stop"], request, waiting, output)
}

pub(super) fn cancel(client: &Client, job: &str, waiting: &Waiting, output: Output) -> Result<()> {
    start(client, &["jobs", job, "cancel"], &Nothing {}, waiting, output)
}

pub(super) fn dispose(client: &Client, savepoint: &str, waiting: &Waiting, output: Output) -> Result<()> {
    start(client, &["savepoint-disposal"], &DisposalRequest { savepoint: savepoint.to_owned() }, waiting, output)
}

/// What became of a request: at once, or when it is known.
pub(super) fn request(client: &Client, request: &str, waiting: &Waiting, output: Output) -> Result<()> {
    if waiting.no_wait { finish(&client.get(&["requests", request])?, output) } else { follow(client, request, output) }
}

fn start(client: &Client, path: &[&str], body: &impl Serialize, waiting: &Waiting, output: Output) -> Result<()> {
    let accepted: Accepted = client.post(path, body)?;
    if !waiting.no_wait {
        return follow(client, &accepted.request, output);
    }
    if output == Output::Json {
        return report::json(&accepted);
    }
    report::line(&accepted.request);
    Ok(())
}

/// Waits until the outcome is known, and shows it. Whoever ends the command ends the waiting only.
fn follow(client: &Client, request: &str, output: Output) -> Result<()> {
    let progress = Progress::new(output);
    progress.show("waiting for the outcome …");
    let mut patience = Patience::default();
    let view = loop {
        match client.wait::<OperationView>(&["requests", request]) {
            Ok(view) if view.state != OperationState::InProgress => break view,
            Ok(view) => {
                patience.answered();
                progress.show(&format!("{} …", doing(view.kind)));
            }
            Err(error) => {
                progress.show(&error.cause);
                patience.bear(error).map_err(|error| lost(error, request))?;
            }
        }
        std::thread::sleep(POLL);
    };
    drop(progress);
    finish(&view, output)
}

/// The request was accepted, so that its outcome is worth looking for elsewhere.
fn lost(error: Error, request: &str) -> Error {
    let cause = format!("the outcome of request {request} is not known: {}", error.cause);
    Error { cause, ..error }.way_out(
        "the JobManager had accepted it: look at `streamkeeper job checkpoints`, or with `streamkeeper state list` into the \
         job's folder",
    )
}

/// One line that changes, on a terminal only.
struct Progress(Option<ProgressBar>);

impl Progress {
    fn new(output: Output) -> Self {
        if output == Output::Json || !std::io::stderr().is_terminal() {
            return Self(None);
        }
        let bar = ProgressBar::new_spinner();
        if let Ok(style) = ProgressStyle::with_template("{spinner} {wide_msg} {elapsed}") {
            bar.set_style(style);
        }
        bar.enable_steady_tick(POLL);
        Self(Some(bar))
    }

    fn show(&self, text: &str) {
        if let Some(bar) = &self.0 {
            bar.set_message(text.to_owned());
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some(bar) = &self.0 {
            bar.finish_and_clear();
        }
    }
}

/// The outcome; a failed request is the command's error.
fn finish(view: &OperationView, output: Output) -> Result<()> {
    if view.state == OperationState::Failed {
        return Err(view.failure.as_ref().map_or_else(
            || Error::new(Code::SavepointFailed, format!("{} failed, and nothing says why", doing(view.kind))),
            error_of,
        ));
    }
    if output == Output::Json {
        return report::json(view);
    }
    report::line(&outcome(view));
    Ok(())
}

fn doing(kind: OperationKind) -> &'static str {
    match kind {
        OperationKind::Checkpoint => "taking a checkpoint",
        OperationKind::Savepoint => "taking a savepoint",
        OperationKind::Stop => "stopping with a savepoint",
        OperationKind::Cancel => "cancelling",
        OperationKind::Disposal => "deleting a savepoint",
    }
}

fn outcome(view: &OperationView) -> String {
    if view.state == OperationState::InProgress {
        let since = figures::since(view.started_at, figures::now());
        return format!("{}, since {since}", doing(view.kind));
    }
    let took = view.ended_at.map_or_else(String::new, |end| format!(" in {}", figures::since(view.started_at, end)));
    let what = match view.kind {
        OperationKind::Checkpoint => "checkpoint",
        OperationKind::Savepoint => "savepoint",
        OperationKind::Stop => "stopped with savepoint",
        OperationKind::Cancel => return "cancelled; a later start goes on from the latest checkpoint".to_owned(),
        OperationKind::Disposal => return format!("the savepoint is deleted{took}"),
    };
    let Some(savepoint) = &view.savepoint else { return format!("{what} completed{took}") };
    let mut text = format!("{what} {}{took}: {}", savepoint.id, savepoint.location);
    if view.kind == OperationKind::Stop {
        text.push_str(&format!("\nto go on from it: streamkeeper jobmanager --restore {} …", savepoint.location));
    }
    text
}
