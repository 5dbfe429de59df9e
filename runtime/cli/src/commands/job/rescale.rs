//! Another parallelism.

use streamkeeper_protocol::rest::{
    BoundsView, JobPhaseView, JobView, RescaleList, RescaleReason, RescaleRequest, RescaleState, RescaleView,
};
use streamkeeper_types::{Code, Error, Millis, Result};

use super::{
    figures,
    patience::{POLL, Patience},
};
use crate::{
    args::{Output, Waiting},
    report,
    rest::{Client, error_of},
    screen::{Tone, cell},
};

pub(super) fn bounds(client: &Client, job: &str, output: Output) -> Result<()> {
    let bounds: BoundsView = client.get(&["jobs", job, "resources"])?;
    if output == Output::Json {
        return report::json(&bounds);
    }
    report::line(&format!("parallelism {}, with fewer slots down to {}", bounds.target, bounds.least));
    Ok(())
}

pub(super) fn history(client: &Client, job: &str, output: Output) -> Result<()> {
    let list = rescales(client, job)?;
    if output == Output::Json {
        return report::json(&list);
    }
    if list.rescales.is_empty() {
        report::line("the parallelism was not changed since this JobManager leads");
        return Ok(());
    }
    let header = ["STARTED", "REASON", "FROM", "TO", "STATE", "PAUSE", "FAILURE"];
    report::line(&report::table(&header, list.rescales.iter().map(row).collect()));
    Ok(())
}

fn rescales(client: &Client, job: &str) -> Result<RescaleList> {
    client.get(&["jobs", job, "rescales"])
}

fn row(rescale: &RescaleView) -> Vec<comfy_table::Cell> {
    let reason = match rescale.reason {
        RescaleReason::Requested => "requested",
        RescaleReason::SlotsGained => "slots gained",
        RescaleReason::SlotsLost => "slots lost",
        RescaleReason::Reverted => "reverted",
    };
    let (state, tone) = match rescale.state {
        RescaleState::InProgress => ("in progress", Tone::Pending),
        RescaleState::Done => ("done", Tone::Good),
        RescaleState::Reverted => ("reverted", Tone::Bad),
    };
    let plain = |text: String| cell(text, Tone::Plain);
    vec![
        plain(report::time(rescale.started_at)),
        plain(reason.to_owned()),
        plain(rescale.from.to_string()),
        plain(rescale.to.to_string()),
        cell(state, tone),
        plain(rescale.pause_ms.map_or_else(|| figures::NONE.to_owned(), figures::span)),
        plain(rescale.failure.as_ref().map_or_else(String::new, |failure| failure.cause.clone())),
    ]
}

pub(super) fn rescale(
    client: &Client,
    job: &str,
    (parallelism, least): (u32, Option<u32>),
    waiting: &Waiting,
    output: Output,
) -> Result<()> {
    if let Some(least) = least.filter(|least| *least > parallelism) {
        return Err(Error::new(Code::ParallelismInvalid, format!("--least {least} exceeds {parallelism}"))
            .way_out("give at most the parallelism"));
    }
    let before = rescales(client, job)?.rescales.first().map(|newest| newest.started_at);
    client.put(&["jobs", job, "resources"], &RescaleRequest { parallelism, least })?;
    if waiting.no_wait {
        return bounds(client, job, output);
    }
    let view = settled(client, job, parallelism, before)?;
    if output == Output::Json {
        return report::json(&view);
    }
    report::line(&outcome(&view, rescales(client, job)?.rescales.first().filter(|newest| is_new(newest, before))));
    Ok(())
}

fn is_new(rescale: &RescaleView, before: Option<Millis>) -> bool {
    before.is_none_or(|before| rescale.started_at > before)
}

fn outcome(view: &JobView, rescale: Option<&RescaleView>) -> String {
    let pause = rescale
        .and_then(|rescale| rescale.pause_ms)
        .map(|pause| format!(", after a pause of {}", figures::span(pause)));
    format!("{} runs with parallelism {}{}", view.id, view.parallelism, pause.unwrap_or_default())
}

/// Waits until the job runs as asked for, as far as there are slots. Whoever ends the command ends the waiting only.
fn settled(client: &Client, job: &str, target: u32, before: Option<Millis>) -> Result<JobView> {
    let mut said = JobPhaseView::Running;
    let mut patience = Patience::default();
    loop {
        match step(client, job, target, before) {
            Ok(Step::Settled(view)) => return Ok(*view),
            Ok(Step::Reverted(error)) => return Err(error),
            Ok(Step::Waits(view)) => {
                patience.answered();
                if view.phase != said {
                    eprintln!("{} ({})", figures::phase(view.phase).0, figures::counted(view.slots, "slot"));
                }
                said = view.phase;
            }
            Err(error) => patience.bear(error)?,
        }
        std::thread::sleep(POLL);
    }
}

enum Step {
    Settled(Box<JobView>),
    Waits(Box<JobView>),
    Reverted(Error),
}

fn step(client: &Client, job: &str, target: u32, before: Option<Millis>) -> Result<Step> {
    let view: JobView = client.get(&["jobs", job])?;
    if view.phase == JobPhaseView::Ended {
        return Err(Error::new(Code::Conflict, "the job ended before it was rescaled"));
    }
    let newest = rescales(client, job)?.rescales.into_iter().next().filter(|newest| is_new(newest, before));
    if let Some(reverted) = newest.as_ref().filter(|newest| newest.state == RescaleState::Reverted) {
        let error = reverted.failure.as_ref().map(error_of);
        let error = error.unwrap_or_else(|| Error::new(Code::SlotsMissing, "the tasks did not come up"));
        return Ok(Step::Reverted(error.at(format!("reverted to parallelism {}", reverted.from))));
    }
    let is_idle = newest.is_none_or(|newest| newest.state == RescaleState::Done);
    let settled = view.phase == JobPhaseView::Running && is_idle && view.parallelism == target.min(view.slots);
    let view = Box::new(view);
    Ok(if settled { Step::Settled(view) } else { Step::Waits(view) })
}
