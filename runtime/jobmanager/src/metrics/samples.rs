//! Samples and their text.

use std::{collections::HashMap, fmt};

use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, MetricEncoder, NoLabelSet, text::encode},
    metrics::MetricType,
    registry::{Registry, Unit as FormatUnit},
};
use streamkeeper_types::Millis;

use super::list::{ALL, Kind, Metric, Server, Unit};

/// OpenMetrics 1.0, which Prometheus reads.
pub const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Values of a metric's labels, in the order of [`Metric::labels`].
type Labels = Vec<String>;

/// A value. Whole numbers stay whole, and fractions are seconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Number {
    Whole(u64),
    Fraction(f64),
}

impl From<u64> for Number {
    fn from(number: u64) -> Self {
        Self::Whole(number)
    }
}

impl From<u32> for Number {
    fn from(number: u32) -> Self {
        Self::Whole(number.into())
    }
}

impl Number {
    /// Seconds of microseconds.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "a microsecond in 285 years")]
    pub fn micros(micros: u64) -> Self {
        Self::Fraction(micros as f64 / 1e6)
    }

    /// Seconds of milliseconds.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "a millisecond in 285,000 years")]
    pub fn millis(millis: Millis) -> Self {
        Self::Fraction(millis as f64 / 1e3)
    }
}

/// What one process shows at one moment.
#[derive(Debug)]
pub struct Samples {
    server: Server,
    values: HashMap<&'static str, Vec<(Labels, Number)>>,
}

impl Samples {
    #[must_use]
    pub fn of(server: Server) -> Self {
        Self { server, values: HashMap::new() }
    }

    /// Adds a sample; the labels' values come in the metric's order.
    pub fn add(&mut self, metric: &Metric, labels: &[&str], number: impl Into<Number>) {
        debug_assert_eq!(metric.labels.len(), labels.len(), "{}", metric.name);
        let labels = labels.iter().map(|label| (*label).to_owned()).collect();
        self.values.entry(metric.name).or_default().push((labels, number.into()));
    }
}

/// The text of `/metrics`. A metric without a sample shows that it exists.
#[must_use]
pub fn render(samples: Samples) -> String {
    let mut registry = Registry::default();
    let mut text = String::new();
    registry.register_collector(Box::new(samples));
    match encode(&mut text, &registry) {
        Ok(()) => text,
        // Nothing that we encode is refused by the format; half a text would read like figures that vanished.
        Err(error) => {
            tracing::error!(%error, "the metrics cannot be written");
            String::new()
        }
    }
}

impl Collector for Samples {
    fn encode(&self, mut encoder: DescriptorEncoder) -> Result<(), fmt::Error> {
        let is_ours = |metric: &&&Metric| metric.server == Server::Both || metric.server == self.server;
        for metric in ALL.iter().filter(is_ours) {
            let kind = match metric.kind {
                Kind::Counter => MetricType::Counter,
                Kind::Gauge => MetricType::Gauge,
            };
            let unit = metric.unit.map(|unit| match unit {
                Unit::Bytes => FormatUnit::Bytes,
                Unit::Seconds => FormatUnit::Seconds,
            });
            let mut family = encoder.encode_descriptor(metric.stem(), metric.help, unit.as_ref(), kind)?;
            for (values, number) in self.values.get(metric.name).into_iter().flatten() {
                let labels: Vec<(&str, &str)> =
                    metric.labels.iter().copied().zip(values.iter().map(String::as_str)).collect();
                if labels.is_empty() {
                    write(&mut family, metric.kind, *number)?;
                } else {
                    write(&mut family.encode_family(&labels)?, metric.kind, *number)?;
                }
            }
        }
        Ok(())
    }
}

fn write(encoder: &mut MetricEncoder<'_>, kind: Kind, number: Number) -> fmt::Result {
    match (kind, number) {
        (Kind::Counter, Number::Whole(number)) => encoder.encode_counter::<NoLabelSet, u64, u64>(&number, None),
        (Kind::Counter, Number::Fraction(number)) => encoder.encode_counter::<NoLabelSet, f64, u64>(&number, None),
        // The format's gauges are signed.
        (Kind::Gauge, Number::Whole(number)) => encoder.encode_gauge(&i64::try_from(number).unwrap_or(i64::MAX)),
        (Kind::Gauge, Number::Fraction(number)) => encoder.encode_gauge(&number),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::metrics;

    #[test]
    fn names_follow_the_conventions_of_prometheus() {
        let mut names = BTreeSet::new();
        for metric in ALL {
            let name = metric.name;
            assert!(names.insert(name), "{name} comes twice");
            assert!(name.starts_with("streamkeeper_"), "{name}");
            assert!(name.bytes().all(|b| b.is_ascii_lowercase() || b == b'_'), "{name}");
            assert_eq!(name.ends_with("_total"), metric.kind == Kind::Counter, "{name}");
            let stem = name.strip_suffix("_total").unwrap_or(name);
            let unit = [Unit::Bytes, Unit::Seconds].into_iter().find(|unit| stem.ends_with(unit.suffix()));
            assert_eq!(unit, metric.unit, "{name}");
            let wrong = ["_ms", "_us", "_millis", "_micros", "_kib", "_percent", "_count"];
            assert!(!wrong.iter().any(|unit| stem.ends_with(unit)), "{name} has no base unit");
            let reserved = ["le", "quantile", "instance"];
            assert!(metric.labels.iter().all(|label| !reserved.contains(label)), "{name}");
            assert!(metric.help.ends_with('.'), "{name}: {}", metric.help);
        }
    }

    #[test]
    fn the_text_has_units_types_labels_and_whole_numbers() {
        let mut samples = Samples::of(Server::JobManager);
        samples.add(&metrics::VERTEX_BYTES_IN, &["default", "hits", "2"], u64::MAX);
        samples.add(&metrics::VERTEX_BUSY, &["default", "hits", "2"], Number::micros(1_500_000));
        samples.add(&metrics::LEADING, &[], 1_u32);
        let text = render(samples);
        for line in [
            "# TYPE streamkeeper_vertex_in_bytes counter",
            "# UNIT streamkeeper_vertex_in_bytes bytes",
            "streamkeeper_vertex_in_bytes_total{namespace=\"default\",job=\"hits\",vertex=\"2\"} 18446744073709551615",
            "streamkeeper_vertex_busy_seconds_total{namespace=\"default\",job=\"hits\",vertex=\"2\"} 1.5",
            "streamkeeper_jobmanager_leading 1",
            "# TYPE streamkeeper_job_restarts counter",
        ] {
            assert!(text.lines().any(|found| found == line), "{line}\n{text}");
        }
        assert!(text.ends_with("# EOF\n"));
        assert!(!text.contains("streamkeeper_subtask_"), "those are a TaskManager's");
    }
}
