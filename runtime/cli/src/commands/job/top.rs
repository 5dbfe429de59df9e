//! Who is busy, and how fast.

use std::time::{Duration, Instant};

use serde::Serialize;
use streamkeeper_protocol::rest::{JobView, VertexView};
use streamkeeper_types::{Millis, Result, size};

use super::{figures, status::more};
use crate::{
    args::{Output, Watch},
    progress::short,
    report,
    rest::Client,
    screen::{self, Picture, Tone, cell, paint},
};

/// Between two samples where only one picture is wanted.
const SAMPLE: Duration = Duration::from_secs(1);

/// Share of its time from which a vertex counts as the one that all wait for, in thousandths.
const BUSY: u32 = 800;

/// The counters at one moment.
struct Sample {
    at: Instant,
    view: JobView,
}

/// Records per second; `None` where the counters began anew between two samples.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
struct Rates {
    records_in_per_second: Option<f64>,
    records_out_per_second: Option<f64>,
}

#[derive(Serialize)]
struct VertexTop<'a> {
    #[serde(flatten)]
    vertex: &'a VertexView,
    #[serde(flatten)]
    rates: Rates,
    /// How far its watermark lags behind the clock, in milliseconds.
    lag_ms: Option<Millis>,
}

pub(super) fn show(client: &Client, job: &str, watch: &Watch, output: Output) -> Result<()> {
    let sample = || -> Result<Sample> { Ok(Sample { view: client.get(&["jobs", job])?, at: Instant::now() }) };
    let mut before = sample()?;
    let first = watch.watch.map_or(SAMPLE, |interval| interval.min(SAMPLE));
    std::thread::sleep(first);
    let mut look = || {
        let sample = sample()?;
        let text = picture(&before, &sample, output)?;
        let more = more(sample.view.phase);
        before = sample;
        Ok(Picture { text, more })
    };
    match watch.watch {
        Some(interval) => screen::watch(output, interval, look),
        None => {
            report::line(&look()?.text);
            Ok(())
        }
    }
}

fn picture(before: &Sample, after: &Sample, output: Output) -> Result<String> {
    let passed = after.at.duration_since(before.at);
    let now = figures::now();
    let vertices = after.view.vertices.iter().map(|vertex| {
        let old = before.view.vertices.iter().find(|old| old.id == vertex.id);
        (vertex, old.map(|old| rates(old, vertex, passed)).unwrap_or_default())
    });
    if output == Output::Json {
        let lag = |vertex: &VertexView| vertex.watermark.filter(|w| *w != i64::MAX).map(|w| now.saturating_sub(w));
        let vertices: Vec<_> =
            vertices.map(|(vertex, rates)| VertexTop { vertex, rates, lag_ms: lag(vertex) }).collect();
        return report::json_text(&serde_json::json!({ "phase": after.view.phase, "vertices": vertices }));
    }
    let (phase, tone) = figures::phase(after.view.phase);
    let head = format!("{} {} · parallelism {}", after.view.id, paint(phase, tone), after.view.parallelism);
    let header = ["ID", "VERTEX", "BUSY", "IDLE", "BACK-PRESSURED", "IN/S", "OUT/S", "LAG", "STATE"];
    let rows = vertices.map(|(vertex, rates)| row(vertex, rates, now)).collect();
    Ok(format!("{head}\n{}", report::table(&header, rows)))
}

fn rates(before: &VertexView, after: &VertexView, passed: Duration) -> Rates {
    #[expect(clippy::cast_precision_loss, reason = "a rate is shown")]
    let rate = |before: u64, after: u64| {
        after.checked_sub(before).map(|records| records as f64 / passed.as_secs_f64().max(0.001))
    };
    Rates {
        records_in_per_second: rate(before.records_in, after.records_in),
        records_out_per_second: rate(before.records_out, after.records_out),
    }
}

fn row(vertex: &VertexView, rates: Rates, now: Millis) -> Vec<comfy_table::Cell> {
    let rate = |rate: Option<f64>| rate.map_or_else(|| figures::NONE.to_owned(), short);
    let busy = if vertex.time.busy >= BUSY { Tone::Bad } else { Tone::Plain };
    let pressed = if vertex.time.back_pressured >= BUSY / 2 { Tone::Pending } else { Tone::Plain };
    let plain = |text: String| cell(text, Tone::Plain);
    vec![
        plain(vertex.id.to_string()),
        plain(vertex.name.clone()),
        cell(figures::share(vertex.time.busy), busy),
        plain(figures::share(vertex.time.idle)),
        cell(figures::share(vertex.time.back_pressured), pressed),
        plain(rate(rates.records_in_per_second)),
        plain(rate(rates.records_out_per_second)),
        plain(figures::lag(vertex.watermark, now)),
        plain(size::display(vertex.state_bytes)),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_come_from_two_samples_and_none_from_counters_that_began_anew() {
        let vertex = |records_in, records_out| VertexView { records_in, records_out, ..VertexView::default() };
        let rates = rates(&vertex(1_000, 900), &vertex(4_000, 100), Duration::from_millis(1_500));
        let expected = Rates { records_in_per_second: Some(2_000.0), records_out_per_second: None };
        assert_eq!(rates, expected);
    }
}
