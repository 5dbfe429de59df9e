//! Which checkpoints a new one replaces.

use streamkeeper_protocol::CheckpointKind;
use streamkeeper_types::CheckpointId;

use crate::CompletedCheckpoint;

/// Ids that a completing snapshot of kind `kind` subsumes, given what exists and how many checkpoints are retained
/// (at least 1, the new one counted).
///
/// Savepoints are never subsumed and subsume nothing, so they never push out the newest real checkpoint (R27).
#[must_use]
pub fn subsumed(completed: &[CompletedCheckpoint], kind: CheckpointKind, retained: usize) -> Vec<CheckpointId> {
    if kind != CheckpointKind::Checkpoint {
        return Vec::new();
    }
    let mut ids: Vec<_> = completed.iter().filter(|c| c.kind == CheckpointKind::Checkpoint).map(|c| c.id).collect();
    ids.sort_unstable();
    let others = retained.max(1) - 1;
    ids.truncate(ids.len().saturating_sub(others));
    ids
}

/// The lowest id among checkpoints that stay: shared files last used below it may go.
#[must_use]
pub fn lowest_retained(completed: &[CompletedCheckpoint]) -> Option<CheckpointId> {
    completed.iter().filter(|c| c.kind == CheckpointKind::Checkpoint).map(|c| c.id).min()
}

#[cfg(test)]
mod tests {
    use streamkeeper_protocol::SnapshotFormat;

    use super::*;

    fn completed(points: &[(u64, CheckpointKind)]) -> Vec<CompletedCheckpoint> {
        let point = |(id, kind): &(u64, CheckpointKind)| CompletedCheckpoint {
            id: CheckpointId(*id),
            kind: *kind,
            format: SnapshotFormat::Native,
            manifest: String::new(),
            checksum: 0,
            size: 0,
            time: 0,
        };
        points.iter().map(point).collect()
    }

    #[test]
    fn r27_b2_savepoints_neither_replace_nor_are_replaced() {
        use CheckpointKind::{Checkpoint, Savepoint, StopSavepoint};
        let check = |points: &[(u64, CheckpointKind)], kind, retained, expected: &[u64]| {
            let gone = subsumed(&completed(points), kind, retained);
            assert_eq!(gone.iter().map(|id| id.0).collect::<Vec<_>>(), expected, "{points:?}, {retained}");
        };
        check(&[(1, Checkpoint)], Savepoint, 1, &[]);
        check(&[(1, Checkpoint)], StopSavepoint { drain: true }, 1, &[]);
        check(&[(1, Checkpoint), (2, Savepoint)], Checkpoint, 1, &[1]);
        check(&[(1, Checkpoint), (2, Checkpoint)], Checkpoint, 2, &[1]);
        check(&[(1, Checkpoint)], Checkpoint, 2, &[]);
        check(&[(1, Checkpoint), (2, Checkpoint), (3, Checkpoint)], Checkpoint, 0, &[1, 2, 3]);
        assert_eq!(
            lowest_retained(&completed(&[(1, Savepoint), (3, Checkpoint), (4, Checkpoint)])),
            Some(CheckpointId(3))
        );
    }
}
