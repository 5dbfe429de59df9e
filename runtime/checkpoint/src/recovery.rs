//! Where a starting job begins: a pure choice out of what its log says.

use crate::{CompletedCheckpoint, JobResult, JobState, RestoreSource};

/// Where to begin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StartFrom {
    /// The job ended for good and stays so.
    Ended(JobResult),
    /// The newest recovery point. If it cannot be read, starting fails; an older one is never taken (R33).
    RecoveryPoint(CompletedCheckpoint),
    /// The source that was asked for: no newer point exists than it.
    Source(RestoreSource),
    /// No state: the job never completed a checkpoint.
    Empty,
}

/// Chooses. Intermediate savepoints are never chosen; checkpoints and stop savepoints count alike, the newest wins.
#[must_use]
pub fn choose(state: &JobState) -> StartFrom {
    if let Some(result @ JobResult::Finished { .. }) = &state.result {
        return StartFrom::Ended(result.clone());
    }
    let points = state.completed.iter().filter(|c| c.id >= state.floor && c.kind.is_recovery_point());
    if let Some(newest) = points.max_by_key(|c| c.id) {
        return StartFrom::RecoveryPoint(newest.clone());
    }
    state.source.clone().map_or(StartFrom::Empty, StartFrom::Source)
}

#[cfg(test)]
mod tests {
    use streamkeeper_protocol::{CheckpointKind, SnapshotFormat};
    use streamkeeper_types::CheckpointId;

    use super::*;

    fn point(id: u64, kind: CheckpointKind) -> CompletedCheckpoint {
        CompletedCheckpoint {
            id: CheckpointId(id),
            kind,
            format: SnapshotFormat::Native,
            manifest: String::new(),
            checksum: 0,
            size: 0,
            time: 0,
        }
    }

    const STOP: CheckpointKind = CheckpointKind::StopSavepoint { drain: false };

    #[test]
    fn b1_the_newest_recovery_point_wins_and_a_plain_savepoint_never() {
        use CheckpointKind::{Checkpoint, Savepoint};
        let check = |points: &[(u64, CheckpointKind)], expected: Option<u64>| {
            let completed = points.iter().map(|(id, kind)| point(*id, *kind)).collect();
            let chosen = match choose(&JobState { completed, ..JobState::default() }) {
                StartFrom::RecoveryPoint(point) => Some(point.id.0),
                StartFrom::Empty => None,
                other => panic!("{other:?}"),
            };
            assert_eq!(chosen, expected, "{points:?}");
        };
        check(&[], None);
        check(&[(1, Checkpoint), (2, Checkpoint)], Some(2));
        check(&[(1, Checkpoint), (2, Savepoint)], Some(1));
        check(&[(1, Savepoint)], None);
        check(&[(1, Checkpoint), (2, STOP)], Some(2));
        check(&[(1, STOP), (2, Checkpoint)], Some(2));
    }

    #[test]
    fn an_applied_source_stays_in_force_until_a_newer_point_completes() {
        let source = RestoreSource::Savepoint { path: "savepoints/a".into() };
        let mut state = JobState {
            completed: vec![point(7, CheckpointKind::Checkpoint)],
            source: Some(source.clone()),
            floor: CheckpointId(1001),
            ..JobState::default()
        };
        assert_eq!(choose(&state), StartFrom::Source(source));
        state.source = Some(RestoreSource::Discard);
        assert_eq!(choose(&state), StartFrom::Source(RestoreSource::Discard), "empty included");
        state.completed.push(point(1002, CheckpointKind::Checkpoint));
        assert!(matches!(choose(&state), StartFrom::RecoveryPoint(p) if p.id == CheckpointId(1002)));
    }

    #[test]
    fn a_job_that_was_stopped_or_cancelled_goes_on() {
        for result in [JobResult::Stopped { time: 3, savepoint: CheckpointId(2) }, JobResult::Cancelled { time: 3 }] {
            let completed = vec![point(1, CheckpointKind::Checkpoint), point(2, STOP)];
            let state = JobState { completed, result: Some(result), ..JobState::default() };
            assert!(matches!(choose(&state), StartFrom::RecoveryPoint(p) if p.id == CheckpointId(2)));
        }
    }

    #[test]
    fn an_ended_job_stays_ended() {
        let result = JobResult::Finished { time: 3 };
        let completed = vec![point(1, CheckpointKind::Checkpoint)];
        let state = JobState { completed, result: Some(result.clone()), ..JobState::default() };
        assert_eq!(choose(&state), StartFrom::Ended(result));
    }
}
