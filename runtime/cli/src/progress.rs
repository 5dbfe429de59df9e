//! How a running job shows itself: one line that changes on a terminal, a line now and then elsewhere, JSON for scripts.

use std::{
    io::IsTerminal,
    time::{Duration, Instant},
};

use indicatif::{ProgressBar, ProgressStyle};
use streamkeeper_jobmanager::shell::{JobStatus, Phase, VertexStatus};
use streamkeeper_protocol::TaskTime;
use streamkeeper_types::size;

use crate::{args::Output, report};

/// Between two lines where nobody watches.
const PLAIN_INTERVAL: Duration = Duration::from_secs(5);

/// Shows statuses as they come.
pub struct Progress {
    form: Form,
    begin: Instant,
    last: (Instant, u64),
    rate: f64,
    /// Restarts whose cause was shown.
    restarts: u32,
}

enum Form {
    Silent,
    Bar(ProgressBar),
    Lines { printed: Instant },
    Json,
}

/// What a line says.
struct Figures {
    records: u64,
    read_percent: Option<f64>,
    watermark: Option<i64>,
    state_bytes: u64,
    late: u64,
    bad: u64,
}

impl Figures {
    fn of(status: &JobStatus) -> Self {
        let sources = || status.vertices.iter().filter(|v| v.source.is_some());
        let read: u64 = sources().filter_map(|v| v.source.as_ref()).map(|s| s.read_bytes).sum();
        let total: Option<u64> = sources().filter_map(|v| v.source.as_ref()).map(|s| s.total_bytes).sum();
        #[expect(clippy::cast_precision_loss, reason = "a percentage is shown")]
        let percent = total.filter(|t| *t > 0).map(|t| read as f64 * 100.0 / t as f64);
        Self {
            records: sources().map(|v| v.records_in.max(v.records_out)).sum(),
            read_percent: percent.map(|p| p.min(100.0)),
            watermark: status.vertices.iter().filter_map(|v: &VertexStatus| v.watermark).min(),
            state_bytes: status.vertices.iter().map(|v| v.state_bytes).sum(),
            late: status.vertices.iter().map(|v| v.late_records).sum(),
            bad: status.vertices.iter().map(|v| v.bad_records).sum(),
        }
    }
}

impl Progress {
    #[must_use]
    pub fn new(output: Output, quiet: bool) -> Self {
        let now = Instant::now();
        let form = match output {
            _ if quiet => Form::Silent,
            Output::Json => Form::Json,
            Output::Text | Output::Dot if std::io::stderr().is_terminal() => {
                let bar = ProgressBar::new_spinner();
                if let Ok(style) = ProgressStyle::with_template("{spinner} {wide_msg}") {
                    bar.set_style(style);
                }
                Form::Bar(bar)
            }
            Output::Text | Output::Dot => Form::Lines { printed: now },
        };
        Self { form, begin: now, last: (now, 0), rate: 0.0, restarts: 0 }
    }

    /// Shows a status.
    pub fn update(&mut self, status: &JobStatus) {
        let figures = Figures::of(status);
        let now = Instant::now();
        let passed = now.duration_since(self.last.0).as_secs_f64();
        if passed >= 0.2 {
            #[expect(clippy::cast_precision_loss, reason = "a rate is shown")]
            let current = figures.records.saturating_sub(self.last.1) as f64 / passed;
            self.rate = if self.last.1 == 0 { current } else { 0.6 * self.rate + 0.4 * current };
            self.last = (now, figures.records);
        }
        let cause = status.last_error.as_ref().filter(|_| status.restarts > self.restarts);
        self.restarts = status.restarts;
        let cause = cause.map(|error| format!("restart {}: {error}", status.restarts));
        match &mut self.form {
            Form::Silent => {}
            Form::Bar(bar) => {
                if let Some(cause) = cause {
                    bar.println(cause);
                }
                bar.set_message(line(status, &figures, self.rate));
                bar.tick();
            }
            Form::Lines { printed } => {
                if let Some(cause) = cause {
                    eprintln!("{cause}");
                }
                if now.duration_since(*printed) >= PLAIN_INTERVAL {
                    *printed = now;
                    eprintln!("{}", line(status, &figures, self.rate));
                }
            }
            Form::Json => {
                let value = serde_json::json!({ "status": status, "recordsPerSecond": self.rate.round() });
                report::line(&value.to_string());
            }
        }
    }

    /// The last status, with the average over the whole run.
    pub fn finish(&mut self, status: &JobStatus) {
        let figures = Figures::of(status);
        #[expect(clippy::cast_precision_loss, reason = "a rate is shown")]
        let average = figures.records as f64 / self.begin.elapsed().as_secs_f64().max(0.001);
        match &self.form {
            Form::Silent | Form::Json => {}
            Form::Bar(bar) => {
                bar.finish_and_clear();
                eprintln!("{}", line(status, &figures, average));
                times(status).iter().for_each(|line| eprintln!("{line}"));
            }
            Form::Lines { .. } => {
                eprintln!("{}", line(status, &figures, average));
                times(status).iter().for_each(|line| eprintln!("{line}"));
            }
        }
    }
}

/// How the tasks of each vertex spent their time since the last start, one line a vertex.
fn times(status: &JobStatus) -> Vec<String> {
    let line = |vertex: &VertexStatus| {
        let TaskTime { busy_us, idle_us, back_pressured_us } = vertex.time;
        let total = u128::from(busy_us) + u128::from(idle_us) + u128::from(back_pressured_us);
        let percent = |part: u64| (u128::from(part) * 100 + total / 2).checked_div(total);
        let (busy, idle, back_pressured) = (percent(busy_us)?, percent(idle_us)?, percent(back_pressured_us)?);
        Some(format!("  busy {busy:>3} % · idle {idle:>3} % · back-pressured {back_pressured:>3} %  {}", vertex.name))
    };
    status.vertices.iter().filter_map(line).collect()
}

fn line(status: &JobStatus, figures: &Figures, rate: f64) -> String {
    let phase = match status.phase {
        Phase::Starting => "starting",
        Phase::WaitingForSlots => "waiting for slots",
        Phase::Running => "running",
        Phase::Restarting => "restarting",
        Phase::Ended => "ended",
    };
    let mut parts =
        vec![phase.to_owned(), format!("{} records", grouped(figures.records)), format!("{}/s", short(rate))];
    if let Some(percent) = figures.read_percent {
        parts.push(format!("{percent:.0} % read"));
    }
    match figures.watermark {
        Some(i64::MAX) => parts.push("watermark end of input".to_owned()),
        Some(millis) => parts.push(format!("watermark {}", report::time(millis))),
        None => {}
    }
    if figures.late > 0 {
        parts.push(format!("{} late", grouped(figures.late)));
    }
    if figures.bad > 0 {
        parts.push(format!("{} bad", grouped(figures.bad)));
    }
    parts.push(format!("state {}", size::display(figures.state_bytes)));
    match &status.checkpoints.last {
        Some(last) => parts.push(format!(
            "checkpoint {} ({} in {} ms)",
            last.id,
            size::display(last.uploaded_bytes),
            last.duration_ms
        )),
        None => parts.push("no checkpoint yet".to_owned()),
    }
    if status.restarts > 0 {
        parts.push(format!("{} restarts", status.restarts));
    }
    parts.join(" · ")
}

/// `1 234 567`.
pub(crate) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(' ');
        }
        text.push(digit);
    }
    text
}

/// `84k`, `1.2M`.
pub(crate) fn short(number: f64) -> String {
    match number {
        n if n >= 1e6 => format!("{:.1}M", n / 1e6),
        n if n >= 1e3 => format!("{:.0}k", n / 1e3),
        n => format!("{n:.0}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_vertex_shows_what_its_tasks_spent_their_time_on() {
        let vertex = |name: &str, time| VertexStatus { name: name.to_owned(), time, ..VertexStatus::default() };
        let status = JobStatus {
            vertices: vec![
                vertex("read", TaskTime { busy_us: 250, idle_us: 0, back_pressured_us: 750 }),
                vertex("count", TaskTime { busy_us: 999, idle_us: 1, back_pressured_us: 0 }),
                vertex("not started", TaskTime::default()),
            ],
            ..JobStatus::default()
        };
        let expected = [
            "  busy  25 % · idle   0 % · back-pressured  75 %  read",
            "  busy 100 % · idle   0 % · back-pressured   0 %  count",
        ];
        assert_eq!(times(&status), expected);
    }

    #[test]
    fn numbers_are_readable() {
        assert_eq!([0, 999, 1_000, 1_234_567].map(grouped), ["0", "999", "1 000", "1 234 567"]);
        assert_eq!([0.4, 84_300.0, 1_250_000.0].map(short), ["0", "84k", "1.2M"]);
    }
}
