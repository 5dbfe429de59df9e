//! Where a job stands.

use streamkeeper_protocol::rest::{CheckpointCounts, JobPhaseView, JobView, VertexView};
use streamkeeper_types::{Millis, Result, size};

use super::figures;
use crate::{
    args::{Output, Watch},
    progress::grouped,
    report,
    rest::Client,
    screen::{self, More, Picture, Tone, paint},
};

pub(super) fn show(client: &Client, job: &str, watch: &Watch, output: Output) -> Result<()> {
    let fetch = || client.get::<JobView>(&["jobs", job]);
    let Some(interval) = watch.watch else {
        let view = fetch()?;
        if output == Output::Json {
            return report::json(&view);
        }
        report::line(&text(&view, figures::now()));
        return Ok(());
    };
    screen::watch(output, interval, || {
        let view = fetch()?;
        let text = if output == Output::Json { report::json_text(&view)? } else { text(&view, figures::now()) };
        Ok(Picture { text, more: more(view.phase) })
    })
}

/// Nothing changes after the end.
pub(super) fn more(phase: JobPhaseView) -> More {
    if phase == JobPhaseView::Ended { More::End } else { More::GoOn }
}

fn text(view: &JobView, now: Millis) -> String {
    let mut lines = vec![head(view, now), format!("  checkpoints   {}", checkpoints(&view.checkpoints, now))];
    if let Some(id) = view.restored_from {
        lines.push(format!("  restored from {id}"));
    }
    if let Some(millis) = view.deployment_ms {
        lines.push(format!("  deployment    {}", figures::span(millis)));
    }
    if let Some(failure) = &view.last_failure {
        let text = figures::failure(failure).replace("\n", "\n              ");
        lines.push(format!("  last failure  {}", paint(&text, Tone::Bad)));
    }
    lines.push(String::new());
    let header = ["ID", "VERTEX", "PARALLELISM", "IN", "OUT", "STATE", "WATERMARK", "READ"];
    lines.push(report::table(&header, view.vertices.iter().map(row).collect()));
    let late: u64 = view.vertices.iter().map(|vertex| vertex.late_records).sum();
    let bad: u64 = view.vertices.iter().map(|vertex| vertex.bad_records).sum();
    if late > 0 || bad > 0 {
        lines.push(format!("{} late and {} bad records were left out", grouped(late), grouped(bad)));
    }
    lines.join("\n")
}

fn head(view: &JobView, now: Millis) -> String {
    let (phase, tone) = figures::phase(view.phase);
    let bounds = if view.bounds.least == view.bounds.target {
        format!("of {}", view.bounds.target)
    } else {
        format!("of {}–{}", view.bounds.least, view.bounds.target)
    };
    format!(
        "{} {} · parallelism {} {bounds}, {} · {} · reign {} for {}",
        view.id,
        paint(phase, tone),
        view.parallelism,
        figures::counted(view.slots, "slot"),
        figures::counted(view.restarts, "restart"),
        view.generation,
        figures::since(view.started_at, now)
    )
}

fn checkpoints(counts: &CheckpointCounts, now: Millis) -> String {
    let mut text = format!("{} completed, {} failed", counts.completed, counts.failed);
    if counts.in_progress > 0 {
        text.push_str(&format!(", {} in progress", counts.in_progress));
    }
    if let Some(last) = &counts.last {
        let took = last.duration_ms.unwrap_or(0);
        let completed = last.triggered_at.saturating_add_unsigned(took);
        text.push_str(&format!(
            "; last {}: {} of {} in {}, {} ago",
            last.id,
            size::display(last.uploaded_bytes),
            size::display(last.full_bytes),
            figures::span(took),
            figures::since(completed, now)
        ));
    }
    text
}

fn row(vertex: &VertexView) -> Vec<String> {
    let parallelism = match vertex.finished {
        0 => vertex.parallelism.to_string(),
        finished => format!("{}, {finished} finished", vertex.parallelism),
    };
    let read = vertex.source.map_or(String::new(), |source| match source.total_bytes {
        Some(total) => format!("{} of {}", size::display(source.read_bytes), size::display(total)),
        None => size::display(source.read_bytes),
    });
    vec![
        vertex.id.to_string(),
        vertex.name.clone(),
        parallelism,
        grouped(vertex.records_in),
        grouped(vertex.records_out),
        size::display(vertex.state_bytes),
        figures::watermark(vertex.watermark),
        read,
    ]
}
