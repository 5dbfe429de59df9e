//! The leader's use of the log, with the promises checked where they are made.

use streamkeeper_checkpoint::log::{AppendError, Completion, Record};
use streamkeeper_jobmanager::engine::{Event, Stored};

use super::leader::Leader;
use crate::{Omission, cluster_world::environment::Environment, invariants::named_files_exist};

impl Leader {
    /// Completes an append whose outcome was unknown, and tells the engine.
    pub(super) fn settle(&mut self) -> Result<(), AppendError> {
        let known = match self.log.settle()? {
            Some(Record::Completed(done)) => Event::Published { id: done.checkpoint.id, outcome: Stored::Done },
            Some(Record::Result(_)) => Event::ResultPublished { outcome: Stored::Done },
            _ => return Ok(()),
        };
        self.answers.push_back(known);
        Ok(())
    }

    fn append(&mut self, record: &Record) -> Result<(), AppendError> {
        self.settle()?;
        self.log.append(record)
    }

    pub(super) fn allocate_id(&mut self, environment: &mut Environment) -> Event {
        match self.settle().and_then(|()| self.log.allocate_id()) {
            Ok(id) => {
                let fresh = environment.shared.ids.allocated(self.log.generation(), id);
                environment.shared.check(fresh);
                Event::IdAllocated(id)
            }
            Err(AppendError::Fenced { .. }) => Event::LeadershipLost,
            Err(AppendError::InDoubt(error) | AppendError::Failed(error)) => Event::IdFailed(error),
        }
    }

    pub(super) fn publish(&mut self, completion: Completion, environment: &mut Environment) -> Event {
        let id = completion.checkpoint.id;
        let is_fencing_omitted = environment.shared.omission == Omission::Fencing;
        match self.append(&Record::Completed(completion)) {
            Ok(()) => {
                self.is_visible(id, environment);
                // What could not be collected is collected next time.
                let _ = self.log.collect();
                Event::Published { id, outcome: Stored::Done }
            }
            Err(AppendError::Fenced { .. }) if is_fencing_omitted => {
                let alone = environment.shared.reigns.published(self.log.generation());
                environment.shared.check(alone);
                Event::Published { id, outcome: Stored::Done }
            }
            Err(error) => append_failed(error, |outcome| Event::Published { id, outcome }),
        }
    }

    pub(super) fn publish_result(&mut self, record: &Record) -> Event {
        match self.append(record) {
            Ok(()) => Event::ResultPublished { outcome: Stored::Done },
            Err(error) => append_failed(error, |outcome| Event::ResultPublished { outcome }),
        }
    }

    fn is_visible(&self, id: streamkeeper_types::CheckpointId, environment: &mut Environment) {
        let generation = self.log.generation();
        environment.note(|| format!("checkpoint {id} is published by generation {generation}"));
        let shared = &mut environment.shared;
        let grows = shared.ids.published(generation, id);
        shared.check(grows);
        let alone = shared.reigns.published(generation);
        shared.check(alone);
        let whole = named_files_exist(&shared.storage, self.log.state());
        shared.check(whole);
        environment.fenced.stands_on(generation, &shared.storage, self.log.state());
    }
}

fn append_failed(error: AppendError, event: impl FnOnce(Stored) -> Event) -> Event {
    match error {
        AppendError::Fenced { .. } => Event::LeadershipLost,
        AppendError::InDoubt(error) => event(Stored::Unknown(error)),
        AppendError::Failed(error) => event(Stored::Failed(error)),
    }
}
