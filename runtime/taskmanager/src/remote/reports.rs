//! The way of reports to whoever leads at the moment.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

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
pub(super) struct Reports(Arc<Shared>);

#[derive(Default)]
struct Shared {
    outbox: Mutex<Option<Outbox>>,
    broken: AtomicBool,
    figures: Figures,
}

impl Reports {
    pub(super) fn begin(&self, outbox: Outbox) {
        self.0.broken.store(false, Ordering::SeqCst);
        *self.0.outbox.lock() = Some(outbox);
    }

    pub(super) fn end(&self) {
        *self.0.outbox.lock() = None;
        self.0.figures.end();
    }

    /// What the tasks told, for this process's own metrics.
    pub(super) fn figures(&self) -> &Figures {
        &self.0.figures
    }

    /// Never waits: tasks are not held up. One that cannot be sent breaks the session, since the JobManager would wait for
    /// it for ever.
    pub(super) fn send(&self, report: &FromTask) {
        let Some(outbox) = self.0.outbox.lock().clone() else { return };
        self.0.figures.on(report);
        let sent = encode(report)
            .map(|body| outbox.try_send(FromTaskManager { message: Some(from::Message::Report(body.into())) }));
        if !matches!(sent, Ok(Ok(()))) {
            tracing::debug!(attempt = %report.attempt, "a report is lost");
            self.0.broken.store(true, Ordering::SeqCst);
        }
    }

    /// Whether a report was lost.
    pub(super) fn is_broken(&self) -> bool {
        self.0.broken.load(Ordering::SeqCst)
    }
}
