//! Jobs and TaskManagers.

use streamkeeper_protocol::rest::{Overview, TaskManagerList};
use streamkeeper_types::Result;

use super::figures;
use crate::{
    args::Output,
    report,
    rest::Client,
    screen::{Tone, cell},
};

pub(super) fn jobs(client: &Client, output: Output) -> Result<()> {
    let overview: Overview = client.get(&["overview"])?;
    if output == Output::Json {
        return report::json(&overview);
    }
    let rows = overview.jobs.iter().map(|job| {
        let (phase, tone) = figures::phase(job.phase);
        vec![cell(&job.id, Tone::Plain), cell(phase, tone), cell(job.parallelism.to_string(), Tone::Plain)]
    });
    report::line(&report::table(&["JOB", "PHASE", "PARALLELISM"], rows.collect()));
    report::line(&format!(
        "{} with {} of {} in use; JobManager {}",
        figures::counted(overview.task_managers, "TaskManager"),
        overview.slots_used,
        figures::counted(overview.slots, "slot"),
        overview.version
    ));
    Ok(())
}

pub(super) fn task_managers(client: &Client, output: Output) -> Result<()> {
    let list: TaskManagerList = client.get(&["taskmanagers"])?;
    if output == Output::Json {
        return report::json(&list);
    }
    if list.task_managers.is_empty() {
        report::line("no TaskManager is connected; start one with `streamkeeper taskmanager --jobmanager HOST:PORT`");
        return Ok(());
    }
    let now = figures::now();
    let rows = list.task_managers.into_iter().map(|manager| {
        let tasks = manager.tasks.join(" ");
        let since = figures::since(manager.connected_at, now);
        vec![manager.id, manager.address, manager.version, manager.slots.to_string(), since, tasks]
    });
    let header = ["TASKMANAGER", "DATA ADDRESS", "VERSION", "SLOTS", "CONNECTED FOR", "TASKS"];
    report::line(&report::table(&header, rows.collect()));
    Ok(())
}
