//! Deals splits out to readers, with a valve that is closed at the cut (R29, R30).

use streamkeeper_protocol::{CoordinatorEvent, ToTask};
use streamkeeper_types::AttemptId;

use super::{SPLITS, graph::SOURCE};

/// State: splits that nobody has. Readers keep the splits that they got in their own snapshots.
#[derive(Debug)]
pub(crate) struct SplitCoordinator {
    unassigned: Vec<u32>,
    held: Option<Vec<(AttemptId, ToTask)>>,
}

impl SplitCoordinator {
    pub(crate) fn fresh() -> Self {
        Self { unassigned: (0..SPLITS).collect(), held: None }
    }

    pub(crate) fn restore(bytes: &[u8]) -> Self {
        Self { unassigned: serde_json::from_slice(bytes).expect("written by snapshot"), held: None }
    }

    pub(crate) fn snapshot(&self) -> Vec<u8> {
        serde_json::to_vec(&self.unassigned).expect("numbers are JSON")
    }

    pub(crate) fn hold(&mut self) {
        self.held.get_or_insert_default();
    }

    pub(crate) fn release(&mut self) -> Vec<(AttemptId, ToTask)> {
        self.held.take().unwrap_or_default()
    }

    /// A reader has nothing to read. The answer may be held back.
    pub(crate) fn on_request(&mut self, reader: AttemptId) -> Option<(AttemptId, ToTask)> {
        let split = self.unassigned.pop();
        let payload = serde_json::to_vec(&split).expect("a number is JSON");
        let event = (reader, ToTask::Coordinator(CoordinatorEvent { operator: SOURCE, payload }));
        match &mut self.held {
            Some(held) => {
                held.push(event);
                None
            }
            None => Some(event),
        }
    }
}
