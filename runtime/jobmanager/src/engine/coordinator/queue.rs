//! Requests that wait for their turn.

use std::collections::VecDeque;

use crate::engine::{CheckpointRequest, Origin};

/// Served by origin (savepoint, final, user, periodic), first come first served within one. At most one of the
/// engine's own waits of each origin: a second one would only repeat it.
#[derive(Debug)]
pub(super) struct RequestQueue {
    limit: usize,
    waiting: VecDeque<CheckpointRequest>,
}

impl RequestQueue {
    pub(super) fn new(limit: usize) -> Self {
        Self { limit, waiting: VecDeque::new() }
    }

    /// Gives the request back if there is no room.
    pub(super) fn push(&mut self, request: CheckpointRequest) -> Result<(), CheckpointRequest> {
        let is_own = request.request.is_none();
        if is_own && self.waiting.iter().any(|other| other.request.is_none() && other.origin == request.origin) {
            return Ok(());
        }
        if self.waiting.len() >= self.limit {
            return Err(request);
        }
        let at = self.waiting.partition_point(|other| other.origin <= request.origin);
        self.waiting.insert(at, request);
        Ok(())
    }

    /// The first one of this origin, ahead of its turn.
    pub(super) fn take(&mut self, origin: Origin) -> Option<CheckpointRequest> {
        let at = self.waiting.iter().position(|request| request.origin == origin)?;
        self.waiting.remove(at)
    }

    pub(super) fn pop(&mut self) -> Option<CheckpointRequest> {
        self.waiting.pop_front()
    }

    /// Empties the queue.
    pub(super) fn drain(&mut self) -> impl Iterator<Item = CheckpointRequest> {
        self.waiting.drain(..)
    }
}

#[cfg(test)]
mod tests {
    use streamkeeper_protocol::{CheckpointKind, SnapshotFormat};

    use super::*;
    use crate::engine::{RequestId, options::Sharing};

    fn request(origin: Origin, request: Option<u64>) -> CheckpointRequest {
        CheckpointRequest {
            request: request.map(RequestId),
            origin,
            kind: CheckpointKind::Checkpoint,
            format: SnapshotFormat::Native,
            target: None,
            sharing: Sharing::Incremental,
        }
    }

    #[test]
    fn serves_savepoints_first_and_equals_in_order() {
        let mut queue = RequestQueue::new(10);
        let sequence = [
            (Origin::Periodic, None),
            (Origin::User, Some(1)),
            (Origin::Savepoint, Some(2)),
            (Origin::User, Some(3)),
            (Origin::Final, None),
            (Origin::Periodic, None),
            (Origin::Savepoint, Some(4)),
        ];
        for (origin, id) in sequence {
            assert!(queue.push(request(origin, id)).is_ok());
        }
        let served: Vec<_> = queue.drain().map(|r| (r.origin, r.request.map(|id| id.0))).collect();
        assert_eq!(
            served,
            [
                (Origin::Savepoint, Some(2)),
                (Origin::Savepoint, Some(4)),
                (Origin::Final, None),
                (Origin::User, Some(1)),
                (Origin::User, Some(3)),
                (Origin::Periodic, None),
            ]
        );
    }

    #[test]
    fn a_full_queue_gives_the_request_back() {
        let mut queue = RequestQueue::new(1);
        assert!(queue.push(request(Origin::User, Some(1))).is_ok());
        assert!(queue.push(request(Origin::User, Some(2))).is_err());
    }
}
