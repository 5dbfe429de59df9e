//! What travels between processes.

use std::collections::BTreeMap;

use streamkeeper_checkpoint::restore::SubtaskRestore;
use streamkeeper_protocol::{FromTask, ToTask};
use streamkeeper_types::{AttemptId, Generation, SubtaskId};

use super::ProcessId;
use crate::tasks::Element;

/// One message.
#[derive(Debug, Clone)]
pub(super) enum Wire {
    /// A TaskManager's first word to a JobManager.
    Register {
        slots: u32,
    },
    /// A standby's first word to the leader.
    Watch,
    Welcome,
    Alive,
    Deploy(Box<Part>),
    Command(AttemptId, ToTask),
    Report(FromTask),
    /// Between TaskManagers.
    Frame(Frame),
}

/// An element of a channel that leads from one TaskManager to another.
#[derive(Debug, Clone)]
pub(super) struct Frame {
    pub(super) from: AttemptId,
    pub(super) to: AttemptId,
    pub(super) element: Element,
}

/// One TaskManager's part of a deployment.
#[derive(Debug, Clone)]
pub(super) struct Part {
    pub(super) run: RunId,
    pub(super) sources: u32,
    pub(super) counters: u32,
    pub(super) tasks: Vec<(AttemptId, SubtaskRestore)>,
    /// Where every subtask runs.
    pub(super) hosts: BTreeMap<SubtaskId, ProcessId>,
}

/// Names a deployment; a later one is greater.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(super) struct RunId {
    pub(super) generation: Generation,
    pub(super) number: u32,
}

impl RunId {
    pub(super) fn of(attempt: AttemptId) -> Self {
        Self { generation: attempt.generation, number: attempt.number }
    }

    pub(super) fn attempt(self, subtask: SubtaskId) -> AttemptId {
        AttemptId { generation: self.generation, subtask, number: self.number }
    }
}
