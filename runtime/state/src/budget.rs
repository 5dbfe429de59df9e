//! One number of bytes for all keyed state of a process, and who has how much of it.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

/// The memory that the state of one TaskManager may use: caches of all tables, and RocksDB's blocks and write buffers.
#[derive(Debug)]
pub struct MemoryBudget {
    limit: usize,
    used: AtomicUsize,
    /// Bytes of filters over cold keys, which their tables' reservations count too.
    filters: AtomicUsize,
}

/// Part of the budget that filters over cold keys may have: a key there costs 1.5 bytes, one in the cache 40 and more.
const FILTER_DIVISOR: usize = 8;

impl MemoryBudget {
    /// A budget of `limit` bytes.
    #[must_use]
    pub fn new(limit: usize) -> Arc<Self> {
        Arc::new(Self { limit, used: AtomicUsize::new(0), filters: AtomicUsize::new(0) })
    }

    /// Bytes.
    #[must_use]
    pub fn limit(&self) -> usize {
        self.limit
    }

    /// Bytes that all reservations hold now. May exceed the limit within one batch, never between batches.
    #[must_use]
    pub fn used(&self) -> usize {
        self.used.load(Ordering::Relaxed)
    }

    /// Bytes above the limit.
    #[must_use]
    pub fn excess(&self) -> usize {
        self.used().saturating_sub(self.limit)
    }

    /// An account of its own, given back when dropped.
    #[must_use]
    pub fn reserve(self: &Arc<Self>, bytes: usize) -> Reservation {
        self.used.fetch_add(bytes, Ordering::Relaxed);
        Reservation { budget: self.clone(), bytes }
    }

    /// Bytes that filters over cold keys may have.
    pub(crate) fn filter_limit(&self) -> usize {
        self.limit / FILTER_DIVISOR
    }

    /// Lets a filter have so many bytes more, if all filters together may.
    pub(crate) fn reserve_filter(self: &Arc<Self>, bytes: usize) -> Option<FilterReservation> {
        let within = |used: usize| used.checked_add(bytes).filter(|used| *used <= self.filter_limit());
        self.filters.fetch_update(Ordering::Relaxed, Ordering::Relaxed, within).ok()?;
        Some(FilterReservation { budget: self.clone(), bytes })
    }
}

/// A filter's part of what filters may have, given back when dropped.
#[derive(Debug)]
pub(crate) struct FilterReservation {
    budget: Arc<MemoryBudget>,
    bytes: usize,
}

impl FilterReservation {
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }
}

impl Drop for FilterReservation {
    fn drop(&mut self) {
        self.budget.filters.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

/// One holder's part of a [`MemoryBudget`].
#[derive(Debug)]
pub struct Reservation {
    budget: Arc<MemoryBudget>,
    bytes: usize,
}

impl Reservation {
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    #[must_use]
    pub fn budget(&self) -> &Arc<MemoryBudget> {
        &self.budget
    }

    /// Says how much the holder has now.
    pub fn set(&mut self, bytes: usize) {
        if bytes >= self.bytes {
            self.budget.used.fetch_add(bytes - self.bytes, Ordering::Relaxed);
        } else {
            self.budget.used.fetch_sub(self.bytes - bytes, Ordering::Relaxed);
        }
        self.bytes = bytes;
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.set(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reservations_sum_up_and_are_given_back() {
        let budget = MemoryBudget::new(100);
        let mut first = budget.reserve(60);
        let second = budget.reserve(60);
        assert_eq!((budget.used(), budget.excess()), (120, 20));
        first.set(10);
        assert_eq!(budget.used(), 70);
        drop(second);
        assert_eq!(budget.used(), 10);
    }
}
