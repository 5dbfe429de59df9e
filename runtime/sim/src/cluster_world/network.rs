//! Connections between processes: in order within one direction, at any speed otherwise.

use std::collections::BTreeMap;

use rand::Rng;
use streamkeeper_types::Millis;

use super::ProcessId;
use crate::shared::Shared;

/// Names a connection for all time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ConnectionId(usize);

#[derive(Debug)]
struct Connection {
    ends: [ProcessId; 2],
    /// Arrival of the last message to each end.
    last: [Millis; 2],
    is_gone: bool,
    /// Whether each end learns that it is gone.
    told: [bool; 2],
}

/// All connections there ever were, and which directions are cut until when.
#[derive(Debug, Default)]
pub(super) struct Network {
    connections: Vec<Connection>,
    cuts: BTreeMap<(ProcessId, ProcessId), Millis>,
}

impl Network {
    pub(super) fn connect(&mut self, from: ProcessId, to: ProcessId) -> ConnectionId {
        self.connections.push(Connection { ends: [from, to], last: [0, 0], is_gone: false, told: [false, false] });
        ConnectionId(self.connections.len() - 1)
    }

    /// Nothing passes from one to the other until then; what was on its way already is not held back.
    pub(super) fn cut(&mut self, from: ProcessId, to: ProcessId, until: Millis) {
        let end = self.cuts.entry((from, to)).or_default();
        *end = until.max(*end);
    }

    /// Whoever is at the other end.
    pub(super) fn peer(&self, connection: ConnectionId, of: ProcessId) -> ProcessId {
        let [one, other] = self.connections[connection.0].ends;
        if one == of { other } else { one }
    }

    pub(super) fn is_gone(&self, connection: ConnectionId) -> bool {
        self.connections[connection.0].is_gone
    }

    /// What is on its way is lost, and so is what is still sent.
    pub(super) fn lose(&mut self, connection: ConnectionId) {
        self.connections[connection.0].is_gone = true;
    }

    /// Whether this end learns of the connection's end anyway; from now on it does.
    pub(super) fn tell(&mut self, connection: ConnectionId, end: ProcessId) -> bool {
        let connection = &mut self.connections[connection.0];
        let end = usize::from(connection.ends[1] == end);
        std::mem::replace(&mut connection.told[end], true)
    }

    /// Connections that are not gone and have this end.
    pub(super) fn of(&self, process: ProcessId) -> Vec<ConnectionId> {
        let is_its = |connection: &Connection| !connection.is_gone && connection.ends.contains(&process);
        (0..self.connections.len()).filter(|at| is_its(&self.connections[*at])).map(ConnectionId).collect()
    }

    /// When something that is sent now arrives at `to`: after all that was sent there on this connection before.
    pub(super) fn arrival(&mut self, connection: ConnectionId, to: ProcessId, shared: &mut Shared) -> Millis {
        let from = self.peer(connection, to);
        let slowest = if shared.mishap(0.01) { 80 } else { 3 };
        let free = self.cuts.get(&(from, to)).copied().unwrap_or_default().max(shared.now);
        let connection = &mut self.connections[connection.0];
        let end = usize::from(connection.ends[1] == to);
        let arrival = (free + shared.rng.random_range(0..=slowest)).max(connection.last[end]);
        connection.last[end] = arrival;
        arrival
    }
}
