//! The way of reports to whoever leads at the moment.

use std::sync::Arc;

use parking_lot::Mutex;
use streamkeeper_protocol::{
    FromTask,
    control::{FromTaskManager, encode, from_task_manager as from},
};
use tokio::sync::mpsc;

use super::figures::Figures;

pub(super) type Outbox = mpsc::Sender<FromTaskManager>;

/// Cheap to clone. Without a JobManager nobody is interested.
#[derive(Clone, Default)]
pub(super) struct Reports {
    outbox: Arc<Mutex<Option<Outbox>>>,
    figures: Figures,
}

impl Reports {
    pub(super) fn begin(&self, outbox: Outbox) {
        *self.outbox.lock() = Some(outbox);
    }

    pub(super) fn end(&self) {
        *self.outbox.lock() = None;
        self.figures.end();
    }

    /// What the tasks told, for this process's own metrics.
    pub(super) fn figures(&self) -> &Figures {
        &self.figures
    }

    /// Never waits: tasks are not held up. A queue that is full ends the session, and with it the attempt.
    pub(super) fn send(&self, report: &FromTask) {
        self.figures.on(report);
        let Some(outbox) = self.outbox.lock().clone() else { return };
        let sent = encode(report)
            .map(|body| outbox.try_send(FromTaskManager { message: Some(from::Message::Report(body.into())) }));
        if !matches!(sent, Ok(Ok(()))) {
            tracing::debug!(attempt = %report.attempt, "a report is lost");
        }
    }
}
