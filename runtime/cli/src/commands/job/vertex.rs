//! The subtasks of one vertex.

use streamkeeper_protocol::rest::{SubtaskPhase, SubtaskView, VertexDetail};
use streamkeeper_types::{Millis, Result, size};

use super::figures;
use crate::{
    args::Output,
    progress::grouped,
    report,
    rest::Client,
    screen::{Tone, cell},
};

pub(super) fn show(client: &Client, job: &str, vertex: u32, output: Output) -> Result<()> {
    let detail: VertexDetail = client.get(&["jobs", job, "vertices", &vertex.to_string()])?;
    if output == Output::Json {
        return report::json(&detail);
    }
    let now = figures::now();
    report::line(&format!("vertex {}: {}", detail.vertex.id, detail.vertex.name));
    let header = ["SUBTASK", "ATTEMPT", "PHASE", "TASKMANAGER", "BUSY", "BACK-PRESSURED", "IN", "OUT", "STATE", "LAG"];
    report::line(&report::table(&header, detail.subtasks.iter().map(|subtask| row(subtask, now)).collect()));
    Ok(())
}

fn row(subtask: &SubtaskView, now: Millis) -> Vec<comfy_table::Cell> {
    let (phase, tone) = match subtask.phase {
        SubtaskPhase::Starting => ("starting", Tone::Pending),
        SubtaskPhase::Running => ("running", Tone::Good),
        SubtaskPhase::AwaitingFinalCheckpoint => ("awaiting final checkpoint", Tone::Pending),
        SubtaskPhase::Finished => ("finished", Tone::Plain),
        SubtaskPhase::Stopped => ("stopped", Tone::Bad),
    };
    let figures = &subtask.figures;
    let plain = |text: String| cell(text, Tone::Plain);
    vec![
        plain(subtask.index.to_string()),
        plain(subtask.attempt.to_string()),
        cell(phase, tone),
        plain(subtask.task_manager.clone().unwrap_or_else(|| figures::NONE.to_owned())),
        plain(figures::share(figures.time.busy)),
        plain(figures::share(figures.time.back_pressured)),
        plain(grouped(figures.records_in)),
        plain(grouped(figures.records_out)),
        plain(size::display(figures.state_bytes)),
        plain(figures::lag(figures.watermark, now)),
    ]
}
