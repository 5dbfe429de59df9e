//! The way of reports to whoever leads at the moment.

use std::sync::Arc;

use parking_lot::Mutex;
use streamkeeper_protocol::{
    FromTask,
    control::{FromTaskManager, encode, from_task_manager as from},
};
use tokio::sync::mpsc;

pub(super) type Outbox = mpsc::Sender<FromTaskManager>;

/// Cheap to clone. Without a JobManager nobody is interested.
#[derive(Clone, Default)]
pub(super) struct Reports(Arc<Mutex<Option<Outbox>>>);

impl Reports {
    pub(super) fn begin(&self, outbox: Outbox) {
        *self.0.lock() = Some(outbox);
    }

    pub(super) fn end(&self) {
        *self.0.lock() = None;
    }

    /// Never waits: tasks are not held up. A queue that is full ends the session, and with it the attempt.
    pub(super) fn send(&self, report: &FromTask) {
        let Some(outbox) = self.0.lock().clone() else { return };
        let sent = encode(report)
            .map(|body| outbox.try_send(FromTaskManager { message: Some(from::Message::Report(body.into())) }));
        if !matches!(sent, Ok(Ok(()))) {
            tracing::debug!(attempt = %report.attempt, "a report is lost");
        }
    }
}
