//! The manager's use of the log, with the promises checked where they are made.

use streamkeeper_checkpoint::{
    JobResult,
    log::{AppendError, Completion, Record},
};
use streamkeeper_jobmanager::engine::{Event, Stored};
use streamkeeper_storage::Storage;
use streamkeeper_types::Error;

use super::Manager;
use crate::{Omission, invariants::named_files_exist, shared::Shared};

impl Manager {
    /// Learns what became of an append in doubt, and tells the engine.
    pub(super) fn settle(&mut self, shared: &mut Shared) -> Result<(), Error> {
        let settled = self.log.settle();
        let record = settled.map_err(|error| self.failed(error, shared))?;
        if let Some(Record::Completed(completion)) = record {
            self.is_visible(&completion, shared);
            let id = completion.checkpoint.id;
            self.inbox.push((0, Event::Published { id, outcome: Stored::Done }));
        }
        Ok(())
    }

    /// The error as the engine sees it; a fenced process is told that it leads no more.
    fn failed(&mut self, error: AppendError, shared: &mut Shared) -> Error {
        if matches!(error, AppendError::Fenced { .. }) {
            self.inbox.push((shared.now, Event::LeadershipLost));
        }
        error.into()
    }

    /// Learns whether another process has taken over.
    pub(super) fn check_reign(&mut self, shared: &mut Shared) {
        if let Err(error) = self.log.check_reign() {
            self.failed(error, shared);
        }
    }

    pub(super) fn allocate_id(&mut self, shared: &mut Shared) {
        let allocated = self.settle(shared).and_then(|()| self.log.allocate_id().map_err(|e| self.failed(e, shared)));
        match allocated {
            Ok(id) => {
                let fresh = shared.ids.allocated(self.log.generation(), id);
                shared.check(fresh);
                self.answer_later(Event::IdAllocated(id), shared);
            }
            Err(error) => self.answer_later(Event::IdFailed(error), shared),
        }
    }

    pub(super) fn publish(&mut self, completion: Completion, shared: &mut Shared) {
        if shared.omission == Omission::PublishBeforeDelete {
            self.delete_replaced(&completion);
        }
        let id = completion.checkpoint.id;
        let outcome = match self.settle(shared) {
            Ok(()) => self.append(&Record::Completed(completion.clone()), shared),
            // Ours was not even tried.
            Err(error) => Stored::Failed(error),
        };
        if outcome == Stored::Done {
            self.is_visible(&completion, shared);
            if shared.omission == Omission::SavepointsCommitNothing && !completion.checkpoint.kind.is_recovery_point() {
                self.notify_all(id, shared);
            }
        }
        self.answer_later(Event::Published { id, outcome }, shared);
        // What could not be collected is collected next time.
        let _ = self.log.collect();
    }

    fn append(&mut self, record: &Record, shared: &mut Shared) -> Stored {
        match self.log.append(record) {
            Ok(()) => Stored::Done,
            Err(AppendError::Fenced { .. }) if shared.omission == Omission::Fencing => Stored::Done,
            Err(AppendError::InDoubt(error)) => Stored::Unknown(error),
            Err(error) => Stored::Failed(self.failed(error, shared)),
        }
    }

    pub(super) fn publish_result(&mut self, result: JobResult, shared: &mut Shared) {
        let outcome = match self.settle(shared) {
            Ok(()) => self.append(&Record::Result(result), shared),
            Err(error) => Stored::Failed(error),
        };
        self.answer_later(Event::ResultPublished { outcome }, shared);
    }

    fn is_visible(&mut self, completion: &Completion, shared: &mut Shared) {
        let generation = self.log.generation();
        let grows = shared.ids.published(generation, completion.checkpoint.id);
        shared.check(grows);
        let alone = shared.reigns.published(generation);
        shared.check(alone);
        let whole = named_files_exist(&shared.storage, self.log.state());
        shared.check(whole);
    }

    fn delete_replaced(&mut self, completion: &Completion) {
        let replaced = self.log.state().completed.iter().filter(|c| completion.subsumes.contains(&c.id));
        for checkpoint in replaced {
            // Whether it works does not matter to what this is to show.
            let _ = self.storage.delete(&checkpoint.manifest);
        }
    }
}
