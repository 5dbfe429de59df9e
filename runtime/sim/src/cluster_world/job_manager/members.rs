//! The TaskManagers that are connected to the leader, and what runs on them.

use std::collections::BTreeMap;

use streamkeeper_types::{AttemptId, Millis};

use crate::cluster_world::{ProcessId, SILENCE, network::ConnectionId};

#[derive(Debug, Default)]
pub(super) struct Members {
    members: BTreeMap<ProcessId, Member>,
    running: BTreeMap<AttemptId, ProcessId>,
    /// TaskManager of each slot in the newest deployment.
    slots: Vec<ProcessId>,
}

#[derive(Debug)]
struct Member {
    connection: ConnectionId,
    slots: u32,
    heard: Millis,
}

impl Members {
    pub(super) fn join(&mut self, process: ProcessId, connection: ConnectionId, slots: u32, now: Millis) {
        self.members.insert(process, Member { connection, slots, heard: now });
    }

    /// Takes a TaskManager out; returns its connection and what ran there.
    pub(super) fn leave(&mut self, process: ProcessId) -> Option<(ConnectionId, Vec<AttemptId>)> {
        let member = self.members.remove(&process)?;
        let lost = self.running.iter().filter(|(_, at)| **at == process).map(|(attempt, _)| *attempt).collect();
        self.running.retain(|_, at| *at != process);
        Some((member.connection, lost))
    }

    pub(super) fn heard(&mut self, connection: ConnectionId, now: Millis) {
        if let Some(member) = self.members.values_mut().find(|member| member.connection == connection) {
            member.heard = now;
        }
    }

    pub(super) fn silent(&self, now: Millis) -> Vec<ProcessId> {
        let silent = self.members.iter().filter(|(_, member)| now - member.heard > SILENCE);
        silent.map(|(process, _)| *process).collect()
    }

    pub(super) fn at(&self, connection: ConnectionId) -> Option<ProcessId> {
        self.members.iter().find(|(_, member)| member.connection == connection).map(|(process, _)| *process)
    }

    pub(super) fn connections(&self) -> impl Iterator<Item = ConnectionId> {
        self.members.values().map(|member| member.connection)
    }

    pub(super) fn total_slots(&self) -> u32 {
        self.members.values().map(|member| member.slots).sum()
    }

    /// The way to whoever runs `attempt`.
    pub(super) fn route(&self, attempt: AttemptId) -> Option<ConnectionId> {
        let process = self.running.get(&attempt)?;
        Some(self.members.get(process)?.connection)
    }

    pub(super) fn ended(&mut self, attempt: AttemptId) {
        self.running.remove(&attempt);
    }

    pub(super) fn runs(&mut self, attempt: AttemptId, process: ProcessId) {
        self.running.insert(attempt, process);
    }

    pub(super) fn connection(&self, process: ProcessId) -> Option<ConnectionId> {
        self.members.get(&process).map(|member| member.connection)
    }

    /// A TaskManager for each slot, where it was before if there is room; `None` if there is too little room.
    pub(super) fn place(&mut self, parallelism: u32) -> Option<Vec<ProcessId>> {
        let mut left: BTreeMap<ProcessId, u32> = self.members.iter().map(|(id, member)| (*id, member.slots)).collect();
        let mut placed = Vec::new();
        for slot in 0..parallelism as usize {
            let before = self.slots.get(slot).filter(|process| left.get(process).is_some_and(|left| *left > 0));
            let most = left.iter().max_by_key(|(_, left)| **left).map(|(process, _)| *process);
            let process = before.copied().or(most)?;
            let left = left.get_mut(&process).filter(|left| **left > 0)?;
            *left -= 1;
            placed.push(process);
        }
        self.slots.clone_from(&placed);
        Some(placed)
    }
}
