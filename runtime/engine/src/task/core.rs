//! What source tasks and tasks with inputs have in common: commands, time, metrics, timers, the chain.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use crossbeam_channel::{Receiver, RecvTimeoutError};
use streamkeeper_network::Interrupt;
use streamkeeper_protocol::{SubtaskMetrics, ToTask};
use streamkeeper_types::{Error, Result, Watermark};

use super::{
    chain::Chain, reporter::Reporter, run::TaskEnd, snapshots::Snapshots, source_head::SourceHead, time::TimeSheet,
};
use crate::Clock;

/// A task whose receiver is gone waits this long for the cancellation that must follow.
const CANCEL_FOLLOWS: Duration = Duration::from_secs(30);

pub(super) struct Core {
    pub chain: Chain,
    pub snapshots: Snapshots,
    pub reporter: Reporter,
    pub clock: Arc<dyn Clock>,
    pub commands: Receiver<ToTask>,
    pub interrupt: Interrupt,
    pub time: TimeSheet,
    pub counters: Counters,
}

/// What came in, and how far event time is.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Counters {
    pub records_in: u64,
    pub bytes_in: u64,
    pub watermark: Option<Watermark>,
}

impl Core {
    pub(super) fn is_cancelled(&self) -> bool {
        self.interrupt.is_set()
    }

    /// Fires the timers that are due.
    pub(super) fn fire_timers(&mut self) -> Result<()> {
        let Some(due) = self.chain.next_timer() else { return Ok(()) };
        let now = self.clock.now();
        if due <= now { self.chain.fire_timers(now) } else { Ok(()) }
    }

    /// Work between two batches: the state's own upkeep, and metrics.
    pub(super) fn between_batches(&mut self, source: Option<&SourceHead>) -> Result<()> {
        self.chain.maintain_state(self.clock.now())?;
        let now = Instant::now();
        if self.time.take_due(now) {
            self.report_metrics(now, source);
        }
        Ok(())
    }

    /// How long the task may wait for input: until a timer or a report is due.
    pub(super) fn longest_wait(&self) -> Duration {
        let report = self.time.until_due(Instant::now());
        let Some(due) = self.chain.next_timer() else { return report };
        let timer = u64::try_from(due.saturating_sub(self.clock.now())).unwrap_or(0);
        report.min(Duration::from_millis(timer))
    }

    pub(super) fn report_metrics(&self, now: Instant, source: Option<&SourceHead>) {
        let out = self.chain.router.totals();
        let mut metrics = SubtaskMetrics {
            records_in: self.counters.records_in,
            records_out: out.records,
            bytes_in: self.counters.bytes_in,
            bytes_out: out.bytes,
            time: self.time.total(out.waited, now),
            watermark: self.counters.watermark.map(|w| w.0),
            state_bytes: self.chain.state_bytes(),
            ..SubtaskMetrics::default()
        };
        for link in &self.chain.links {
            metrics.late_records += link.context.metrics.late();
            metrics.bad_records += link.context.metrics.bad();
        }
        if let Some(source) = source {
            source.fill_metrics(&mut metrics);
        }
        self.reporter.metrics(metrics);
    }

    /// The next command, waiting for one up to `timeout`; the wait counts as idle.
    pub(super) fn wait_for_command(&mut self, timeout: Duration) -> Option<ToTask> {
        let start = Instant::now();
        let command = match self.commands.recv_timeout(timeout) {
            Ok(command) => Some(command),
            Err(RecvTimeoutError::Timeout) => None,
            // Nobody steers this task any more.
            Err(RecvTimeoutError::Disconnected) => Some(ToTask::Cancel),
        };
        self.time.add_idle(start.elapsed());
        command
    }

    /// What an error of the task loop means: a task behind may have failed first, and this one is then cancelled.
    pub(super) fn end_of_error(&mut self, error: Error) -> Result<TaskEnd> {
        if self.is_cancelled() {
            return Ok(TaskEnd::Cancelled);
        }
        if !self.chain.router.receiver_gone() {
            return Err(error);
        }
        let deadline = Instant::now() + CANCEL_FOLLOWS;
        loop {
            match self.commands.recv_deadline(deadline) {
                Ok(ToTask::Cancel) | Err(RecvTimeoutError::Disconnected) => return Ok(TaskEnd::Cancelled),
                Ok(_) => {}
                Err(RecvTimeoutError::Timeout) => return Err(error),
            }
        }
    }
}
