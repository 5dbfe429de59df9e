//! `streamkeeper plan`: the dataflow of a StreamJob as a tree, JSON or DOT, and what the job's state would become.

use streamkeeper_checkpoint::restore::DroppedState;
use streamkeeper_jobmanager::shell::Preview;
use streamkeeper_sql::explain::Format;
use streamkeeper_taskmanager::local::RestoreChoice;
use streamkeeper_types::{Error, Result};

use crate::{
    args::{Global, Output, Plan},
    job_file::JobFile,
    launch::Launch,
    migration, report,
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
            let mut graph: serde_json::Value =
                serde_json::from_str(&text).map_err(|error| Error::internal(error.to_string()))?;
            graph["restore"] = match preview {
                Ok(preview) => serde_json::json!(preview),
                Err(error) => serde_json::json!({ "error": error }),
            };
            report::json(&graph)?;
        }
    }
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
