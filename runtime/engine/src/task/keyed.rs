//! The task's side of keyed state: opened before the operator, frozen with the chain, uploaded on the pool.

use std::sync::Arc;

use streamkeeper_protocol::{Barrier, CheckpointMetrics};
use streamkeeper_state::{
    Extent, FrozenState, KeyedOptions, KeyedState, SnapshotFormat, SnapshotKind, SnapshotRequest, TableSpec,
};
use streamkeeper_storage::Storage;
use streamkeeper_types::{AttemptId, CheckpointId, Millis, Result, key_group, snapshot::KeyedHandle};

use super::{TaskEnvironment, chain::Chain};
use crate::{OperatorRestore, SubtaskInfo};

/// `state.delta.fold-every`: deltas before the next base.
const FOLD_EVERY: u32 = 8;

/// Opens the state of one operator; `None` if it declares no table.
pub(super) fn open(
    environment: &TaskEnvironment,
    attempt: AttemptId,
    info: &SubtaskInfo,
    tables: Vec<TableSpec>,
    restore: &OperatorRestore,
) -> Result<Option<KeyedState>> {
    if tables.is_empty() {
        return Ok(None);
    }
    let options = KeyedOptions {
        range: key_group::range_of(attempt.subtask.index, info.parallelism, info.max_parallelism),
        max_parallelism: info.max_parallelism,
        work_dir: environment.local_dir.join(unique(attempt)).join(info.operator.to_string()),
        fold_every: FOLD_EVERY,
        now: environment.clock.now(),
        dropped: restore.dropped,
    };
    KeyedState::open(environment.backend.as_ref(), options, tables, &restore.keyed, environment.storage.as_ref())
        .map(Some)
}

/// Removes what the attempt had on the local machine. It is a cache of what checkpoints hold.
pub(super) fn remove_local(environment: &TaskEnvironment, attempt: AttemptId) {
    let dir = environment.local_dir.join(unique(attempt));
    if let Err(error) = std::fs::remove_dir_all(&dir)
        && error.kind() != std::io::ErrorKind::NotFound
    {
        tracing::warn!(dir = %dir.display(), %error, "local state of an ended task stays behind");
    }
}

/// A name that no other attempt has, in any generation (R22).
fn unique(attempt: AttemptId) -> String {
    let AttemptId { generation, subtask, number } = attempt;
    format!("g{generation}-{}-{}-{number}", subtask.vertex, subtask.index)
}

/// Where the frozen state of one task goes.
#[derive(Debug, Clone)]
pub(super) struct Uploader {
    storage: Arc<dyn Storage>,
    attempt: AttemptId,
}

impl Uploader {
    pub(super) fn new(environment: &TaskEnvironment, attempt: AttemptId) -> Self {
        Self { storage: Arc::clone(&environment.storage), attempt }
    }

    /// The synchronous part.
    pub(super) fn freeze(&self, state: &mut KeyedState, barrier: &Barrier) -> Result<FrozenState> {
        let kind = if barrier.kind.is_savepoint() { SnapshotKind::Savepoint } else { SnapshotKind::Checkpoint };
        let format = match barrier.format {
            streamkeeper_protocol::SnapshotFormat::Native => SnapshotFormat::Native,
            streamkeeper_protocol::SnapshotFormat::Canonical => SnapshotFormat::Canonical,
        };
        state.freeze(&SnapshotRequest {
            id: barrier.id,
            kind,
            format,
            extent: if barrier.full { Extent::Full } else { Extent::Incremental },
            target: barrier.target.clone(),
            unique: unique(self.attempt),
        })
    }

    /// The asynchronous part, with its figures.
    pub(super) fn upload(
        &self,
        frozen: FrozenState,
        id: CheckpointId,
        metrics: &mut CheckpointMetrics,
    ) -> Result<KeyedHandle> {
        let handle = frozen.upload(self.storage.as_ref())?;
        let ours = format!("/{}-{id}-", unique(self.attempt));
        metrics.uploaded_bytes +=
            handle.files().filter(|file| file.path.contains(&ours)).map(|file| file.size).sum::<u64>();
        metrics.full_bytes += handle.size();
        Ok(handle)
    }
}

impl Chain {
    fn states(&mut self) -> impl Iterator<Item = &mut KeyedState> {
        self.links.iter_mut().filter_map(|link| link.context.state.as_mut())
    }

    /// Upkeep of all state between two batches.
    pub(super) fn maintain_state(&mut self, now: Millis) -> Result<()> {
        self.states().try_for_each(|state| {
            state.set_now(now);
            state.maintain()
        })
    }

    pub(super) fn confirm_state(&mut self, id: CheckpointId) -> Result<()> {
        self.states().try_for_each(|state| state.confirmed(id))
    }

    pub(super) fn abort_state(&mut self, id: CheckpointId) {
        self.states().for_each(|state| state.aborted(id));
    }

    pub(super) fn state_bytes(&self) -> u64 {
        self.links.iter().filter_map(|link| link.context.state.as_ref()).map(KeyedState::bytes).sum()
    }
}
