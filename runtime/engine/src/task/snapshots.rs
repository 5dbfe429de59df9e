//! One task's part of checkpoints: the order of a snapshot (S4), its upload (S5), and what notifications mean.

use std::{collections::BTreeMap, time::Instant};

use streamkeeper_network::Element;
use streamkeeper_protocol::{Barrier, CheckpointMetrics, DeclineReason, TaskReport};
use streamkeeper_state::FrozenState;
use streamkeeper_types::{
    CheckpointId, Error, OperatorId, Result,
    snapshot::{ListState, OperatorSnapshot, SubtaskSnapshot},
};

use super::{
    alignment::Aligned,
    chain::Chain,
    keyed::Uploader,
    panics,
    reporter::Reporter,
    source_head::SourceHead,
    time::micros,
    uploads::{RunningUploads, UploadPool},
};
use crate::Clock;

/// Whether the task's operators had reached the end of their input when it was cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum InputEnd {
    Open,
    Reached,
}

pub(super) struct Snapshots {
    reporter: Reporter,
    pool: UploadPool,
    uploader: Uploader,
    running: RunningUploads,
    /// Highest checkpoint that completed, as far as this task was told.
    completed: Option<CheckpointId>,
    /// First checkpoint that was cut behind the end of the input.
    final_from: Option<CheckpointId>,
    /// The stop savepoint that was cut here.
    stop: Option<CheckpointId>,
}

/// State of one operator as frozen at the cut.
struct Part {
    operator: OperatorId,
    lists: BTreeMap<String, ListState>,
    keyed: Option<FrozenState>,
}

impl Snapshots {
    pub(super) fn new(reporter: Reporter, pool: UploadPool, uploader: Uploader) -> Self {
        Self {
            reporter,
            pool,
            uploader,
            running: RunningUploads::default(),
            completed: None,
            final_from: None,
            stop: None,
        }
    }

    /// Takes the snapshot: pre-barrier work, the barrier, the synchronous parts as one step, then the upload.
    pub(super) fn take(
        &mut self,
        aligned: Aligned,
        chain: &mut Chain,
        mut source: Option<&mut SourceHead>,
        end: InputEnd,
        clock: &dyn Clock,
    ) -> Result<()> {
        let Aligned { barrier, started } = aligned;
        let begun = Instant::now();
        let waited = clock.now().saturating_sub(barrier.timestamp);
        let alignment = begun - started;
        if let Some(source) = source.as_deref_mut() {
            source.before_barrier(&barrier)?;
        }
        chain.before_barrier(&barrier)?;
        chain.router.broadcast(&Element::Barrier(barrier.clone()))?;
        let parts = self.freeze(&barrier, chain, source.as_deref())?;
        if end == InputEnd::Reached {
            self.final_from.get_or_insert(barrier.id);
        }
        if barrier.kind.is_stop() {
            self.stop = Some(barrier.id);
        }
        let metrics = CheckpointMetrics {
            start_delay_us: u64::try_from(waited).unwrap_or(0).saturating_mul(1_000).saturating_sub(micros(alignment)),
            alignment_us: micros(alignment),
            sync_us: micros(begun.elapsed()),
            ..CheckpointMetrics::default()
        };
        self.upload(barrier, parts, metrics, end);
        Ok(())
    }

    /// Uploads on the pool, then acknowledges; declines if that fails, and the task runs on.
    fn upload(&mut self, barrier: Barrier, parts: Vec<Part>, mut metrics: CheckpointMetrics, end: InputEnd) {
        let (reporter, uploader) = (self.reporter.clone(), self.uploader.clone());
        let cancel = self.running.begin(barrier.id);
        self.pool.submit(move || {
            let begun = Instant::now();
            let id = barrier.id;
            let uploaded = panics::caught("the upload of a snapshot", || {
                let mut snapshot =
                    SubtaskSnapshot { operators: Vec::with_capacity(parts.len()), finished: end == InputEnd::Reached };
                for part in parts {
                    if cancel.is_set() {
                        return Ok(None);
                    }
                    let keyed = part.keyed.map(|frozen| uploader.upload(frozen, id, &mut metrics)).transpose()?;
                    snapshot.operators.push(OperatorSnapshot { operator: part.operator, keyed, lists: part.lists });
                }
                Ok(Some(snapshot))
            });
            metrics.async_us = micros(begun.elapsed());
            match uploaded {
                Ok(Some(snapshot)) => reporter.report(TaskReport::Ack { id, snapshot, metrics }),
                Ok(None) => {}
                Err(error) => {
                    reporter.report(TaskReport::Decline { id, reason: DeclineReason::Failed(error) });
                }
            }
        });
    }

    pub(super) fn decline(&self, id: CheckpointId, reason: DeclineReason) {
        self.reporter.report(TaskReport::Decline { id, reason });
    }

    /// Checkpoint `id` is in the log: everything at or below it is committed (R16).
    pub(super) fn on_complete(
        &mut self,
        id: CheckpointId,
        chain: &mut Chain,
        source: Option<&mut SourceHead>,
    ) -> Result<()> {
        if self.completed.is_some_and(|completed| completed >= id) {
            return Ok(());
        }
        self.completed = Some(id);
        self.running.forget_up_to(id);
        let source = source.map_or(Ok(()), |source| source.checkpoint_completed(id));
        let state = chain.confirm_state(id);
        source.and(state).and(chain.checkpoint_completed(id))
    }

    pub(super) fn on_aborted(&mut self, id: CheckpointId, chain: &mut Chain) {
        self.running.cancel(id);
        self.stop = self.stop.filter(|stop| *stop != id);
        chain.abort_state(id);
        chain.checkpoint_aborted(id);
    }

    /// Whether this task was told that the stop savepoint counts, if it cut one: only then its sinks have committed.
    pub(super) fn stop_completed(&self) -> bool {
        self.stop.is_none_or(|stop| self.completed.is_some_and(|completed| completed >= stop))
    }

    /// Whether a checkpoint completed that was cut behind the end of the input (F1).
    pub(super) fn final_completed(&self) -> bool {
        matches!((self.completed, self.final_from), (Some(completed), Some(from)) if completed >= from)
    }

    /// The synchronous part of the whole chain. Nothing else runs on this thread meanwhile (R2).
    fn freeze(&self, barrier: &Barrier, chain: &mut Chain, source: Option<&SourceHead>) -> Result<Vec<Part>> {
        let mut parts = Vec::with_capacity(chain.links.len() + 1);
        if let Some(source) = source {
            parts.push(Part { operator: source.operator(), lists: source.snapshot_lists(), keyed: None });
        }
        for link in &mut chain.links {
            let place = |error: Error| error.at(link.context.info.name.clone());
            let lists = match link.operator.as_mut() {
                Some(operator) => operator.snapshot_lists(barrier).map_err(place)?,
                None => BTreeMap::new(),
            };
            let keyed = match link.context.state.as_mut() {
                Some(state) => Some(self.uploader.freeze(state, barrier).map_err(place)?),
                None => None,
            };
            if keyed.is_some() || !lists.is_empty() {
                parts.push(Part { operator: link.context.info.operator, lists, keyed });
            }
        }
        Ok(parts)
    }
}
