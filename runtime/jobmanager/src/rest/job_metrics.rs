//! The JobManager's metrics.

use streamkeeper_protocol::rest::JobPhaseView;
use streamkeeper_types::Millis;

use super::{Led, views};
use crate::{
    engine::CheckpointStatistics,
    metrics::{self as list, Number, Samples, Server, process_samples},
    shell::{JobDetails, JobStatus, VertexStatus},
};

const PHASES: [(JobPhaseView, &str); 5] = [
    (JobPhaseView::Starting, "starting"),
    (JobPhaseView::WaitingForSlots, "waiting-for-slots"),
    (JobPhaseView::Running, "running"),
    (JobPhaseView::Restarting, "restarting"),
    (JobPhaseView::Ended, "ended"),
];

/// Of this process and, if it leads one, of its job.
pub(super) fn samples(led: Option<&Led>) -> Samples {
    let mut samples = process_samples(Server::JobManager);
    samples.add(&list::LEADING, &[], u32::from(led.is_some()));
    let Some(led) = led else { return samples };
    let labels = [led.namespace.as_str(), led.name.as_str()];
    samples.add(&list::TASK_MANAGERS, &labels, led.members().len() as u64);
    let board = led.control.board();
    let status = board.read();
    for (phase, name) in PHASES {
        let is_this = u32::from(views::phase(status.phase) == phase);
        samples.add(&list::JOB_PHASE, &[labels[0], labels[1], name], is_this);
    }
    board.details(|details| job(&mut samples, labels, &status, details));
    for vertex in &status.vertices {
        self::vertex(&mut samples, labels, vertex);
    }
    samples
}

fn job(samples: &mut Samples, labels: [&str; 2], status: &JobStatus, details: &JobDetails) {
    samples.add(&list::SLOTS, &labels, details.slots);
    samples.add(&list::JOB_PARALLELISM, &labels, details.parallelism);
    if let Some(bounds) = details.bounds {
        samples.add(&list::JOB_TARGET_PARALLELISM, &labels, bounds.target);
    }
    samples.add(&list::JOB_GENERATION, &labels, details.generation.0);
    samples.add(&list::JOB_STARTED, &labels, Number::millis(details.started_at));
    if let Some(millis) = status.deployment_ms {
        samples.add(&list::JOB_DEPLOYMENT, &labels, Number::micros(millis.saturating_mul(1_000)));
    }
    samples.add(&list::JOB_RESTARTS, &labels, status.restarts);
    samples.add(&list::JOB_FAILURES, &labels, details.failures);
    samples.add(&list::CHECKPOINTS_COMPLETED, &labels, status.checkpoints.completed);
    samples.add(&list::CHECKPOINTS_FAILED, &labels, status.checkpoints.failed);
    samples.add(&list::CHECKPOINTS_IN_PROGRESS, &labels, details.in_progress.len() as u64);
    if let Some(restored) = status.restored_from {
        samples.add(&list::CHECKPOINT_RESTORED, &labels, restored.0);
    }
    if let Some(last) = &details.last_completed {
        checkpoint(samples, labels, last);
    }
}

fn checkpoint(samples: &mut Samples, labels: [&str; 2], last: &CheckpointStatistics) {
    let ended = last.ended.unwrap_or(last.triggered);
    samples.add(&list::CHECKPOINT_ID, &labels, last.id.0);
    samples.add(&list::CHECKPOINT_COMPLETED, &labels, Number::millis(ended));
    samples.add(&list::CHECKPOINT_DURATION, &labels, Number::millis(ended.saturating_sub(last.triggered).max(0)));
    samples.add(&list::CHECKPOINT_START_DELAY, &labels, Number::micros(last.metrics.start_delay_us));
    samples.add(&list::CHECKPOINT_ALIGNMENT, &labels, Number::micros(last.metrics.alignment_us));
    samples.add(&list::CHECKPOINT_SYNC, &labels, Number::micros(last.metrics.sync_us));
    samples.add(&list::CHECKPOINT_ASYNC, &labels, Number::micros(last.metrics.async_us));
    samples.add(&list::CHECKPOINT_UPLOADED, &labels, last.metrics.uploaded_bytes);
    samples.add(&list::CHECKPOINT_FULL, &labels, last.metrics.full_bytes);
}

fn vertex(samples: &mut Samples, [namespace, job]: [&str; 2], vertex: &VertexStatus) {
    let id = vertex.id.to_string();
    let labels = [namespace, job, id.as_str()];
    samples.add(&list::VERTEX_PARALLELISM, &labels, vertex.parallelism);
    samples.add(&list::VERTEX_FINISHED, &labels, vertex.finished);
    samples.add(&list::VERTEX_RECORDS_IN, &labels, vertex.records_in);
    samples.add(&list::VERTEX_RECORDS_OUT, &labels, vertex.records_out);
    samples.add(&list::VERTEX_BYTES_IN, &labels, vertex.bytes_in);
    samples.add(&list::VERTEX_BYTES_OUT, &labels, vertex.bytes_out);
    samples.add(&list::VERTEX_LATE, &labels, vertex.late_records);
    samples.add(&list::VERTEX_BAD, &labels, vertex.bad_records);
    samples.add(&list::VERTEX_STATE, &labels, vertex.state_bytes);
    // After the end of input there is no time that it stands for.
    if let Some(watermark) = vertex.watermark.filter(|watermark| *watermark != Millis::MAX) {
        samples.add(&list::VERTEX_WATERMARK, &labels, Number::millis(watermark));
    }
    samples.add(&list::VERTEX_BUSY, &labels, Number::micros(vertex.time.busy_us));
    samples.add(&list::VERTEX_IDLE, &labels, Number::micros(vertex.time.idle_us));
    samples.add(&list::VERTEX_BACK_PRESSURED, &labels, Number::micros(vertex.time.back_pressured_us));
    if let Some(source) = &vertex.source {
        samples.add(&list::VERTEX_SOURCE_READ, &labels, source.read_bytes);
        if let Some(found) = source.total_bytes {
            samples.add(&list::VERTEX_SOURCE_FOUND, &labels, found);
        }
    }
}
