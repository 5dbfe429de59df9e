//! `streamkeeper plan`: the dataflow of a StreamJob as a tree, JSON or DOT, and what the job's state would become.
//!
//! With `--against` the snapshot of another place counts, and a state that does not fit is the command's error.

use streamkeeper_checkpoint::restore::DroppedState;
use streamkeeper_jobmanager::shell::{Preview, preview_of};
use streamkeeper_sql::explain::Format;
use streamkeeper_taskmanager::local::RestoreChoice;
use streamkeeper_types::{Error, Result};

use crate::{
    against::{self, Against},
    args::{Global, Output, Plan},
    job_file::JobFile,
    launch::Launch,
    migration, report,
    screen::{Tone, cell, paint},
};

pub fn execute(arguments: &Plan, global: &Global) -> Result<()> {
    let file = JobFile::read(&arguments.job)?;
    let plan = file.plan()?;
    let format = match global.output {
        Output::Text => Format::Tree,
        Output::Json => Format::Json,
        Output::Dot => Format::Dot,
    };
    let text = plan.explain(format);
    if let Some(place) = &arguments.against {
        let against = against::find(place, arguments.token_file.as_deref(), &file)?;
        let preview = preview_of(&against.manifest, &plan.graph, file.job.parallelism, file.job.max_parallelism)?;
        return compare(&against, &preview, file.job.allow_dropped_state, &text, global.output);
    }
    let launch = Launch {
        parallelism: file.job.parallelism,
        backend: file.job.state.backend,
        storage: None,
        memory: None,
        restore: RestoreChoice::Auto,
        dropped_state: DroppedState::Allow,
    };
    let preview = migration::of_job(&file, &plan.graph, &launch).transpose();
    match (preview, global.output) {
        (None, _) | (_, Output::Dot) => report::line(text.trim_end()),
        (Some(preview), Output::Text) => {
            report::line(text.trim_end());
            report::line(&shown(preview, file.job.allow_dropped_state));
        }
        (Some(preview), Output::Json) => {
            let mut graph = parsed(&text)?;
            graph["restore"] = match preview {
                Ok(preview) => serde_json::json!(preview),
                Err(error) => serde_json::json!({ "error": error }),
            };
            report::json(&graph)?;
        }
    }
    Ok(())
}

fn parsed(text: &str) -> Result<serde_json::Value> {
    serde_json::from_str(text).map_err(|error| Error::internal(error.to_string()))
}

/// What the job would do with the snapshot that was asked for.
fn compare(against: &Against, preview: &Preview, allowed: bool, text: &str, output: Output) -> Result<()> {
    if output == Output::Json {
        let mut graph = parsed(text)?;
        graph["restore"] = serde_json::json!(preview);
        graph["restore"]["location"] = serde_json::json!(against.location);
        graph["restore"]["dropsState"] = serde_json::json!(preview.drops_state());
        return report::json(&graph);
    }
    let manifest = &against.manifest;
    let kind = if manifest.kind.is_savepoint() { "savepoint" } else { "checkpoint" };
    report::line(&format!(
        "{kind} {} of {}, {}: {}",
        preview.from,
        manifest.job,
        report::time(manifest.time),
        against.location
    ));
    let rows = migration::mapping(preview).into_iter().map(|[operator, fate, columns]| {
        let tone = match fate.as_str() {
            "kept" => Tone::Good,
            "dropped" => Tone::Bad,
            _ => Tone::Pending,
        };
        vec![cell(operator, Tone::Plain), cell(fate, tone), cell(columns, Tone::Plain)]
    });
    report::line(&report::table(&["OPERATOR", "STATE", "COLUMNS"], rows.collect()));
    let consent = match (preview.drops_state(), allowed) {
        (false, _) => paint("no state would be dropped", Tone::Good),
        (true, true) => paint("state would be dropped; the job's file agrees to it", Tone::Pending),
        (true, false) => {
            paint("state would be dropped; a start refuses that unless told so by --allow-dropped-state", Tone::Bad)
        }
    };
    report::line(&consent);
    Ok(())
}

/// The existing state, for people.
fn shown(preview: Result<Preview>, allowed: bool) -> String {
    let preview = match preview {
        Ok(preview) => preview,
        Err(error) => return format!("\nexisting state does not fit this job:\n  {error}"),
    };
    let changes = migration::lines(&preview);
    let mut text = format!("\nexisting state: `run` goes on from snapshot {}", preview.from);
    if changes.is_empty() {
        text.push_str(", all of it");
    }
    changes.iter().for_each(|line| {
        text.push_str("\n  ");
        text.push_str(line);
    });
    if preview.drops_state() && !allowed {
        text.push_str("\n  `run` refuses to drop state unless told so by --allow-dropped-state");
    }
    text
}
