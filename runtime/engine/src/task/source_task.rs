//! The loop of a source task: it reads, and runs the cut from its mailbox between two batches (S1).

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use streamkeeper_network::Element;
use streamkeeper_protocol::{Barrier, CheckpointKind, TaskState, ToTask};
use streamkeeper_types::{CheckpointId, Error, Result, Watermark};

use super::{
    aborted::AbortedIds,
    alignment::Aligned,
    chain::Chain,
    core::Core,
    rate_limit::RateLimit,
    run::TaskEnd,
    snapshots::InputEnd,
    source_head::SourceHead,
    source_watermarks::{Piece, SourceWatermarks},
};
use crate::{Polled, ToCoordinator, ToReader};

/// A reader without splits asks again after this time: a request may have found nothing.
const ASK_AGAIN: Duration = Duration::from_secs(1);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Reading,
    /// A stop savepoint was cut: no record follows its barrier (R37).
    Stopped(CheckpointId),
    /// The data ended; one more completed checkpoint, then this task ends (F1).
    AwaitingFinalCheckpoint,
    Done,
}

/// What the reader knows of splits to come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Splits {
    /// Asked at this time, if at all.
    MayFollow(Option<Instant>),
    NoMore,
}

pub(super) struct SourceTask {
    core: Core,
    head: SourceHead,
    rate_limit: Option<RateLimit>,
    idle_wait: Duration,
    finished_on_restore: bool,
    /// The coordinator has said what holds the watermark. Before that nothing is read, restored splits neither.
    greeted: bool,
    /// The tasks behind were told where this source stands in time; no record leaves before.
    spoken: bool,
    splits: Splits,
    stage: Stage,
    /// Highest checkpoint that was cut or cancelled here.
    last: CheckpointId,
    aborted: AbortedIds,
}

/// What the loop starts with besides the chain.
pub(super) struct SourceSetup {
    pub head: SourceHead,
    pub rate_limit: Option<RateLimit>,
    pub idle_wait: Duration,
    /// The source had finished before the restore: it only passes on the end (F3).
    pub finished_on_restore: bool,
}

impl SourceTask {
    pub(super) fn new(core: Core, setup: SourceSetup) -> Self {
        Self {
            core,
            head: setup.head,
            rate_limit: setup.rate_limit,
            idle_wait: setup.idle_wait,
            finished_on_restore: setup.finished_on_restore,
            greeted: false,
            spoken: false,
            splits: Splits::MayFollow(None),
            stage: Stage::Reading,
            last: CheckpointId(0),
            aborted: AbortedIds::default(),
        }
    }

    pub(super) fn run(mut self) -> Result<TaskEnd> {
        match self.run_loop() {
            Ok(end) => {
                self.core.report_metrics(Instant::now(), Some(&self.head));
                Ok(end)
            }
            Err(error) => self.core.end_of_error(error),
        }
    }

    fn run_loop(&mut self) -> Result<TaskEnd> {
        if self.head.watermarks.is_none() {
            self.speak()?;
        }
        loop {
            while let Ok(command) = self.core.commands.try_recv() {
                self.on_command(command)?;
            }
            if self.core.is_cancelled() {
                return Ok(TaskEnd::Cancelled);
            }
            if let Some(report) = self.head.report() {
                self.core.reporter.to_coordinator(self.head.operator(), &ToCoordinator::Report(report));
            }
            match self.stage {
                Stage::Reading => {
                    self.read()?;
                    if self.spoken {
                        self.core.fire_timers()?;
                    }
                }
                // Timers rest: no record may follow the barrier or the end of data.
                Stage::Stopped(_) | Stage::AwaitingFinalCheckpoint => {
                    self.wait(self.core.time.until_due(Instant::now()))?;
                }
                Stage::Done => {
                    self.core.chain.router.broadcast(&Element::EndOfPartition)?;
                    return Ok(TaskEnd::Finished);
                }
            }
            self.core.between_batches(Some(&self.head))?;
        }
    }

    fn read(&mut self) -> Result<()> {
        if self.finished_on_restore {
            return self.end_data();
        }
        let now = Instant::now();
        if !self.greeted {
            return self.wait(self.core.time.until_due(now));
        }
        let pause = self.rate_limit.as_ref().map_or(Duration::ZERO, |limit| limit.wait(now));
        if !pause.is_zero() {
            // Rows are there, so this is no idleness of a split (B70).
            self.emit_due(now)?;
            return self.wait(self.longest_pause(pause));
        }
        match self.head.poll()? {
            Polled::Batch { batch, split } => {
                let rows = batch.num_rows();
                self.core.counters.records_in += rows as u64;
                if let Some(limit) = &mut self.rate_limit {
                    limit.on_rows(rows, now);
                }
                if rows > 0 {
                    self.speak()?;
                    self.emit_batch(batch, &split)?;
                }
                self.emit_due(Instant::now())
            }
            Polled::SplitFinished(split) => {
                if let Some(watermarks) = &mut self.head.watermarks {
                    watermarks.finish_split(&split);
                }
                Ok(())
            }
            Polled::Wait(time) => {
                self.emit_due(now)?;
                self.wait_for_input(time.min(self.idle_wait), now)
            }
            Polled::NeedSplits => self.need_splits(now),
        }
    }

    fn need_splits(&mut self, now: Instant) -> Result<()> {
        match self.splits {
            Splits::NoMore => self.end_data(),
            Splits::MayFollow(asked) => {
                if asked.is_none_or(|at| now - at >= ASK_AGAIN) {
                    self.core.reporter.to_coordinator(self.head.operator(), &ToCoordinator::RequestSplits);
                    self.splits = Splits::MayFollow(Some(now));
                }
                self.emit_due(now)?;
                self.wait_for_input(ASK_AGAIN, now)
            }
        }
    }

    /// Nothing comes right now, though everything could be read.
    fn wait_for_input(&mut self, time: Duration, since: Instant) -> Result<()> {
        self.wait(self.longest_pause(time))?;
        if let Some(watermarks) = &mut self.head.watermarks {
            watermarks.on_quiet(since.elapsed());
        }
        Ok(())
    }

    /// A pause that no timer, report or watermark overruns.
    fn longest_pause(&self, wanted: Duration) -> Duration {
        if !self.spoken {
            return wanted.min(self.core.time.until_due(Instant::now()));
        }
        let watermark = self.head.watermarks.as_ref().and_then(SourceWatermarks::wait).unwrap_or(Duration::MAX);
        wanted.min(self.core.longest_wait()).min(watermark)
    }

    fn wait(&mut self, time: Duration) -> Result<()> {
        let command = self.core.wait_for_command(time);
        command.map_or(Ok(()), |command| self.on_command(command))
    }

    fn emit_batch(&mut self, batch: arrow::array::RecordBatch, split: &Arc<str>) -> Result<()> {
        let Some(watermarks) = &mut self.head.watermarks else { return self.core.chain.process(0, batch) };
        let chain = &mut self.core.chain;
        watermarks.on_batch(batch, split, &mut |piece| emit(chain, piece))?;
        self.core.counters.watermark = watermarks.emitted();
        Ok(())
    }

    /// Says once where this source stands, as soon as that is known: idle without a split to come, else active. The
    /// gates behind wait for it, so that no row of another reader is judged before.
    fn speak(&mut self) -> Result<()> {
        if std::mem::replace(&mut self.spoken, true) {
            return Ok(());
        }
        let idle = self.head.watermarks.as_mut().is_some_and(SourceWatermarks::begins_idle);
        let first = if idle { Element::Idle } else { Element::Watermark(Watermark::MIN) };
        self.core.chain.router.broadcast(&first)
    }

    fn emit_due(&mut self, now: Instant) -> Result<()> {
        if !self.spoken {
            return Ok(());
        }
        self.emit_watermark(|watermarks| watermarks.due(now))
    }

    fn emit_watermark(&mut self, next: impl FnOnce(&mut SourceWatermarks) -> Option<Piece>) -> Result<()> {
        let Some(watermarks) = &mut self.head.watermarks else { return Ok(()) };
        let Some(piece) = next(watermarks) else { return Ok(()) };
        self.core.counters.watermark = watermarks.emitted();
        emit(&mut self.core.chain, piece)
    }

    fn end_data(&mut self) -> Result<()> {
        self.speak()?;
        self.core.chain.finish()?;
        self.core.counters.watermark = Some(Watermark::MAX);
        self.stage = Stage::AwaitingFinalCheckpoint;
        self.core.reporter.state(TaskState::AwaitingFinalCheckpoint);
        Ok(())
    }

    fn on_command(&mut self, command: ToTask) -> Result<()> {
        match command {
            ToTask::TriggerCheckpoint(barrier) => self.on_trigger(barrier),
            ToTask::NotifyComplete { id, .. } => self.on_complete(id),
            ToTask::NotifyAborted { id, .. } => self.on_aborted(id),
            ToTask::Coordinator(event) => self.on_event(&event.payload),
            ToTask::Cancel => {
                self.core.interrupt.set();
                Ok(())
            }
        }
    }

    fn on_trigger(&mut self, barrier: Barrier) -> Result<()> {
        let id = barrier.id;
        if id <= self.last {
            return Ok(());
        }
        self.last = id;
        if self.aborted.contains(id) {
            return self.core.chain.router.broadcast(&Element::CancelBarrier(id));
        }
        let kind = barrier.kind;
        if kind == (CheckpointKind::StopSavepoint { drain: true }) && self.stage == Stage::Reading {
            self.end_data()?;
        }
        if self.stage == Stage::Reading {
            // Even without a split: the coordinator's cut says the same of the splits that nobody has.
            self.speak()?;
            let now = Instant::now();
            self.emit_watermark(|watermarks| watermarks.at_barrier(now))?;
        }
        let end = if self.stage == Stage::AwaitingFinalCheckpoint { InputEnd::Reached } else { InputEnd::Open };
        let aligned = Aligned { barrier, started: Instant::now() };
        self.core.snapshots.take(aligned, &mut self.core.chain, Some(&mut self.head), end, self.core.clock.as_ref())?;
        if kind.is_stop() && self.stage == Stage::Reading {
            self.stage = Stage::Stopped(id);
        }
        Ok(())
    }

    fn on_complete(&mut self, id: CheckpointId) -> Result<()> {
        self.core.snapshots.on_complete(id, &mut self.core.chain, Some(&mut self.head))?;
        let done = match self.stage {
            Stage::Stopped(stop) => id >= stop,
            Stage::AwaitingFinalCheckpoint => self.core.snapshots.final_completed(),
            Stage::Reading | Stage::Done => false,
        };
        if done {
            self.stage = Stage::Done;
        }
        Ok(())
    }

    fn on_aborted(&mut self, id: CheckpointId) -> Result<()> {
        self.core.snapshots.on_aborted(id, &mut self.core.chain);
        if id > self.last {
            self.aborted.insert(id);
            return Ok(());
        }
        if self.stage == Stage::Stopped(id) {
            self.stage = Stage::Reading;
        }
        // Its barrier may have left: channels behind that wait for another source's one go on (R6).
        if id == self.last { self.core.chain.router.broadcast(&Element::CancelBarrier(id)) } else { Ok(()) }
    }

    fn on_event(&mut self, payload: &[u8]) -> Result<()> {
        let ToReader { splits, no_more, unread_elsewhere } = ToReader::decode(payload)?;
        if let Some(watermarks) = &mut self.head.watermarks {
            splits.iter().for_each(|split| watermarks.add_split(Arc::from(split.id.as_str()), Watermark::MIN));
            watermarks.set_unread_elsewhere(unread_elsewhere);
        }
        let answered = !splits.is_empty();
        if answered && self.stage == Stage::AwaitingFinalCheckpoint {
            // A drain ended the source before they came; they are in its coordinator's part of the savepoint (R30).
            return if self.splits == Splits::NoMore {
                Err(Error::internal(format!("{}: splits came after the last", self.head.name())))
            } else {
                Ok(())
            };
        }
        if answered {
            self.head.add_splits(splits)?;
        }
        // The first event is the greeting; a reader asks behind it, and the next event is its answer at the latest.
        self.greeted = true;
        let asked = matches!(self.splits, Splits::MayFollow(Some(_)));
        if no_more {
            self.splits = Splits::NoMore;
        } else if answered && self.splits != Splits::NoMore {
            self.splits = Splits::MayFollow(None);
        }
        if self.head.has_splits() || !unread_elsewhere || no_more || asked { self.speak() } else { Ok(()) }
    }
}

fn emit(chain: &mut Chain, piece: Piece) -> Result<()> {
    match piece {
        Piece::Batch(batch) => chain.process(0, batch),
        Piece::Watermark(watermark) => chain.advance(watermark),
        Piece::Idle => chain.router.broadcast(&Element::Idle),
    }
}
