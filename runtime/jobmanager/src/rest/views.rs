//! From what the job shows to what the API answers. Figures only; nothing is decided here.

use streamkeeper_protocol::{
    CheckpointKind, TaskTime,
    rest::{
        BoundsView, CheckpointCounts, CheckpointList, CheckpointState, CheckpointTask, CheckpointView, ExceptionView,
        Exceptions, Failure, JobPhaseView, JobSummary, JobView, Overview, PlanView, RescaleList, RescaleReason,
        RescaleState, RescaleView, SnapshotKind, SplitProgress, StatusView, SubtaskView, TimeShares, VertexDetail,
        VertexView, task_name,
    },
};
use streamkeeper_types::{SubtaskId, VertexId};

use super::Led;
use crate::{
    engine::{CheckpointOutcome, CheckpointStatistics, Exception, Rescale, RescaleCause, RescaleOutcome, TaskPart},
    shell::{JobDetails, JobStatus, Phase, VertexStatus},
};

pub(super) fn overview(led: &Led) -> Overview {
    let members = led.members();
    let status = led.control.board().read();
    let (slots, parallelism) = led.control.board().details(|details| (details.slots, details.parallelism));
    let is_deployed = matches!(status.phase, Phase::Starting | Phase::Running);
    Overview {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        jobs: vec![summary(led)],
        task_managers: u32::try_from(members.len()).unwrap_or(u32::MAX),
        slots,
        slots_used: if is_deployed { parallelism } else { 0 },
    }
}

pub(super) fn summary(led: &Led) -> JobSummary {
    let board = led.control.board();
    JobSummary {
        id: led.id.clone(),
        namespace: led.namespace.clone(),
        name: led.name.clone(),
        phase: phase(board.read().phase),
        parallelism: board.details(|details| details.parallelism),
    }
}

pub(super) fn job(led: &Led) -> JobView {
    let board = led.control.board();
    let status = board.read();
    board.details(|details| JobView {
        id: led.id.clone(),
        namespace: led.namespace.clone(),
        name: led.name.clone(),
        phase: phase(status.phase),
        parallelism: details.parallelism,
        bounds: bounds_of(details),
        slots: details.slots,
        max_parallelism: details.max_parallelism,
        generation: details.generation.0,
        started_at: details.started_at,
        restarts: status.restarts,
        restored_from: status.restored_from.map(|id| id.0),
        deployment_ms: status.deployment_ms,
        last_failure: last_failure(details),
        checkpoints: counts(led, &status, details),
        vertices: status.vertices.iter().map(vertex_view).collect(),
    })
}

pub(super) fn status(led: &Led) -> StatusView {
    let board = led.control.board();
    // Read before the rest: news that come in between are waited for in vain by nobody.
    let revision = *board.revisions().borrow();
    let status = board.read();
    board.details(|details| StatusView {
        phase: phase(status.phase),
        revision,
        parallelism: details.parallelism,
        bounds: bounds_of(details),
        generation: details.generation.0,
        restarts: status.restarts,
        last_completed: details.last_completed.as_ref().map(|last| last.id.0),
        last_failure: last_failure(details),
    })
}

pub(super) fn plan(led: &Led) -> PlanView {
    let plan = led.control.board().details(|details| details.plan.clone());
    let (vertices, edges) = plan.map(|plan| (plan.vertices.clone(), plan.edges.clone())).unwrap_or_default();
    PlanView { vertices, edges, program: led.program.clone() }
}

pub(super) fn exceptions(led: &Led) -> Exceptions {
    led.control.board().details(|details| Exceptions {
        exceptions: details.exceptions.iter().rev().map(exception).collect(),
        dropped: details.failures.saturating_sub(details.exceptions.len() as u64),
    })
}

fn exception(exception: &Exception) -> ExceptionView {
    ExceptionView {
        at: exception.at,
        failure: Failure::from(&exception.error),
        task: exception.task.map(|attempt| task_name(attempt.subtask)),
        restarted: exception.restarted,
    }
}

/// `None` if the plan has no such vertex.
pub(super) fn vertex(led: &Led, id: VertexId) -> Option<VertexDetail> {
    let board = led.control.board();
    let status = board.read();
    let vertex = status.vertices.iter().find(|vertex| vertex.id == id.0)?;
    let attempt = board.details(|details| details.attempt);
    let members = led.members();
    let subtask = |index: u32| {
        let id = SubtaskId { vertex: id, index };
        let figures = board.figures(|all| all.of(id));
        let name = task_name(id);
        let mut own =
            VertexStatus { id: vertex.id, name: vertex.name.clone(), parallelism: 1, ..VertexStatus::default() };
        own.add(&figures);
        SubtaskView {
            index,
            attempt,
            phase: figures.phase,
            task_manager: members.iter().find(|member| member.tasks.contains(&name)).map(|member| member.id.clone()),
            figures: vertex_view(&own),
        }
    };
    Some(VertexDetail { vertex: vertex_view(vertex), subtasks: (0..vertex.parallelism).map(subtask).collect() })
}

pub(super) fn rescales(led: &Led) -> RescaleList {
    let rescales = led.control.board().details(|details| details.rescales.iter().rev().map(rescale).collect());
    RescaleList { rescales }
}

fn rescale(rescale: &Rescale) -> RescaleView {
    let (state, pause_ms, failure) = match &rescale.outcome {
        None => (RescaleState::InProgress, None, None),
        Some(RescaleOutcome::Done { pause }) => (RescaleState::Done, u64::try_from(*pause).ok(), None),
        Some(RescaleOutcome::Reverted(error)) => (RescaleState::Reverted, None, Some(Failure::from(error))),
    };
    let reason = match rescale.cause {
        RescaleCause::Requested => RescaleReason::Requested,
        RescaleCause::SlotsGained => RescaleReason::SlotsGained,
        RescaleCause::SlotsLost => RescaleReason::SlotsLost,
        RescaleCause::Reverted => RescaleReason::Reverted,
    };
    RescaleView { started_at: rescale.started, reason, from: rescale.from, to: rescale.to, state, pause_ms, failure }
}

pub(super) fn bounds(led: &Led) -> BoundsView {
    led.control.board().details(bounds_of)
}

fn bounds_of(details: &JobDetails) -> BoundsView {
    details
        .bounds
        .map_or(BoundsView { least: 0, target: 0 }, |bounds| BoundsView { least: bounds.least, target: bounds.target })
}

pub(super) fn checkpoints(led: &Led) -> CheckpointList {
    let board = led.control.board();
    let status = board.read();
    board.details(|details| {
        let mut checkpoints: Vec<CheckpointView> =
            details.in_progress.iter().map(|open| checkpoint_view(led, open)).collect();
        checkpoints.extend(details.checkpoints.iter().map(|ended| checkpoint_view(led, ended)));
        checkpoints.sort_unstable_by_key(|checkpoint| std::cmp::Reverse(checkpoint.id));
        CheckpointList { counts: counts(led, &status, details), checkpoints }
    })
}

/// `None` if it is not remembered.
pub(super) fn checkpoint(led: &Led, id: u64) -> Option<CheckpointView> {
    led.control.board().details(|details| {
        let ended = details.checkpoints.iter().map(AsRef::as_ref);
        let found = ended.chain(&details.in_progress).find(|checkpoint| checkpoint.id.0 == id)?;
        Some(CheckpointView { by_task: found.parts.iter().map(part).collect(), ..checkpoint_view(led, found) })
    })
}

fn part(part: &TaskPart) -> CheckpointTask {
    let metrics = &part.metrics;
    CheckpointTask {
        task: task_name(part.subtask),
        start_delay_us: metrics.start_delay_us,
        alignment_us: metrics.alignment_us,
        sync_us: metrics.sync_us,
        async_us: metrics.async_us,
        uploaded_bytes: metrics.uploaded_bytes,
        full_bytes: metrics.full_bytes,
    }
}

fn counts(led: &Led, status: &JobStatus, details: &JobDetails) -> CheckpointCounts {
    CheckpointCounts {
        completed: status.checkpoints.completed,
        failed: status.checkpoints.failed,
        in_progress: details.in_progress.len() as u64,
        last: details.last_completed.as_ref().map(|last| checkpoint_view(led, last)),
    }
}

fn checkpoint_view(led: &Led, checkpoint: &CheckpointStatistics) -> CheckpointView {
    let (state, failure) = match &checkpoint.outcome {
        CheckpointOutcome::InProgress => (CheckpointState::InProgress, None),
        CheckpointOutcome::Completed => (CheckpointState::Completed, None),
        CheckpointOutcome::Failed(error) => (CheckpointState::Failed, Some(Failure::from(error))),
        CheckpointOutcome::InDoubt => (CheckpointState::InDoubt, None),
    };
    let duration = checkpoint.ended.map(|ended| ended.saturating_sub(checkpoint.triggered));
    CheckpointView {
        id: checkpoint.id.0,
        kind: match checkpoint.kind {
            CheckpointKind::Checkpoint => SnapshotKind::Checkpoint,
            CheckpointKind::Savepoint => SnapshotKind::Savepoint,
            CheckpointKind::StopSavepoint { .. } => SnapshotKind::Stop,
        },
        state,
        triggered_at: checkpoint.triggered,
        duration_ms: duration.map(|duration| u64::try_from(duration).unwrap_or(0)),
        acknowledged: checkpoint.acknowledged as u64,
        tasks: checkpoint.tasks as u64,
        start_delay_us: checkpoint.metrics.start_delay_us,
        alignment_us: checkpoint.metrics.alignment_us,
        sync_us: checkpoint.metrics.sync_us,
        async_us: checkpoint.metrics.async_us,
        uploaded_bytes: checkpoint.metrics.uploaded_bytes,
        full_bytes: checkpoint.metrics.full_bytes,
        location: (state == CheckpointState::Completed).then(|| led.location_of(&checkpoint.folder)),
        failure,
        by_task: Vec::new(),
    }
}

fn vertex_view(vertex: &VertexStatus) -> VertexView {
    VertexView {
        id: vertex.id,
        name: vertex.name.clone(),
        parallelism: vertex.parallelism,
        finished: vertex.finished,
        records_in: vertex.records_in,
        records_out: vertex.records_out,
        bytes_in: vertex.bytes_in,
        bytes_out: vertex.bytes_out,
        late_records: vertex.late_records,
        bad_records: vertex.bad_records,
        state_bytes: vertex.state_bytes,
        watermark: vertex.watermark,
        time: shares(&vertex.time),
        source: vertex
            .source
            .as_ref()
            .map(|source| SplitProgress { read_bytes: source.read_bytes, total_bytes: source.total_bytes }),
    }
}

/// In thousandths that sum up to 1000: idle takes what rounding leaves.
fn shares(time: &TaskTime) -> TimeShares {
    let total = u128::from(time.busy_us) + u128::from(time.idle_us) + u128::from(time.back_pressured_us);
    if total == 0 {
        return TimeShares::default();
    }
    let share = |part: u64| u32::try_from(u128::from(part) * 1_000 / total).unwrap_or(1_000);
    let (busy, back_pressured) = (share(time.busy_us), share(time.back_pressured_us));
    TimeShares { busy, idle: 1_000 - busy - back_pressured, back_pressured }
}

fn last_failure(details: &JobDetails) -> Option<Failure> {
    details.exceptions.last().map(|exception| Failure::from(&exception.error))
}

pub(super) fn phase(phase: Phase) -> JobPhaseView {
    match phase {
        Phase::Starting => JobPhaseView::Starting,
        Phase::WaitingForSlots => JobPhaseView::WaitingForSlots,
        Phase::Running => JobPhaseView::Running,
        Phase::Restarting => JobPhaseView::Restarting,
        Phase::Ended => JobPhaseView::Ended,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_of_time_sum_up_to_1000() {
        let shares = |busy_us, idle_us, back_pressured_us| {
            let TimeShares { busy, idle, back_pressured } = shares(&TaskTime { busy_us, idle_us, back_pressured_us });
            (busy, idle, back_pressured)
        };
        assert_eq!(shares(0, 0, 0), (0, 0, 0));
        assert_eq!(shares(1, 1, 1), (333, 334, 333));
        assert_eq!(shares(u64::MAX, 0, u64::MAX), (500, 0, 500));
        assert_eq!(shares(7, 0, 0), (1_000, 0, 0));
    }
}
