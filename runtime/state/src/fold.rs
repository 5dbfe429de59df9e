//! Rows taken out of the caches at a cut, on their way into the cold store.

use std::sync::{
    Arc, Mutex, PoisonError,
    atomic::{AtomicBool, Ordering},
};

use streamkeeper_types::{Error, Result};

use crate::{ColdCut, ColdRows, ColdStore, ColdView, MemoryBudget, Reservation};

/// What to keep of the cold store once the rows are in it: its content is then exactly that of the cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Keep {
    /// Its files.
    Cut,
    /// A view to read.
    View,
}

/// A fold, done once by whoever needs it first: the upload, or an eviction on the task's thread, which must not write
/// to the cold store before it.
pub(crate) struct FoldJob {
    cold: Arc<dyn ColdStore>,
    state: Mutex<State>,
    complete: AtomicBool,
}

enum State {
    Waiting {
        tables: Vec<ColdRows>,
        keep: Keep,
        #[expect(dead_code, reason = "held until the outcome takes its place")]
        memory: Reservation,
    },
    Done(Kept),
    Failed(Error),
}

/// What was kept.
pub(crate) enum Kept {
    Cut(Box<dyn ColdCut>),
    View(Box<dyn ColdView>),
    Taken,
}

impl std::fmt::Debug for FoldJob {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FoldJob").field("cold", &self.cold).finish_non_exhaustive()
    }
}

impl FoldJob {
    /// The rows count against `budget` until they are in the cold store.
    pub(crate) fn new(
        cold: Arc<dyn ColdStore>,
        tables: Vec<ColdRows>,
        keep: Keep,
        budget: &Arc<MemoryBudget>,
    ) -> Arc<Self> {
        let memory = budget.reserve(tables.iter().map(ColdRows::memory_bytes).sum());
        let state = Mutex::new(State::Waiting { tables, keep, memory });
        Arc::new(Self { cold, state, complete: AtomicBool::new(false) })
    }

    /// Brings the rows into the cold store unless that was done.
    ///
    /// # Errors
    /// `STORAGE` or `DISK_FULL`, now and in every later call: the rows are nowhere else, so the task must fail.
    pub(crate) fn complete(&self) -> Result<()> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let (tables, keep) = match &mut *state {
            State::Waiting { tables, keep, .. } => (std::mem::take(tables), *keep),
            State::Done(_) => return Ok(()),
            State::Failed(error) => return Err(error.clone()),
        };
        match self.fold(tables, keep) {
            Ok(kept) => {
                *state = State::Done(kept);
                self.complete.store(true, Ordering::Release);
                Ok(())
            }
            Err(error) => {
                *state = State::Failed(error.clone());
                Err(error)
            }
        }
    }

    /// Whether the rows are in the cold store.
    pub(crate) fn is_complete(&self) -> bool {
        self.complete.load(Ordering::Acquire)
    }

    /// Completes, and gives what was kept.
    pub(crate) fn take(&self) -> Result<Kept> {
        self.complete()?;
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        match &mut *state {
            State::Done(kept) => Ok(std::mem::replace(kept, Kept::Taken)),
            State::Waiting { .. } => Err(Error::internal("a completed fold waits")),
            State::Failed(error) => Err(error.clone()),
        }
    }

    fn fold(&self, tables: Vec<ColdRows>, keep: Keep) -> Result<Kept> {
        for (number, mut rows) in tables.into_iter().enumerate() {
            if rows.is_empty() {
                continue;
            }
            rows.sort();
            self.cold.apply(number, &rows)?;
        }
        match keep {
            Keep::Cut => Ok(Kept::Cut(self.cold.cut()?)),
            Keep::View => Ok(Kept::View(self.cold.view()?)),
        }
    }
}
