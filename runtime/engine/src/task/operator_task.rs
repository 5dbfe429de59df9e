//! The loop of a task with inputs.

use std::time::{Duration, Instant};

use streamkeeper_network::{Arrival, Element, InputGate};
use streamkeeper_protocol::{DeclineReason, TaskState, ToTask};
use streamkeeper_types::{CheckpointId, Result, Watermark};

use super::{
    alignment::{Aligned, Alignment, Step},
    coalesce::Coalescer,
    core::Core,
    deployment::TaskInput,
    run::TaskEnd,
    snapshots::InputEnd,
    watermarks::{Merged, WatermarkMerge},
};

pub(super) struct OperatorTask {
    core: Core,
    gate: InputGate,
    logical: Vec<usize>,
    alignment: Alignment,
    watermarks: WatermarkMerge,
    coalescer: Coalescer,
    /// Channels whose data ended.
    ended: Vec<bool>,
    /// The tasks behind were told where this one stands in time. Before that it puts out no record, a timer's neither:
    /// a channel that is full must have spoken, or two tasks could wait for each other.
    spoken: bool,
    /// All data came and the operators finished.
    end: InputEnd,
}

impl OperatorTask {
    pub(super) fn new(core: Core, input: TaskInput, batch_rows: usize, flush_timeout: Duration) -> Self {
        let channels = input.logical.len();
        let inputs = input.logical.iter().max().map_or(1, |highest| highest + 1);
        Self {
            core,
            gate: input.gate,
            logical: input.logical,
            alignment: Alignment::new(channels),
            watermarks: WatermarkMerge::new(channels),
            coalescer: Coalescer::new(inputs, batch_rows, flush_timeout),
            ended: vec![false; channels],
            spoken: false,
            end: InputEnd::Open,
        }
    }

    pub(super) fn run(mut self) -> Result<TaskEnd> {
        match self.run_loop() {
            Ok(end) => {
                self.core.report_metrics(Instant::now(), None);
                Ok(end)
            }
            Err(error) => self.core.end_of_error(error),
        }
    }

    fn run_loop(&mut self) -> Result<TaskEnd> {
        loop {
            while let Ok(command) = self.core.commands.try_recv() {
                self.on_command(command)?;
            }
            if self.core.is_cancelled() {
                return Ok(TaskEnd::Cancelled);
            }
            if self.is_done() {
                self.core.chain.router.broadcast(&Element::EndOfPartition)?;
                return Ok(TaskEnd::Finished);
            }
            self.read()?;
            if self.spoken {
                self.core.fire_timers()?;
            }
            self.core.between_batches(None)?;
        }
    }

    /// Every channel ended, and what the operators put out is committed (F1). Channels that end without the end of data
    /// belong to sources that a savepoint stopped.
    fn is_done(&self) -> bool {
        let committed = match self.end {
            InputEnd::Open => self.core.snapshots.stop_completed(),
            InputEnd::Reached => self.core.snapshots.final_completed(),
        };
        self.alignment.open_channels() == 0 && committed
    }

    fn read(&mut self) -> Result<()> {
        let timeout = match (self.coalescer.is_empty(), self.spoken) {
            (false, _) => Duration::ZERO,
            (true, true) => self.core.longest_wait(),
            (true, false) => self.core.time.until_due(Instant::now()),
        };
        let start = Instant::now();
        let arrival = self.gate.poll(timeout);
        let now = Instant::now();
        self.core.time.add_idle(now - start);
        match arrival {
            Arrival::Element { channel, element, bytes } => {
                self.core.counters.bytes_in += bytes as u64;
                self.on_element(channel, element, now)?;
                if self.coalescer.is_due(now) {
                    self.flush()?;
                }
                Ok(())
            }
            Arrival::Opened => self.speak(),
            Arrival::TimedOut => self.flush(),
            Arrival::Failed(error) => Err(error),
            Arrival::Woken => Ok(()),
        }
    }

    fn on_element(&mut self, channel: usize, element: Element, now: Instant) -> Result<()> {
        match element {
            Element::Batch(batch) => {
                self.core.counters.records_in += batch.num_rows() as u64;
                let merged = self.watermarks.on_records(channel);
                self.on_merged(merged)?;
                let input = self.logical[channel];
                match self.coalescer.push(input, batch, now)? {
                    Some(batch) => self.core.chain.process(input, batch),
                    None => Ok(()),
                }
            }
            Element::Watermark(watermark) => {
                let merged = self.watermarks.on_watermark(channel, watermark);
                self.on_merged(merged)
            }
            Element::Idle => {
                let merged = self.watermarks.on_idle(channel);
                self.on_merged(merged)
            }
            Element::Barrier(barrier) => {
                let step = self.alignment.on_barrier(channel, &barrier, now);
                self.act(step)
            }
            Element::CancelBarrier(id) => {
                let step = self.alignment.on_cancel(id);
                self.act(step)
            }
            Element::EndOfData => self.on_end_of_data(channel),
            Element::EndOfPartition => {
                let step = self.alignment.on_end_of_partition(channel);
                self.act(step)
            }
        }
    }

    /// The channels have said where they stand. Unless all are idle, which went on already, this task is active and
    /// promises nothing yet.
    fn speak(&mut self) -> Result<()> {
        if std::mem::replace(&mut self.spoken, true) {
            return Ok(());
        }
        self.core.chain.router.broadcast(&Element::Watermark(Watermark::MIN))
    }

    fn on_merged(&mut self, merged: Option<Merged>) -> Result<()> {
        match merged {
            None | Some(Merged::Active) => Ok(()),
            // The end watermark is handled with the end of data, which follows at once (R38).
            Some(Merged::Watermark(Watermark::MAX) | Merged::Idle(Some(Watermark::MAX))) => Ok(()),
            Some(Merged::Watermark(watermark)) => self.advance(watermark),
            Some(Merged::Idle(rise)) => {
                if let Some(watermark) = rise {
                    self.advance(watermark)?;
                }
                // Rows behind an idle mark would be judged by the watermark of the channels beside.
                self.flush()?;
                self.spoken = true;
                self.core.chain.router.broadcast(&Element::Idle)
            }
        }
    }

    fn advance(&mut self, watermark: Watermark) -> Result<()> {
        self.speak()?;
        self.flush()?;
        self.core.counters.watermark = Some(watermark);
        self.core.chain.advance(watermark)
    }

    fn flush(&mut self) -> Result<()> {
        while let Some((input, batch)) = self.coalescer.pop()? {
            self.core.chain.process(input, batch)?;
        }
        Ok(())
    }

    fn on_end_of_data(&mut self, channel: usize) -> Result<()> {
        self.ended[channel] = true;
        if self.end == InputEnd::Reached || !self.ended.iter().all(|ended| *ended) {
            return Ok(());
        }
        self.flush()?;
        self.core.chain.finish()?;
        self.end = InputEnd::Reached;
        self.core.counters.watermark = Some(Watermark::MAX);
        self.core.reporter.state(TaskState::AwaitingFinalCheckpoint);
        Ok(())
    }

    fn on_command(&mut self, command: ToTask) -> Result<()> {
        match command {
            ToTask::TriggerCheckpoint(barrier) => {
                let step = self.alignment.on_trigger(&barrier, Instant::now());
                self.act(step)
            }
            ToTask::NotifyComplete { id, .. } => self.core.snapshots.on_complete(id, &mut self.core.chain, None),
            ToTask::NotifyAborted { id, .. } => {
                let step = self.alignment.on_aborted(id);
                self.core.snapshots.on_aborted(id, &mut self.core.chain);
                self.act(step)
            }
            // Only readers have a coordinator; and the interrupt is what cancels.
            ToTask::Coordinator(_) | ToTask::Cancel => Ok(()),
        }
    }

    fn act(&mut self, step: Step) -> Result<()> {
        if let Some(subsumed) = step.subsumed {
            self.give_up(subsumed.id, subsumed.by);
        }
        if step.unblock {
            self.gate.unblock_all();
        }
        if let Some(id) = step.forward_cancel {
            self.core.chain.router.broadcast(&Element::CancelBarrier(id))?;
        }
        if let Some(channel) = step.block {
            self.gate.block(channel);
        }
        let Some(aligned) = step.complete else { return Ok(()) };
        self.snapshot(aligned)
    }

    fn give_up(&mut self, id: CheckpointId, by: CheckpointId) {
        self.core.chain.checkpoint_aborted(id);
        self.core.snapshots.decline(id, DeclineReason::Subsumed { by });
    }

    /// Nothing behind a barrier was read: its channel is blocked until here (R9).
    fn snapshot(&mut self, aligned: Aligned) -> Result<()> {
        self.flush()?;
        self.core.snapshots.take(aligned, &mut self.core.chain, None, self.end, self.core.clock.as_ref())?;
        self.gate.unblock_all();
        Ok(())
    }
}
