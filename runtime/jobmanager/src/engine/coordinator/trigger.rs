//! From a wish to triggered tasks (T1–T7).

use std::collections::{BTreeMap, BTreeSet};

use streamkeeper_checkpoint::files;
use streamkeeper_protocol::{Barrier, CheckpointKind, SnapshotFormat, ToTask};
use streamkeeper_types::{CheckpointId, Error, Millis, OperatorId};

use super::{
    CheckpointCoordinator, TaskPhase, Tasks,
    abort::Reason,
    failures::Tolerance,
    pending::{Pending, Stage},
};
use crate::engine::{
    CheckpointOutcome, CheckpointRequest, CheckpointStatistics, Command, Origin, Timer,
    options::{Sharing, millis},
};

/// Phases in which a task takes part in a checkpoint or needs not.
const READY: [TaskPhase; 4] = [TaskPhase::Running, TaskPhase::Awaiting, TaskPhase::Released, TaskPhase::Finished];

/// How soon a periodic trigger is tried again that met tasks which were still starting.
const RETRY_WHILE_STARTING: Millis = 200;

impl CheckpointCoordinator {
    pub(super) fn on_periodic(&mut self, now: Millis) {
        let Some(interval) = self.options.interval.filter(|_| !self.shut) else { return };
        // Armed before anything can go wrong with this one (R34).
        self.arm(Timer::Periodic, now.saturating_add(millis(interval)));
        let sharing = self.options.sharing;
        self.request(own_checkpoint(Origin::Periodic, sharing));
    }

    /// Puts a wish into the queue.
    pub(super) fn request(&mut self, request: CheckpointRequest) {
        if self.shut {
            self.refuse(&request, "another process takes the job over");
        } else if let Err(request) = self.queue.push(request) {
            self.refuse(&request, "too many requests wait already");
        }
    }

    /// T1: starts the next snapshot if one can start.
    pub(super) fn advance(&mut self, now: Millis) {
        if self.shut || self.numbering.is_some() || self.pending_count() >= self.options.max_concurrent.max(1) {
            return;
        }
        // One is prepared at a time: its release must not open a valve that another one closed. And after a stop
        // savepoint the tasks are on their way out.
        if self.pending.values().any(|pending| pending.stage == Stage::Cutting) || self.stopped_by.is_some() {
            return;
        }
        if self.tasks.need_final_checkpoint() {
            let sharing = self.options.sharing;
            // One that is waiting already is enough; a full queue holds savepoints, which are tried first.
            let _ = self.queue.push(own_checkpoint(Origin::Final, sharing));
        }
        while let Some(request) = self.next_request() {
            if self.may_start(&request, now) {
                self.numbering = Some(request);
                self.commands.push(Command::AllocateId);
                return;
            }
        }
    }

    fn next_request(&mut self) -> Option<CheckpointRequest> {
        if self.has_deletion_backlog() {
            // Dropped, never queued; the timer brings the next one.
            self.queue.take(Origin::Periodic);
            return None;
        }
        if self.tasks.any_in(TaskPhase::Released) {
            // They are about to finish and would not take part to the end. A periodic checkpoint goes ahead of all
            // others: if a notification got lost, it is what frees them (R16).
            return self.queue.take(Origin::Periodic);
        }
        self.queue.pop()
    }

    /// Checkpoints under way; one in doubt waits for the log alone.
    fn pending_count(&self) -> usize {
        self.pending.values().filter(|pending| pending.stage != Stage::InDoubt).count()
    }

    fn has_deletion_backlog(&self) -> bool {
        self.deleting.len() > self.options.max_concurrent.max(1)
    }

    /// Refuses or drops a request that cannot start now.
    fn may_start(&mut self, request: &CheckpointRequest, now: Millis) -> bool {
        if let Some(why) = self.why_not(request) {
            if request.origin == Origin::Periodic {
                self.arm(Timer::Periodic, now.saturating_add(RETRY_WHILE_STARTING));
            }
            self.refuse(request, why);
            return false;
        }
        let earliest = self.last_completion.map(|last| last.saturating_add(millis(self.options.min_pause)));
        if let Some(earliest) = earliest.filter(|earliest| request.origin == Origin::Periodic && now < *earliest) {
            self.arm(Timer::Periodic, earliest);
            return false;
        }
        true
    }

    fn why_not(&self, request: &CheckpointRequest) -> Option<&'static str> {
        if !self.tasks.all_in(&READY) {
            return Some("not all tasks are running");
        }
        if self.tasks.all_in(&[TaskPhase::Finished]) {
            return Some("the job has read all its input");
        }
        // Stopping a task that waits for its final checkpoint would have it wait for two things at once (B25).
        if request.kind.is_stop() && self.tasks.any_in(TaskPhase::Awaiting) {
            return Some("the job is about to finish by itself");
        }
        None
    }

    /// T3, T4: the id came; everything is checked again that may have changed meanwhile (B3).
    pub(super) fn numbered(&mut self, id: CheckpointId, now: Millis) {
        let Some(request) = self.numbering.take() else { return };
        if let Some(why) = self.why_not(&request) {
            self.refuse(&request, why);
            return;
        }
        let pending = self.new_pending(id, request, now);
        let coordinated: Vec<OperatorId> = pending.uncut.iter().copied().collect();
        self.pending.insert(id, pending);
        self.arm(Timer::Timeout(id), now.saturating_add(millis(self.options.timeout)));
        // T6: coordinators before any task, each with its valve closed.
        for operator in &coordinated {
            self.commands.push(Command::HoldEvents { operator: *operator });
            self.commands.push(Command::CutCoordinator { id, operator: *operator });
        }
        if coordinated.is_empty() {
            self.trigger(id);
        }
    }

    pub(super) fn not_numbered(&mut self, error: Error) {
        let Some(request) = self.numbering.take() else { return };
        self.refuse(&request, &error.cause);
        if request.kind == CheckpointKind::Checkpoint && self.failures.failure(None) == Tolerance::Exceeded {
            self.failing(error);
        }
    }

    fn new_pending(&self, id: CheckpointId, request: CheckpointRequest, now: Millis) -> Pending {
        let target = request.target.clone().unwrap_or_else(|| files::checkpoint_folder(id));
        let full = self.must_be_full || request.sharing == Sharing::Full || request.kind.is_savepoint();
        let barrier = Barrier { id, timestamp: now, kind: request.kind, format: request.format, target, full };
        let statistics = CheckpointStatistics {
            id,
            kind: request.kind,
            folder: barrier.target.clone(),
            triggered: now,
            ended: None,
            outcome: CheckpointOutcome::InProgress,
            acknowledged: 0,
            tasks: 0,
            metrics: streamkeeper_protocol::CheckpointMetrics::default(),
            parts: Vec::new(),
        };
        Pending {
            request,
            barrier,
            stage: Stage::Cutting,
            uncut: self.topology.coordinated().collect(),
            coordinators: BTreeMap::new(),
            expected: BTreeMap::new(),
            finished: BTreeSet::new(),
            acks: BTreeMap::new(),
            statistics,
            completion: None,
        }
    }

    pub(super) fn coordinator_cut(&mut self, id: CheckpointId, operator: OperatorId, state: Vec<u8>) {
        let Some(pending) = self.pending.get_mut(&id).filter(|p| p.stage == Stage::Cutting) else { return };
        if pending.uncut.remove(&operator) {
            pending.coordinators.insert(operator, state);
        }
        if pending.uncut.is_empty() {
            self.trigger(id);
        }
    }

    /// T2, T7: triggers the tasks that no running task feeds; barriers reach the others.
    fn trigger(&mut self, id: CheckpointId) {
        let Self { pending, tasks, topology, commands, .. } = self;
        let Some(pending) = pending.get_mut(&id) else { return };
        pending.expected = tasks.unfinished().map(|attempt| (attempt.subtask, attempt)).collect();
        pending.finished = tasks.in_phases(&[TaskPhase::Finished]).map(|attempt| attempt.subtask).collect();
        pending.statistics.tasks = pending.expected.len();
        pending.stage = Stage::Triggered;
        let is_finished = |tasks: &Tasks, subtask| tasks.phase(subtask) == Some(TaskPhase::Finished);
        for attempt in pending.expected.values() {
            if topology.producers(attempt.subtask).all(|producer| is_finished(tasks, producer)) {
                let message = ToTask::TriggerCheckpoint(pending.barrier.clone());
                commands.push(Command::SendToTask { attempt: *attempt, message });
            }
        }
        let held = topology.coordinated();
        commands.extend(held.map(|operator| Command::ReleaseEvents { operator }));
    }

    /// A task finished that had not acknowledged: it will not.
    pub(super) fn abort_without(&mut self, attempt: streamkeeper_types::AttemptId, now: Millis) {
        let waits = |p: &&Pending| {
            let subtask = attempt.subtask;
            p.stage == Stage::Triggered && p.expected.contains_key(&subtask) && !p.acks.contains_key(&subtask)
        };
        let waiting: Vec<CheckpointId> = self.pending.values().filter(waits).map(Pending::id).collect();
        for id in waiting {
            self.abort(id, Reason::NotNow(format!("{attempt} finished")), now);
        }
    }
}

fn own_checkpoint(origin: Origin, sharing: Sharing) -> CheckpointRequest {
    CheckpointRequest {
        request: None,
        origin,
        kind: CheckpointKind::Checkpoint,
        format: SnapshotFormat::Native,
        target: None,
        sharing,
    }
}
