//! The operators of one task, called one after the other on its thread.
//!
//! ```text
//!  process ─▶ [operator 0] ─▶ [operator 1] ─▶ … ─▶ router ─▶ edges
//! ```
//! A row goes through the whole chain before `emit` of the first operator returns, so at each return to the task loop
//! no row is under way inside the chain, and a cut between two calls is a cut of all operators (R2).

use arrow::array::RecordBatch;
use streamkeeper_network::Element;
use streamkeeper_protocol::Barrier;
use streamkeeper_types::{CheckpointId, Millis, Result, Watermark};

use super::router::Router;
use crate::{Operator, OperatorContext, Output};

/// One operator of the chain.
pub(super) struct Link {
    /// `None`: it had finished before the restore and holds nothing that is still to be committed (F3, B26).
    pub operator: Option<Box<dyn Operator>>,
    pub context: OperatorContext,
    /// It had finished before the restore: no record, watermark, timer or end reaches it again.
    pub finished_on_restore: bool,
}

pub(super) struct Chain {
    pub links: Vec<Link>,
    pub router: Router,
    /// The operators saw the end of their input: no timer fires any more.
    finished: bool,
}

/// What an operator sees as its output: the rest of the chain.
struct Rest<'a> {
    links: &'a mut [Link],
    router: &'a mut Router,
}

impl Output for Rest<'_> {
    fn emit(&mut self, batch: RecordBatch) -> Result<()> {
        if batch.num_rows() == 0 {
            return Ok(());
        }
        push(self.links, self.router, 0, batch)
    }
}

fn push(links: &mut [Link], router: &mut Router, input: usize, batch: RecordBatch) -> Result<()> {
    let Some((first, rest)) = links.split_first_mut() else { return router.emit(batch) };
    let Some((operator, context)) = first.running() else { return Ok(()) };
    operator.process(input, batch, context, &mut Rest { links: rest, router }).map_err(|e| e.at(first.place()))
}

impl Link {
    /// The operator with its context, unless it had finished before the restore.
    fn running(&mut self) -> Option<(&mut dyn Operator, &mut OperatorContext)> {
        if self.finished_on_restore {
            return None;
        }
        Some((self.operator.as_deref_mut()?, &mut self.context))
    }

    fn place(&self) -> String {
        self.context.info.name.clone()
    }
}

impl Chain {
    pub(super) fn new(links: Vec<Link>, router: Router) -> Self {
        Self { links, router, finished: false }
    }

    /// Runs `call` on each operator in order, with the rest of the chain as its output.
    fn each(
        &mut self,
        mut call: impl FnMut(&mut dyn Operator, &mut OperatorContext, &mut dyn Output) -> Result<()>,
    ) -> Result<()> {
        for index in 0..self.links.len() {
            let (before, rest) = self.links.split_at_mut(index + 1);
            let link = &mut before[index];
            let Some((operator, context)) = link.running() else { continue };
            call(operator, context, &mut Rest { links: rest, router: &mut self.router })
                .map_err(|e| e.at(link.place()))?;
        }
        Ok(())
    }

    /// A batch for the first operator.
    pub(super) fn process(&mut self, input: usize, batch: RecordBatch) -> Result<()> {
        push(&mut self.links, &mut self.router, input, batch)
    }

    /// The watermark rose: every operator fires what is due, then it leaves.
    pub(super) fn advance(&mut self, watermark: Watermark) -> Result<()> {
        self.each(|operator, context, output| {
            context.watermark = watermark;
            operator.on_watermark(watermark, context, output)
        })?;
        self.router.broadcast(&Element::Watermark(watermark))
    }

    /// End of data: every operator sees the end watermark and finishes before the next one does. The end watermark
    /// leaves after the last record (R38).
    pub(super) fn finish(&mut self) -> Result<()> {
        self.finished = true;
        self.each(|operator, context, output| {
            context.watermark = Watermark::MAX;
            operator.on_watermark(Watermark::MAX, context, output)?;
            operator.finish(context, output)
        })?;
        self.router.broadcast(&Element::Watermark(Watermark::MAX))?;
        self.router.broadcast(&Element::EndOfData)
    }

    /// Work that must be before the cut (S4 b).
    pub(super) fn before_barrier(&mut self, barrier: &Barrier) -> Result<()> {
        self.each(|operator, context, output| operator.before_barrier(barrier, context, output))
    }

    pub(super) fn next_timer(&self) -> Option<Millis> {
        if self.finished {
            return None;
        }
        let running = self.links.iter().filter(|link| !link.finished_on_restore);
        running.filter_map(|link| link.operator.as_ref()?.next_timer()).min()
    }

    /// Fires the timers that are due at `now`.
    pub(super) fn fire_timers(&mut self, now: Millis) -> Result<()> {
        self.each(|operator, context, output| {
            if operator.next_timer().is_some_and(|due| due <= now) {
                operator.on_timer(now, context, output)?;
            }
            Ok(())
        })
    }

    /// Checkpoint `id` is in the log. Reaches every operator, even if one of them fails (R19).
    pub(super) fn checkpoint_completed(&mut self, id: CheckpointId) -> Result<()> {
        let mut result = Ok(());
        for link in &mut self.links {
            let Some(operator) = link.operator.as_deref_mut() else { continue };
            let completed = operator.checkpoint_completed(id, &mut link.context);
            result = result.and(completed.map_err(|e| e.at(link.place())));
        }
        result
    }

    pub(super) fn checkpoint_aborted(&mut self, id: CheckpointId) {
        for operator in self.links.iter_mut().filter_map(|link| link.operator.as_deref_mut()) {
            operator.checkpoint_aborted(id);
        }
    }
}
