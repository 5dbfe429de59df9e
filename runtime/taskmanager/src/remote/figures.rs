//! What the tasks of this process last told, for its own `/metrics`.

use std::{collections::BTreeMap, sync::Arc};

use parking_lot::Mutex;
use streamkeeper_jobmanager::metrics::{self as list, Number, Samples, Server, process_samples};
use streamkeeper_protocol::{FromTask, SubtaskMetrics, TaskReport};
use streamkeeper_types::{AttemptId, Millis};

/// Cheap to clone.
#[derive(Clone, Default)]
pub(super) struct Figures(Arc<Mutex<Shown>>);

#[derive(Default)]
struct Shown {
    /// Namespace and name.
    job: (String, String),
    tasks: BTreeMap<AttemptId, SubtaskMetrics>,
}

impl Figures {
    /// Tasks are of this job from now on.
    pub(super) fn begin(&self, namespace: &str, name: &str) {
        *self.0.lock() = Shown { job: (namespace.to_owned(), name.to_owned()), tasks: BTreeMap::new() };
    }

    /// Takes in a report. Tasks that ended are not shown any more.
    pub(super) fn on(&self, report: &FromTask) {
        match &report.report {
            TaskReport::Metrics(metrics) => {
                self.0.lock().tasks.insert(report.attempt, metrics.clone());
            }
            TaskReport::State(state) if state.is_terminal() => {
                self.0.lock().tasks.remove(&report.attempt);
            }
            TaskReport::State(_) => {
                self.0.lock().tasks.entry(report.attempt).or_default();
            }
            TaskReport::Ack { .. } | TaskReport::Decline { .. } | TaskReport::Coordinator(_) => {}
        }
    }

    /// Nothing runs here.
    pub(super) fn end(&self) {
        self.0.lock().tasks.clear();
    }

    /// All that this process shows.
    pub(super) fn samples(&self, slots: u32) -> Samples {
        let mut samples = process_samples(Server::TaskManager);
        let shown = self.0.lock();
        samples.add(&list::TASK_MANAGER_SLOTS, &[], slots);
        samples.add(&list::TASK_MANAGER_TASKS, &[], shown.tasks.len() as u64);
        for (attempt, metrics) in &shown.tasks {
            subtask(&mut samples, &shown.job, *attempt, metrics);
        }
        samples
    }
}

fn subtask(samples: &mut Samples, (namespace, job): &(String, String), attempt: AttemptId, metrics: &SubtaskMetrics) {
    let (vertex, index) = (attempt.subtask.vertex.0.to_string(), attempt.subtask.index.to_string());
    let labels = [namespace.as_str(), job.as_str(), vertex.as_str(), index.as_str()];
    samples.add(&list::SUBTASK_ATTEMPT, &labels, attempt.number);
    samples.add(&list::SUBTASK_RECORDS_IN, &labels, metrics.records_in);
    samples.add(&list::SUBTASK_RECORDS_OUT, &labels, metrics.records_out);
    samples.add(&list::SUBTASK_BYTES_IN, &labels, metrics.bytes_in);
    samples.add(&list::SUBTASK_BYTES_OUT, &labels, metrics.bytes_out);
    samples.add(&list::SUBTASK_LATE, &labels, metrics.late_records);
    samples.add(&list::SUBTASK_BAD, &labels, metrics.bad_records);
    samples.add(&list::SUBTASK_STATE, &labels, metrics.state_bytes);
    // After the end of input there is no time that it stands for.
    if let Some(watermark) = metrics.watermark.filter(|watermark| *watermark != Millis::MAX) {
        samples.add(&list::SUBTASK_WATERMARK, &labels, Number::millis(watermark));
    }
    samples.add(&list::SUBTASK_BUSY, &labels, Number::micros(metrics.time.busy_us));
    samples.add(&list::SUBTASK_IDLE, &labels, Number::micros(metrics.time.idle_us));
    samples.add(&list::SUBTASK_BACK_PRESSURED, &labels, Number::micros(metrics.time.back_pressured_us));
    if let Some(source) = &metrics.source {
        samples.add(&list::SUBTASK_SOURCE_READ, &labels, source.read_bytes);
        if let Some(found) = source.total_bytes {
            samples.add(&list::SUBTASK_SOURCE_FOUND, &labels, found);
        }
    }
}

#[cfg(test)]
mod tests {
    use streamkeeper_jobmanager::metrics::render;
    use streamkeeper_protocol::{SourceProgress, TaskState};
    use streamkeeper_types::{Generation, SubtaskId, VertexId};

    use super::*;

    fn attempt(index: u32) -> AttemptId {
        AttemptId { generation: Generation(1), subtask: SubtaskId { vertex: VertexId(2), index }, number: 3 }
    }

    fn report(index: u32, report: TaskReport) -> FromTask {
        FromTask { attempt: attempt(index), report }
    }

    #[test]
    fn every_metric_of_a_task_manager_has_a_sample_while_a_task_runs_and_none_of_it_afterwards() {
        let figures = Figures::default();
        figures.begin("default", "hits");
        let source = Some(SourceProgress { read_bytes: 1, total_bytes: Some(2) });
        let metrics = SubtaskMetrics { records_in: 41, watermark: Some(1_500), source, ..SubtaskMetrics::default() };
        figures.on(&report(0, TaskReport::Metrics(metrics)));
        figures.on(&report(1, TaskReport::State(TaskState::Running)));
        let text = render(figures.samples(4));
        let samples: Vec<&str> = text.lines().filter(|line| !line.starts_with('#')).collect();
        for metric in list::ALL.iter().filter(|metric| metric.server != Server::JobManager) {
            let is_its = |line: &&str| line.split(['{', ' ']).next() == Some(metric.name);
            assert!(samples.iter().any(is_its), "{} has no sample\n{text}", metric.name);
        }
        let labels = r#"{namespace="default",job="hits",vertex="2",subtask="0"}"#;
        for (name, value) in [("records_in_total", "41"), ("watermark_timestamp_seconds", "1.5")] {
            let line = format!("streamkeeper_subtask_{name}{labels} {value}");
            assert!(samples.contains(&line.as_str()), "{line}\n{text}");
        }
        assert!(samples.contains(&"streamkeeper_taskmanager_tasks 2"), "{text}");
        figures.on(&report(0, TaskReport::State(TaskState::Finished)));
        assert!(!render(figures.samples(4)).contains(labels));
    }
}
