//! Checkpoints and savepoints: the latest, and one in detail.

use streamkeeper_protocol::rest::{
    CheckpointList, CheckpointState, CheckpointTask, CheckpointView, JobView, SnapshotKind,
};
use streamkeeper_types::{Result, size};

use super::{figures, status::more};
use crate::{
    args::{Output, Watch},
    report,
    rest::Client,
    screen::{self, Picture, Tone, cell, paint},
};

pub(super) fn list(client: &Client, job: &str, watch: &Watch, output: Output) -> Result<()> {
    let fetch = || client.get::<CheckpointList>(&["jobs", job, "checkpoints"]);
    let Some(interval) = watch.watch else {
        let list = fetch()?;
        if output == Output::Json {
            return report::json(&list);
        }
        report::line(&text(&list));
        return Ok(());
    };
    screen::watch(output, interval, || {
        // Asked first: whatever completes before the end is then in the list.
        let phase = client.get::<JobView>(&["jobs", job])?.phase;
        let list = fetch()?;
        let text = if output == Output::Json { report::json_text(&list)? } else { text(&list) };
        Ok(Picture { text, more: more(phase) })
    })
}

pub(super) fn one(client: &Client, job: &str, id: u64, output: Output) -> Result<()> {
    let checkpoint: CheckpointView = client.get(&["jobs", job, "checkpoints", &id.to_string()])?;
    if output == Output::Json {
        return report::json(&checkpoint);
    }
    report::line(&detail(&checkpoint));
    Ok(())
}

fn text(list: &CheckpointList) -> String {
    let counts = &list.counts;
    let (completed, failed) = (counts.completed, counts.failed);
    let head = format!("{completed} completed, {failed} failed, {} in progress", counts.in_progress);
    if list.checkpoints.is_empty() {
        return head;
    }
    let rows = list.checkpoints.iter().map(|checkpoint| {
        let (state, tone) = state(checkpoint.state);
        let plain = |text: String| cell(text, Tone::Plain);
        vec![
            plain(checkpoint.id.to_string()),
            plain(kind(checkpoint.kind).to_owned()),
            cell(state, tone),
            plain(report::time(checkpoint.triggered_at)),
            plain(checkpoint.duration_ms.map_or_else(|| figures::NONE.to_owned(), figures::span)),
            plain(format!("{}/{}", checkpoint.acknowledged, checkpoint.tasks)),
            plain(size::display(checkpoint.uploaded_bytes)),
            plain(size::display(checkpoint.full_bytes)),
            plain(checkpoint.failure.as_ref().map_or_else(String::new, |failure| failure.cause.clone())),
        ]
    });
    let header = ["ID", "KIND", "STATE", "TRIGGERED", "DURATION", "ACKS", "UPLOADED", "FULL SIZE", "FAILURE"];
    format!("{head}\n{}", report::table(&header, rows.collect()))
}

fn detail(checkpoint: &CheckpointView) -> String {
    let (state, tone) = state(checkpoint.state);
    let mut lines = vec![
        format!("{} {} {}", kind(checkpoint.kind), checkpoint.id, paint(state, tone)),
        format!("  triggered    {}", report::time(checkpoint.triggered_at)),
        format!("  acknowledged {} of {}", checkpoint.acknowledged, figures::counted(checkpoint.tasks, "task")),
        format!("  uploaded     {}", size::display(checkpoint.uploaded_bytes)),
        format!("  full size    {}", size::display(checkpoint.full_bytes)),
        format!(
            "  slowest      start {}, alignment {}, synchronous {}, upload {}",
            figures::micros(checkpoint.start_delay_us),
            figures::micros(checkpoint.alignment_us),
            figures::micros(checkpoint.sync_us),
            figures::micros(checkpoint.async_us)
        ),
    ];
    if let Some(millis) = checkpoint.duration_ms {
        lines.insert(2, format!("  duration     {}", figures::span(millis)));
    }
    if let Some(location) = &checkpoint.location {
        lines.push(format!("  location     {location}"));
    }
    if let Some(failure) = &checkpoint.failure {
        lines.push(format!("  failure      {}", paint(&figures::failure(failure), Tone::Bad)));
    }
    if !checkpoint.by_task.is_empty() {
        let header = ["TASK", "START", "ALIGNMENT", "SYNCHRONOUS", "UPLOAD", "UPLOADED", "FULL SIZE"];
        lines.push(String::new());
        lines.push(report::table(&header, checkpoint.by_task.iter().map(task).collect()));
    }
    lines.join("\n")
}

fn task(task: &CheckpointTask) -> Vec<String> {
    vec![
        task.task.clone(),
        figures::micros(task.start_delay_us),
        figures::micros(task.alignment_us),
        figures::micros(task.sync_us),
        figures::micros(task.async_us),
        size::display(task.uploaded_bytes),
        size::display(task.full_bytes),
    ]
}

fn kind(kind: SnapshotKind) -> &'static str {
    match kind {
        SnapshotKind::Checkpoint => "checkpoint",
        SnapshotKind::Savepoint => "savepoint",
        SnapshotKind::Stop => "stop savepoint",
    }
}

fn state(state: CheckpointState) -> (&'static str, Tone) {
    match state {
        CheckpointState::InProgress => ("in progress", Tone::Pending),
        CheckpointState::Completed => ("completed", Tone::Good),
        CheckpointState::Failed => ("failed", Tone::Bad),
        CheckpointState::InDoubt => ("in doubt", Tone::Pending),
    }
}
