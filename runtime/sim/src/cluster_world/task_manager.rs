//! A TaskManager: a session with whoever leads, tasks in its slots, and channels to other TaskManagers.

mod run;

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use rand::Rng;
use streamkeeper_protocol::{FromTask, TaskReport, TaskState};
use streamkeeper_storage::FaultyStorage;
use streamkeeper_types::{AttemptId, Code, Error, Generation, Millis};

use super::{
    ALIVE_EVERY, ProcessId, SILENCE,
    environment::{Environment, Happening},
    network::ConnectionId,
    wire::{Frame, Part, RunId, Wire},
};
use crate::{Omission, invariants::slots_suffice};
use run::Run;

/// Between two turns of the tasks.
const TURN: Duration = Duration::from_millis(5);

pub(super) struct TaskManager {
    id: ProcessId,
    /// JobManagers are the processes below this number.
    managers: usize,
    slots: u32,
    storage: Arc<FaultyStorage>,
    /// Which JobManager is tried next.
    next: usize,
    session: Option<Session>,
    /// The highest generation that deployed here (R25).
    fence: Generation,
    newest: RunId,
    runs: Vec<Run>,
    /// Connections to other TaskManagers, whoever opened them.
    peers: BTreeMap<ConnectionId, ProcessId>,
    /// Those that this one opened. A channel keeps to one of them, or a barrier would overtake rows.
    outgoing: BTreeMap<ProcessId, ConnectionId>,
    /// Elements for tasks that were not deployed here yet.
    early: Vec<Frame>,
    has_turn: bool,
}

struct Session {
    connection: ConnectionId,
    heard: Millis,
}

impl TaskManager {
    pub(super) fn new(id: ProcessId, managers: usize, slots: u32, environment: &Environment) -> Self {
        Self {
            id,
            managers,
            slots,
            storage: environment.storage(id),
            next: 0,
            session: None,
            fence: Generation(0),
            newest: RunId::default(),
            runs: Vec::new(),
            peers: BTreeMap::new(),
            outgoing: BTreeMap::new(),
            early: Vec::new(),
            has_turn: false,
        }
    }

    pub(super) fn on(&mut self, happening: Happening, environment: &mut Environment) {
        match happening {
            Happening::Tick => self.tick(environment),
            Happening::Work => self.turn(environment),
            Happening::Arrives { connection, message } => self.take(connection, message, environment),
            Happening::Closed { connection } => self.closed(connection, environment),
            Happening::Restart => {}
        }
        self.report(environment);
    }

    fn tick(&mut self, environment: &mut Environment) {
        environment.after(ALIVE_EVERY, self.id, Happening::Tick);
        let now = environment.clock(self.id);
        let Some(Session { connection, heard }) = self.session else { return self.connect(environment) };
        if now - heard > SILENCE {
            environment.close(connection, self.id);
            return self.lose_session(environment);
        }
        environment.send(connection, self.id, Wire::Alive);
    }

    fn connect(&mut self, environment: &mut Environment) {
        let connection = environment.connect(self.id, self.next);
        self.next = (self.next + 1) % self.managers;
        self.session = Some(Session { connection, heard: environment.clock(self.id) });
        environment.send(connection, self.id, Wire::Register { slots: self.slots });
    }

    /// Tasks end before the next JobManager deploys them again.
    fn lose_session(&mut self, environment: &mut Environment) {
        environment.note(|| format!("TaskManager {} has lost its JobManager", self.id));
        self.session = None;
        if environment.shared.omission != Omission::EndingTasks {
            self.runs.clear();
        }
    }

    fn closed(&mut self, connection: ConnectionId, environment: &mut Environment) {
        if self.session.as_ref().is_some_and(|session| session.connection == connection) {
            return self.lose_session(environment);
        }
        let Some(peer) = self.peers.remove(&connection) else { return };
        self.outgoing.retain(|_, opened| *opened != connection);
        // A connection that breaks fails the tasks on it: nobody knows what was lost.
        if environment.shared.omission != Omission::BrokenChannels {
            self.runs.iter_mut().for_each(|run| run.lose(peer));
        }
    }

    fn take(&mut self, connection: ConnectionId, message: Wire, environment: &mut Environment) {
        if let Wire::Frame(frame) = message {
            let peer = environment.peer(connection, self.id);
            self.peers.insert(connection, peer);
            return self.frame(frame, environment);
        }
        let clock = environment.clock(self.id);
        let Some(session) = self.session.as_mut().filter(|session| session.connection == connection) else { return };
        session.heard = clock;
        match message {
            Wire::Deploy(part) => self.deploy(*part, environment),
            Wire::Command(attempt, command) => {
                if let Some(link) = self.runs.iter_mut().find_map(|run| run.link(attempt)) {
                    link.mailbox.push_back(command);
                }
            }
            _ => {}
        }
    }

    fn deploy(&mut self, part: Part, environment: &mut Environment) {
        let generation = part.run.generation;
        if generation < self.fence && environment.shared.omission != Omission::Deployments {
            let error = Error::new(Code::Fenced, format!("generation {} runs", self.fence));
            for (attempt, _) in part.tasks {
                self.say(attempt, TaskReport::State(TaskState::Failed(error.clone())), environment);
            }
            return;
        }
        self.fence = self.fence.max(generation);
        self.newest = self.newest.max(part.run);
        let grows = environment.generations.ran((self.id, environment.life(self.id)), generation);
        environment.shared.check(grows);
        self.runs.retain(Run::is_live);
        let run = Run::new(part, &*self.storage, &mut environment.shared);
        environment.note(|| format!("TaskManager {} runs {:?}: {:?}", self.id, run.id, run.attempts()));
        self.runs.push(run);
        let suffice = slots_suffice(self.slots, self.runs.iter().flat_map(Run::live));
        environment.shared.check(suffice);
        for frame in std::mem::take(&mut self.early) {
            self.frame(frame, environment);
        }
        if !self.has_turn {
            self.has_turn = true;
            environment.after(TURN, self.id, Happening::Work);
        }
    }

    /// An element for a task here. Only the same run's count (R25).
    fn frame(&mut self, mut frame: Frame, environment: &Environment) {
        if environment.shared.omission == Omission::Frames {
            frame.to = self.newest.attempt(frame.to.subtask);
        }
        let run = RunId::of(frame.to);
        if let Some(run) = self.runs.iter_mut().find(|other| other.id == run) {
            run.arrived(frame);
        } else if run > self.newest {
            self.early.push(frame);
        }
    }

    /// Some tasks do one thing each.
    fn turn(&mut self, environment: &mut Environment) {
        self.runs.retain(Run::is_live);
        self.has_turn = !self.runs.is_empty();
        if !self.has_turn {
            return;
        }
        environment.after(TURN, self.id, Happening::Work);
        for _ in 0..environment.shared.rng.random_range(1..=4) {
            let chosen = environment.shared.rng.random_range(0..self.runs.len());
            let run = &mut self.runs[chosen];
            run.step(&*self.storage, &mut environment.shared);
            let leaving = run.leaving(self.id);
            for (peer, frame) in leaving {
                let open = || environment.connect(self.id, peer);
                let connection = *self.outgoing.entry(peer).or_insert_with(open);
                self.peers.insert(connection, peer);
                environment.send(connection, self.id, Wire::Frame(frame));
            }
        }
    }

    /// Hands on what tasks have to say; without a session nobody hears it.
    fn report(&mut self, environment: &mut Environment) {
        let reports: Vec<FromTask> = self.runs.iter_mut().flat_map(Run::reports).collect();
        for FromTask { attempt, report } in reports {
            self.say(attempt, report, environment);
        }
    }

    fn say(&self, attempt: AttemptId, report: TaskReport, environment: &mut Environment) {
        if let TaskReport::State(state) = &report {
            environment.note(|| format!("TaskManager {}: {attempt} is {state:?}", self.id));
        }
        let Some(session) = &self.session else { return };
        environment.send(session.connection, self.id, Wire::Report(FromTask { attempt, report }));
    }

    pub(super) fn describe(&self, environment: &Environment) -> String {
        let leader = self.session.as_ref().map(|session| environment.peer(session.connection, self.id));
        let live: Vec<AttemptId> = self.runs.iter().flat_map(Run::live).collect();
        format!("TaskManager {} ({} slots) at {leader:?} runs {live:?}", self.id, self.slots)
    }
}
