//! From the last acknowledgement to the notification (C1–C7).

use streamkeeper_checkpoint::{
    CompletedCheckpoint, JobState, files,
    log::{Completion, Record},
    manifest, retention,
};
use streamkeeper_protocol::{CheckpointKind, CheckpointMetrics, ToTask};
use streamkeeper_types::{AttemptId, CheckpointId, Error, Millis, snapshot::SubtaskSnapshot};

use super::{
    CheckpointCoordinator, TaskPhase,
    abort::Reason,
    pending::{self, Acknowledged, Pending, Stage},
};
use crate::engine::{CheckpointOutcome, Command, Stored, Timer};

impl CheckpointCoordinator {
    /// C1. Shared files are registered before anything else, whatever becomes of the checkpoint: a later one of the
    /// lineage may use them (R26), and nothing becomes visible before its files are registered (R20, B13).
    pub(super) fn acknowledge(
        &mut self,
        attempt: AttemptId,
        id: CheckpointId,
        snapshot: SubtaskSnapshot,
        metrics: &CheckpointMetrics,
        now: Millis,
    ) {
        let kind = self.pending.get(&id).map(Pending::kind);
        let registered = match kind {
            Some(kind) if kind.is_savepoint() => Ok(()),
            _ => self.registry.register(id, snapshot.files()),
        };
        let is_expected = |p: &Pending| p.expected.get(&attempt.subtask) == Some(&attempt);
        if !self.pending.get(&id).is_some_and(is_expected) {
            self.discard_late(id, &snapshot);
            return;
        }
        if let Err(error) = registered {
            self.abort(id, Reason::Failed(error.at(attempt.to_string())), now);
            return;
        }
        let after_end = self.tasks.phase(attempt.subtask) == Some(TaskPhase::Awaiting);
        let Some(pending) = self.pending.get_mut(&id).filter(|p| p.stage == Stage::Triggered) else { return };
        if pending.acks.contains_key(&attempt.subtask) {
            return;
        }
        pending.statistics.acknowledge(attempt.subtask, metrics);
        pending.acks.insert(attempt.subtask, Acknowledged { snapshot, after_end });
        if pending.is_acknowledged() {
            self.write_metadata(id, now);
        }
    }

    /// Nobody else will remove the private files of a checkpoint that is aborted (R26). Of any other id it is not
    /// known here that it did not complete; what it leaves is swept when the next reign begins.
    fn discard_late(&mut self, id: CheckpointId, snapshot: &SubtaskSnapshot) {
        let files = pending::private_files(snapshot.files());
        if self.aborted.contains(&id) && !files.is_empty() {
            self.commands.push(Command::Delete { discard: None, files });
        }
    }

    /// C2. From here on no timeout and no task decides.
    fn write_metadata(&mut self, id: CheckpointId, now: Millis) {
        let Some(pending) = self.pending.get_mut(&id) else { return };
        if let Some(operator) = pending.half_finished_union(&self.topology) {
            let why = format!("some subtasks of `{operator}` finished, and its union state needs none or all");
            self.abort(id, Reason::NotNow(why), now);
            return;
        }
        let manifest = pending.manifest(&self.topology);
        let bytes = manifest.encode();
        let path = files::manifest_path(&pending.barrier.target);
        let checkpoint = CompletedCheckpoint {
            id,
            kind: pending.kind(),
            format: pending.barrier.format,
            manifest: path.clone(),
            checksum: manifest::checksum(&bytes),
            size: bytes.len() as u64 + manifest.files().map(|file| file.size).sum::<u64>(),
            time: now,
        };
        pending.completion = Some(Completion { checkpoint, subsumes: Vec::new(), collected: Vec::new() });
        pending.stage = Stage::WritingMetadata;
        self.commands.push(Command::CancelTimer { timer: Timer::Timeout(id) });
        self.commands.push(Command::WriteMetadata { id, path, manifest: bytes });
    }

    pub(super) fn metadata_stored(&mut self, id: CheckpointId, outcome: Stored, now: Millis) {
        let Some(pending) = self.pending.get_mut(&id).filter(|p| p.stage == Stage::WritingMetadata) else { return };
        match outcome {
            Stored::Done => {
                let kind = pending.kind();
                let Some(completion) = pending.completion.as_mut() else { return };
                completion.subsumes = retention::subsumed(&self.state.completed, kind, self.options.retained);
                completion.collected.clone_from(&self.collected);
                pending.stage = Stage::Publishing;
                let completion = Box::new(completion.clone());
                self.commands.push(Command::Publish { completion });
            }
            Stored::Failed(error) => self.abort_stored(id, Reason::Failed(error), now),
            Stored::Unknown(error) => self.abort_stored(id, Reason::Unknown(error), now),
        }
    }

    /// C3.
    pub(super) fn published(&mut self, id: CheckpointId, outcome: Stored, now: Millis) {
        let stage = self.pending.get(&id).map(|pending| pending.stage);
        match (stage, outcome) {
            (Some(Stage::Publishing | Stage::InDoubt), Stored::Done) => self.complete(id, now),
            (Some(Stage::Publishing), Stored::Failed(error)) => self.abort_stored(id, Reason::Failed(error), now),
            (Some(Stage::Publishing), Stored::Unknown(error)) => self.put_in_doubt(id, error, now),
            _ => {}
        }
    }

    /// C4–C7: the log has it.
    fn complete(&mut self, id: CheckpointId, now: Millis) {
        let Some(pending) = self.pending.remove(&id) else { return };
        let Some(completion) = pending.completion.clone() else { return };
        self.state.apply(&Record::Completed(completion.clone()));
        self.collected.retain(|discard| !completion.collected.contains(discard));
        self.private_files.insert(id, pending.private_files());
        self.failures.success(id);
        self.last_completion = Some(now);
        let checkpoint = completion.checkpoint;
        if checkpoint.kind == CheckpointKind::Checkpoint {
            self.must_be_full = false;
        }
        if let Some(request) = pending.request.request {
            self.commands.push(Command::Answer { request, result: Ok(checkpoint.clone()) });
        }
        self.record(pending.statistics.clone(), CheckpointOutcome::Completed, now);
        for older in self.abortable() {
            if older < id && self.pending.get(&older).is_some_and(|p| !p.kind().is_savepoint()) {
                self.abort(older, Reason::NotNow(format!("checkpoint {id} completed first")), now);
            }
        }
        if checkpoint.kind.is_recovery_point() {
            self.notify_complete(&pending, completion.subsumes.last().copied());
        }
        if checkpoint.kind.is_stop() {
            self.stopped_by = Some(checkpoint);
        }
        self.collect();
    }

    /// C6. Lost ones do no harm: whoever gets a later one commits everything at or below it (R16).
    fn notify_complete(&mut self, pending: &Pending, last_subsumed: Option<CheckpointId>) {
        let id = pending.id();
        for (subtask, attempt) in &pending.expected {
            if !self.tasks.is_current(*attempt) {
                continue;
            }
            if pending.acks.get(subtask).is_some_and(|ack| ack.after_end) {
                self.tasks.release(*subtask);
            }
            let message = ToTask::NotifyComplete { id, last_subsumed };
            self.commands.push(Command::SendToTask { attempt: *attempt, message });
        }
    }

    /// C7: hands replaced checkpoints and unused shared files to the cleaner. The manifest goes last and the entry in
    /// the log after it, so that a collection that was interrupted is repeated as a whole.
    pub(super) fn collect(&mut self) {
        let lowest = retention::lowest_retained(&self.state.completed);
        let released = lowest.map(|lowest| self.registry.release_below(lowest)).unwrap_or_default();
        let mut released: Vec<String> = released.into_iter().map(|file| file.path).collect();
        let JobState { discards, .. } = &self.state;
        let open = discards.iter().filter(|d| !self.deleting.contains(&d.id) && !self.collected.contains(&d.id));
        let open: Vec<_> = open.cloned().collect();
        for discard in open {
            let mut files = self.private_files.remove(&discard.id).unwrap_or_default();
            files.append(&mut released);
            files.push(discard.manifest);
            self.deleting.insert(discard.id);
            self.commands.push(Command::Delete { discard: Some(discard.id), files });
        }
        if !released.is_empty() {
            self.commands.push(Command::Delete { discard: None, files: released });
        }
    }

    pub(super) fn deleted(&mut self, discard: CheckpointId) {
        if self.deleting.remove(&discard) {
            self.collected.push(discard);
        }
    }

    /// Everything stays as it is: files, and what tasks think of this checkpoint. The log settles it at its next append
    /// or the next deployment.
    fn put_in_doubt(&mut self, id: CheckpointId, error: Error, now: Millis) {
        let Some(pending) = self.pending.get_mut(&id) else { return };
        pending.stage = Stage::InDoubt;
        let (request, kind, statistics) = (pending.request.clone(), pending.kind(), pending.statistics.clone());
        self.record(statistics, CheckpointOutcome::InDoubt, now);
        let why = format!("storage does not tell whether checkpoint {id} was recorded: {}", error.cause);
        self.refuse(&request, &why);
        self.count_failure(id, kind, &error);
        if kind.is_stop() {
            // Its tasks wait for an answer that may never come (R35); a restart settles it.
            self.failure = Some(error);
        }
    }
}
