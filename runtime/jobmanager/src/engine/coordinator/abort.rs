//! Ways out of a checkpoint that does not complete (A1, A2).

use streamkeeper_checkpoint::files;
use streamkeeper_protocol::{CheckpointKind, ToTask};
use streamkeeper_types::{CheckpointId, Code, Error, Millis};

use super::{
    CheckpointCoordinator,
    failures::Tolerance,
    pending::{Pending, Stage},
};
use crate::engine::{CheckpointOutcome, CheckpointStatistics, Command, Timer};

/// Aborted ids that are remembered, for late acknowledgements. A task is at most a few checkpoints late.
const REMEMBERED_ABORTS: usize = 1_000;

/// Why a checkpoint does not complete.
#[derive(Debug, Clone)]
pub(super) enum Reason {
    Timeout,
    Failed(Error),
    /// Its manifest may or may not be written.
    Unknown(Error),
    /// The tasks end; that is a failure of the job already.
    TasksStopped(Error),
    /// Nothing is wrong; the next one will do.
    NotNow(String),
}

impl Reason {
    /// Whether it counts against `tolerable-failures`.
    fn counts(&self) -> bool {
        matches!(self, Self::Timeout | Self::Failed(_) | Self::Unknown(_))
    }

    fn into_error(self, id: CheckpointId) -> Error {
        match self {
            Self::Timeout => Error::new(Code::SavepointFailed, format!("checkpoint {id} took longer than its timeout"))
                .way_out("see which task acknowledges late; it is slow, blocked or under back-pressure"),
            Self::NotNow(why) => Error::new(Code::SavepointFailed, format!("checkpoint {id}: {why}")),
            Self::Failed(error) | Self::Unknown(error) | Self::TasksStopped(error) => {
                error.at(format!("checkpoint {id}"))
            }
        }
    }
}

impl CheckpointCoordinator {
    /// Ids that may still be aborted.
    pub(super) fn abortable(&self) -> Vec<CheckpointId> {
        self.pending.values().filter(|pending| pending.is_abortable()).map(Pending::id).collect()
    }

    /// Aborts a checkpoint, unless only the store decides about it by now.
    pub(super) fn abort(&mut self, id: CheckpointId, reason: Reason, now: Millis) {
        if !self.pending.get(&id).is_some_and(Pending::is_abortable) {
            return;
        }
        let Some(pending) = self.pending.remove(&id) else { return };
        self.commands.push(Command::CancelTimer { timer: Timer::Timeout(id) });
        if pending.stage == Stage::Cutting {
            let held: Vec<_> = self.topology.coordinated().collect();
            self.commands.extend(held.into_iter().map(|operator| Command::ReleaseEvents { operator }));
        }
        let files = pending.private_files();
        self.end(&pending, files, reason, now);
    }

    /// Ends a checkpoint whose manifest or record surely is not there; after an unknown write its files stay (R24).
    pub(super) fn abort_stored(&mut self, id: CheckpointId, reason: Reason, now: Millis) {
        let Some(pending) = self.pending.remove(&id) else { return };
        let mut files = Vec::new();
        if !matches!(reason, Reason::Unknown(_)) {
            files = pending.private_files();
            // Before its manifest was written, one that lies there is another snapshot's.
            if pending.stage == Stage::Publishing {
                files.push(files::manifest_path(&pending.barrier.target));
            }
        }
        self.end(&pending, files, reason, now);
    }

    fn end(&mut self, pending: &Pending, files: Vec<String>, reason: Reason, now: Millis) {
        let id = pending.id();
        // Files of a write with an unknown outcome stay, late ones too.
        if !matches!(reason, Reason::Unknown(_)) {
            self.aborted.insert(id);
        }
        while self.aborted.len() > REMEMBERED_ABORTS {
            self.aborted.pop_first();
        }
        if !files.is_empty() {
            self.commands.push(Command::Delete { discard: None, files });
        }
        if pending.stage != Stage::Cutting {
            self.notify_aborted(pending);
        }
        let (counts, is_restart) = (reason.counts(), matches!(reason, Reason::TasksStopped(_)));
        let error = reason.into_error(id);
        self.record(pending.statistics.clone(), CheckpointOutcome::Failed(error.clone()), now);
        if let Some(request) = pending.request.request {
            self.commands.push(Command::Answer { request, result: Err(error.clone()) });
        }
        if counts {
            self.count_failure(id, pending.kind(), &error);
        }
        // Some tasks have stopped at the cut and wait: only a restart frees them (R35, B9).
        if pending.kind().is_stop() && pending.stage != Stage::Cutting && !is_restart {
            self.failure = Some(error);
        }
    }

    /// A2.
    fn notify_aborted(&mut self, pending: &Pending) {
        let (id, latest_completed) = (pending.id(), self.latest_completed());
        for attempt in pending.expected.values().filter(|attempt| self.tasks.is_current(**attempt)) {
            let message = ToTask::NotifyAborted { id, latest_completed };
            self.commands.push(Command::SendToTask { attempt: *attempt, message });
        }
    }

    /// Only checkpoints count; a savepoint's failure is the asker's to judge.
    pub(super) fn count_failure(&mut self, id: CheckpointId, kind: CheckpointKind, error: &Error) {
        if kind == CheckpointKind::Checkpoint && self.failures.failure(Some(id)) == Tolerance::Exceeded {
            self.failing(error.clone());
        }
    }

    /// More failures than tolerated.
    pub(super) fn failing(&mut self, last: Error) {
        let cause = format!(
            "more than {} checkpoints failed in a row; the last one: {}",
            self.options.tolerable_failures, last.cause
        );
        // A full disk stays one: it is no failure that a restart may mend.
        let code = if last.code == Code::DiskFull { Code::DiskFull } else { Code::CheckpointsFailing };
        let error = Error::new(code, cause);
        self.failure = Some(match last.way_out {
            Some(way_out) => error.way_out(way_out),
            None => error,
        });
    }

    pub(super) fn record(&mut self, mut statistics: CheckpointStatistics, outcome: CheckpointOutcome, now: Millis) {
        statistics.ended = Some(now);
        statistics.outcome = outcome;
        self.history.record(&statistics);
        self.commands.push(Command::RecordStatistics(Box::new(statistics)));
    }
}
