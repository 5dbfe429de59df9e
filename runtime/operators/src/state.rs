//! Access to an operator's state tables.

use std::time::Duration;

use streamkeeper_engine::OperatorContext;
use streamkeeper_state::{KeyedState, Table, Ttl, TtlRefresh};
use streamkeeper_types::{Error, Result};

/// The state of a keyed operator.
pub(crate) fn keyed(context: &mut OperatorContext) -> Result<&mut KeyedState> {
    context.state.as_mut().ok_or_else(|| Error::internal("a keyed operator was given no state"))
}

/// The table that the factory declared at this position.
pub(crate) fn table(context: &mut OperatorContext, number: usize) -> Result<&mut Table> {
    Ok(keyed(context)?.table_mut(number))
}

/// `table.exec.state.ttl`: a write begins the time anew, a read does not.
pub(crate) fn ttl(duration: Option<Duration>) -> Option<Ttl> {
    duration.map(|duration| Ttl { duration, refresh: TtlRefresh::OnWrite })
}
