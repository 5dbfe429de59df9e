//! Ends the tasks whose channels to other TaskManagers broke.
//!
//! A task that waits for something else would notice late, or never. It is cancelled, and its end, once its thread is
//! done, is reported as the failure that it is: nobody starts a successor beside it.

use std::{
    collections::HashMap,
    sync::{Arc, Weak},
};

use parking_lot::Mutex;
use streamkeeper_network::tcp::{ChannelEnd, ChannelFailure};
use streamkeeper_protocol::{FromTask, TaskReport, TaskState, ToTask};
use streamkeeper_types::{AttemptId, Error};

use crate::TaskManager;

/// Cheap to clone.
#[derive(Clone, Default)]
pub(super) struct BrokenChannels(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    manager: Weak<TaskManager>,
    /// Why tasks were cancelled here that have not ended yet.
    causes: HashMap<AttemptId, Error>,
}

impl BrokenChannels {
    /// From now on `manager` runs the tasks.
    pub(super) fn begin(&self, manager: &Arc<TaskManager>) {
        *self.0.lock() = State { manager: Arc::downgrade(manager), causes: HashMap::new() };
    }

    pub(super) fn on_failure(&self, failure: ChannelFailure) {
        let ChannelFailure { channel, end, error, .. } = failure;
        let attempt = match end {
            ChannelEnd::Producer => channel.producer,
            ChannelEnd::Consumer => channel.consumer,
        };
        let manager = {
            let mut state = self.0.lock();
            // The first is the cause, the others follow from it.
            state.causes.entry(attempt).or_insert(error);
            state.manager.upgrade()
        };
        let cancelled = manager.is_some_and(|manager| manager.send(attempt, ToTask::Cancel).is_ok());
        if !cancelled {
            self.0.lock().causes.remove(&attempt);
        }
    }

    /// The report, with the true reason of the task's end.
    pub(super) fn explain(&self, report: FromTask) -> FromTask {
        let FromTask { attempt, report } = report;
        let TaskReport::State(state) = report else { return FromTask { attempt, report } };
        let cause = if state.is_terminal() { self.0.lock().causes.remove(&attempt) } else { None };
        let state = match (state, cause) {
            (TaskState::Cancelled, Some(cause)) => TaskState::Failed(cause),
            (state, _) => state,
        };
        FromTask { attempt, report: TaskReport::State(state) }
    }
}
