//! Why the job failed.

use streamkeeper_protocol::rest::Exceptions;
use streamkeeper_types::Result;

use super::figures;
use crate::{
    args::Output,
    report,
    rest::Client,
    screen::{Tone, paint},
};

pub(super) fn show(client: &Client, job: &str, output: Output) -> Result<()> {
    let exceptions: Exceptions = client.get(&["jobs", job, "exceptions"])?;
    if output == Output::Json {
        return report::json(&exceptions);
    }
    report::line(&text(&exceptions));
    Ok(())
}

fn text(exceptions: &Exceptions) -> String {
    if exceptions.exceptions.is_empty() {
        return "no failure since this JobManager leads".to_owned();
    }
    let mut lines = Vec::new();
    for exception in &exceptions.exceptions {
        let task = exception.task.as_ref().map_or(String::new(), |task| format!(", task {task}"));
        let (then, tone) =
            if exception.restarted { ("restarted", Tone::Pending) } else { ("the job ended", Tone::Bad) };
        lines.push(format!("{}{task}, {}", report::time(exception.at), paint(then, tone)));
        lines.extend(figures::failure(&exception.failure).lines().map(|line| format!("  {line}")));
    }
    if exceptions.dropped > 0 {
        lines.push(format!("{} before are not kept", figures::counted(exceptions.dropped, "failure")));
    }
    lines.join("\n")
}
