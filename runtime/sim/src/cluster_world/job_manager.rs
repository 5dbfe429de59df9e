//! A JobManager: stands by while somebody else leads, and leads when that one is gone.

mod leader;
mod log_access;
mod members;

use std::sync::Arc;

use streamkeeper_checkpoint::log::{Record, entry_path, parse_entry};
use streamkeeper_jobmanager::engine::{Event, JobEnd};
use streamkeeper_protocol::{FromTask, TaskReport};
use streamkeeper_storage::{FaultyStorage, Storage};
use streamkeeper_types::Millis;

use super::{
    ALIVE_EVERY, ProcessId, SILENCE,
    environment::{Environment, Happening, Kill},
    network::ConnectionId,
    wire::Wire,
};
use crate::Omission;
use leader::{Leader, Mail};
use members::Members;

/// Until a process that ended by itself is started again, in milliseconds.
const RESTART: Millis = 50;

pub(super) struct JobManager {
    id: ProcessId,
    storage: Arc<FaultyStorage>,
    /// Makes each claim another one.
    claims: u64,
    role: Role,
}

enum Role {
    Standby {
        /// The leader that is watched, and when it was last heard.
        watching: Option<(ConnectionId, Millis)>,
    },
    Leading(Box<Leading>),
}

struct Leading {
    leader: Leader,
    members: Members,
    watchers: Vec<ConnectionId>,
}

impl JobManager {
    pub(super) fn new(id: ProcessId, environment: &Environment) -> Self {
        let role = Role::Standby { watching: None };
        Self { id, storage: environment.storage(id), claims: 0, role }
    }

    pub(super) fn is_leading(&self) -> bool {
        matches!(self.role, Role::Leading(_))
    }

    /// Somebody asks the leader for something.
    pub(super) fn ask(&mut self, event: Event, environment: &mut Environment) {
        if let Role::Leading(leading) = &mut self.role {
            leading.leader.post(Mail::Event(Box::new(event)));
            self.go_on(environment);
        }
    }

    pub(super) fn on(&mut self, happening: Happening, environment: &mut Environment) {
        match happening {
            Happening::Tick => self.tick(environment),
            Happening::Work | Happening::Restart => {}
            Happening::Arrives { connection, message } => self.take(connection, message, environment),
            Happening::Closed { connection } => self.closed(connection, environment),
        }
        self.go_on(environment);
    }

    fn tick(&mut self, environment: &mut Environment) {
        environment.after(ALIVE_EVERY, self.id, Happening::Tick);
        let now = environment.clock(self.id);
        match &mut self.role {
            Role::Standby { watching: None } => self.look_for_leader(environment),
            Role::Standby { watching: Some((connection, heard)) } => {
                if now - *heard > SILENCE {
                    environment.close(*connection, self.id);
                    self.lead(environment);
                }
            }
            Role::Leading(leading) => {
                for process in leading.members.silent(now) {
                    leading.leave(process, self.id, environment);
                }
                let listeners = leading.members.connections().chain(leading.watchers.iter().copied());
                for connection in listeners.collect::<Vec<_>>() {
                    environment.send(connection, self.id, Wire::Alive);
                }
            }
        }
    }

    /// Watches whoever claimed the log last, if that is somebody else.
    fn look_for_leader(&mut self, environment: &mut Environment) {
        // Storage that does not answer is asked again at the next tick.
        let Some(leader) = self.newest_claimant() else { return };
        match leader.filter(|leader| *leader != self.id) {
            None => self.lead(environment),
            Some(leader) => {
                let connection = environment.connect(self.id, leader);
                environment.send(connection, self.id, Wire::Watch);
                self.role = Role::Standby { watching: Some((connection, environment.clock(self.id))) };
            }
        }
    }

    fn newest_claimant(&self) -> Option<Option<ProcessId>> {
        let listed = self.storage.list("log").ok()?;
        let Some(newest) = listed.iter().filter_map(|object| parse_entry(&object.path)).map(|(g, _)| g).max() else {
            return Some(None);
        };
        let path = entry_path(newest, 0);
        let Ok(Record::Claim { instance, .. }) = Record::decode(&path, &self.storage.get(&path).ok()?) else {
            return None;
        };
        instance.rsplit_once('@').map(|(_, process)| process.parse().ok())
    }

    fn lead(&mut self, environment: &mut Environment) {
        self.role = Role::Standby { watching: None };
        self.claims += 1;
        let instance = format!("{}-{}@{}", environment.life(self.id), self.claims, self.id);
        let Some(leader) = Leader::start(self.id, Arc::clone(&self.storage), instance, environment) else { return };
        let (members, watchers) = (Members::default(), Vec::new());
        self.role = Role::Leading(Box::new(Leading { leader, members, watchers }));
    }

    fn take(&mut self, connection: ConnectionId, message: Wire, environment: &mut Environment) {
        let now = environment.clock(self.id);
        match &mut self.role {
            Role::Standby { watching: Some((watched, heard)) } if *watched == connection => *heard = now,
            // Who leads listens; nobody else.
            Role::Standby { .. } => environment.close(connection, self.id),
            Role::Leading(leading) => leading.take(connection, message, self.id, environment),
        }
    }

    fn closed(&mut self, connection: ConnectionId, environment: &mut Environment) {
        match &mut self.role {
            Role::Standby { watching: Some((watched, _)) } if *watched == connection => self.lead(environment),
            Role::Standby { .. } => {}
            Role::Leading(leading) => {
                leading.watchers.retain(|watcher| *watcher != connection);
                if let Some(process) = leading.members.at(connection) {
                    leading.leave(process, self.id, environment);
                }
            }
        }
    }

    fn go_on(&mut self, environment: &mut Environment) {
        let Role::Leading(leading) = &mut self.role else { return };
        let Some(end) = leading.leader.go_on(&mut leading.members, environment) else { return };
        environment.note(|| format!("JobManager {}: the reign ends: {end:?}", self.id));
        let connections = leading.members.connections().chain(leading.watchers.iter().copied());
        for connection in connections.collect::<Vec<_>>() {
            environment.close(connection, self.id);
        }
        self.role = Role::Standby { watching: None };
        match end {
            JobEnd::Finished => environment.is_finished = true,
            JobEnd::Suspended => {}
            JobEnd::Failed(error) => environment.shared.check(Err(format!("the job failed: {error}"))),
            JobEnd::Stopped(_) | JobEnd::Cancelled => environment.kill(self.id, Kill::Process, RESTART),
        }
    }

    pub(super) fn describe(&self, environment: &Environment) -> String {
        match &self.role {
            Role::Standby { watching } => format!("JobManager {} stands by, watching {watching:?}", self.id),
            Role::Leading(leading) => leading.leader.describe(environment.clock(self.id)),
        }
    }
}

impl Leading {
    fn take(&mut self, connection: ConnectionId, message: Wire, own: ProcessId, environment: &mut Environment) {
        let now = environment.clock(own);
        self.members.heard(connection, now);
        match message {
            Wire::Register { slots } => {
                let process = environment.peer(connection, own);
                self.leave(process, own, environment);
                self.members.join(process, connection, slots, now);
                self.leader.post(Mail::Slots);
                environment.send(connection, own, Wire::Welcome);
            }
            Wire::Watch => {
                self.watchers.push(connection);
                environment.send(connection, own, Wire::Alive);
            }
            Wire::Report(FromTask { attempt, report }) => {
                if matches!(&report, TaskReport::State(state) if state.is_terminal()) {
                    self.members.ended(attempt);
                }
                self.leader.post(Mail::Event(Box::new(Event::FromTask(FromTask { attempt, report }))));
            }
            _ => {}
        }
    }

    /// A TaskManager is gone, or begins anew.
    fn leave(&mut self, process: ProcessId, own: ProcessId, environment: &mut Environment) {
        let Some((connection, lost)) = self.members.leave(process) else { return };
        environment.note(|| format!("JobManager {own} has lost TaskManager {process} and {lost:?}"));
        environment.close(connection, own);
        self.leader.post(Mail::Slots);
        if environment.shared.omission != Omission::LostTasks {
            lost.into_iter().for_each(|attempt| self.leader.post(Mail::Lost(attempt)));
        }
    }
}
