//! Behind a gate's channel that another TaskManager feeds: what the task reads becomes credit.

use std::sync::Weak;

use super::connection::Connection;
use crate::{
    Feed,
    link::{Cost, Event, InputId},
};

/// Weak: the connection holds the gate's feeder, and the gate this.
pub(super) struct RemoteInput {
    pub connection: Weak<Connection>,
    pub input: InputId,
}

impl std::fmt::Debug for RemoteInput {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("RemoteInput").field(&self.input).finish()
    }
}

impl Feed for RemoteInput {
    fn consumed(&self, bytes: usize, is_control: bool) {
        let Some(connection) = self.connection.upgrade() else { return };
        let cost = if is_control { Cost::Event } else { Cost::Records(u32::try_from(bytes).unwrap_or(u32::MAX)) };
        connection.on(Event::Consumed { input: self.input, cost });
    }

    fn closed(&self) {
        if let Some(connection) = self.connection.upgrade() {
            connection.on(Event::ConsumerGone { input: self.input });
        }
    }
}
