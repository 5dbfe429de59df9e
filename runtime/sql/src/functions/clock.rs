//! The clock of PROCTIME() and CURRENT_TIMESTAMP: a value that the task sets before it evaluates a batch.
//!
//! A task is a thread, so the value is the thread's. Where nobody sets it (planning, tools), the system's clock counts.

use std::{
    cell::Cell,
    time::{SystemTime, UNIX_EPOCH},
};

use streamkeeper_types::Millis;

thread_local! {
    static NOW: Cell<Option<Millis>> = const { Cell::new(None) };
}

/// Sets what the functions of this thread take as now, until the next call.
pub fn set_now(now: Millis) {
    NOW.set(Some(now));
}

/// Milliseconds since 1970-01-01 UTC.
#[must_use]
pub fn now() -> Millis {
    NOW.get().unwrap_or_else(|| {
        let elapsed = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Millis::try_from(elapsed.as_millis()).unwrap_or(Millis::MAX)
    })
}
