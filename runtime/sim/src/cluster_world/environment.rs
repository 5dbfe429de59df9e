//! What surrounds the processes: time, network, storage, and which of them live.

use std::{
    cmp::Reverse,
    collections::{BinaryHeap, VecDeque},
    sync::Arc,
    time::Duration,
};

use rand::Rng;
use streamkeeper_storage::{Faults, FaultyStorage};
use streamkeeper_types::Millis;

use super::{
    ProcessId,
    network::{ConnectionId, Network},
    wire::Wire,
};
use crate::{
    invariants::{FencedChangesNothing, GenerationsOnlyGrow},
    shared::Shared,
};

/// Lines of a trace that are shown.
const TRACE: usize = 60;

/// After how long a connection counts as broken whose other end does not answer at all.
const GIVES_UP: Duration = Duration::from_millis(300);

/// Something that happens to one process.
#[derive(Debug)]
pub(super) enum Happening {
    Arrives {
        connection: ConnectionId,
        message: Wire,
    },
    Closed {
        connection: ConnectionId,
    },
    /// A look at the clock, again and again.
    Tick,
    /// Something that the process wanted to do now.
    Work,
    Restart,
}

/// A process as the world around it sees it.
#[derive(Debug)]
struct Host {
    /// How often it was started.
    life: u64,
    is_alive: bool,
    /// It is frozen, and what happens to it waits.
    frozen_until: Millis,
    /// By how much its clock is wrong.
    skew: Millis,
    /// The whole machine is gone: nobody even refuses a connection.
    is_silent: bool,
}

#[derive(Debug)]
struct Entry {
    at: Millis,
    sequence: u64,
    process: ProcessId,
    life: u64,
    happening: Happening,
}

pub(super) struct Environment {
    pub(super) shared: Shared,
    pub(super) generations: GenerationsOnlyGrow,
    pub(super) fenced: FencedChangesNothing,
    /// The log has the job's result.
    pub(super) is_finished: bool,
    network: Network,
    /// JobManagers are the processes below this number.
    managers: usize,
    hosts: Vec<Host>,
    storages: Vec<Arc<FaultyStorage>>,
    queue: BinaryHeap<Reverse<Entry>>,
    sequence: u64,
    trace: Option<VecDeque<String>>,
}

/// How a process ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kill {
    /// Its peers learn it from their connections.
    Process,
    /// Its peers learn nothing.
    Machine,
}

/// Whether a run remembers what happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tracing {
    On,
    Off,
}

impl Environment {
    pub(super) fn new(mut shared: Shared, managers: usize, processes: usize, tracing: Tracing) -> Self {
        let inner = Arc::new(shared.storage.clone());
        let storages = (0..processes)
            .map(|_| Arc::new(FaultyStorage::new(Arc::clone(&inner) as _, shared.faults, shared.rng.random())))
            .collect();
        let hosts = (0..processes)
            .map(|_| Host {
                life: 0,
                is_alive: false,
                frozen_until: 0,
                skew: shared.rng.random_range(0..2_000),
                is_silent: false,
            })
            .collect();
        Self {
            shared,
            generations: GenerationsOnlyGrow::default(),
            fenced: FencedChangesNothing::default(),
            is_finished: false,
            network: Network::default(),
            managers,
            hosts,
            storages,
            queue: BinaryHeap::new(),
            sequence: 0,
            trace: (tracing == Tracing::On).then(VecDeque::new),
        }
    }

    /// Remembers what happened, if somebody will read it.
    pub(super) fn note(&mut self, line: impl FnOnce() -> String) {
        let Some(trace) = &mut self.trace else { return };
        if trace.len() == TRACE {
            trace.pop_front();
        }
        trace.push_back(format!("  {:>6} {}", self.shared.now, line()));
    }

    pub(super) fn trace(&self) -> String {
        let lines: Vec<&str> = self.trace.iter().flatten().map(String::as_str).collect();
        lines.join("\n")
    }

    /// The clock of a process.
    pub(super) fn clock(&self, process: ProcessId) -> Millis {
        self.shared.now + self.hosts[process].skew
    }

    pub(super) fn storage(&self, process: ProcessId) -> Arc<FaultyStorage> {
        Arc::clone(&self.storages[process])
    }

    pub(super) fn life(&self, process: ProcessId) -> u64 {
        self.hosts[process].life
    }

    pub(super) fn is_alive(&self, process: ProcessId) -> bool {
        self.hosts[process].is_alive
    }

    /// Whether it lives and is not frozen.
    pub(super) fn is_awake(&self, process: ProcessId) -> bool {
        let host = &self.hosts[process];
        host.is_alive && host.frozen_until <= self.shared.now
    }

    /// Takes the next thing that happens to a process that can notice it.
    pub(super) fn next(&mut self) -> Option<(ProcessId, Happening)> {
        loop {
            let Reverse(mut entry) = self.queue.pop()?;
            self.shared.now = self.shared.now.max(entry.at);
            let host = &self.hosts[entry.process];
            if entry.life != host.life {
                continue;
            }
            if host.frozen_until > self.shared.now {
                entry.at = host.frozen_until;
                self.queue.push(Reverse(entry));
                continue;
            }
            if let Happening::Arrives { connection, .. } = &entry.happening
                && self.network.is_gone(*connection)
            {
                continue;
            }
            return Some((entry.process, entry.happening));
        }
    }

    fn push(&mut self, at: Millis, process: ProcessId, happening: Happening) {
        self.sequence += 1;
        let life = self.hosts[process].life;
        self.queue.push(Reverse(Entry { at, sequence: self.sequence, process, life, happening }));
    }

    /// Lets something happen to a process at `at`, if it still lives then.
    pub(super) fn at(&mut self, at: Millis, process: ProcessId, happening: Happening) {
        self.push(at.max(self.shared.now), process, happening);
    }

    /// As [`Self::at`], by the clock of the process.
    pub(super) fn at_clock(&mut self, at: Millis, process: ProcessId, happening: Happening) {
        let at = at.saturating_sub(self.hosts[process].skew);
        self.at(at, process, happening);
    }

    pub(super) fn after(&mut self, delay: Duration, process: ProcessId, happening: Happening) {
        let delay = Millis::try_from(delay.as_millis()).unwrap_or(Millis::MAX);
        self.push(self.shared.now.saturating_add(delay), process, happening);
    }

    /// Opens a connection; that nobody listens is told later.
    pub(super) fn connect(&mut self, from: ProcessId, to: ProcessId) -> ConnectionId {
        let connection = self.network.connect(from, to);
        if !self.hosts[to].is_alive {
            self.network.lose(connection);
            if !self.hosts[to].is_silent {
                self.tell_closed(connection, from);
            }
        }
        connection
    }

    pub(super) fn peer(&self, connection: ConnectionId, of: ProcessId) -> ProcessId {
        self.network.peer(connection, of)
    }

    pub(super) fn send(&mut self, connection: ConnectionId, from: ProcessId, message: Wire) {
        if self.network.is_gone(connection) {
            // Nothing is acknowledged: the operating system gives up in the end.
            if !self.network.tell(connection, from) {
                self.after(GIVES_UP, from, Happening::Closed { connection });
            }
            return;
        }
        let to = self.network.peer(connection, from);
        let at = self.network.arrival(connection, to, &mut self.shared);
        self.push(at, to, Happening::Arrives { connection, message });
    }

    /// One end goes. What is on its way to it may still be worked on there: some thread of it had read it already.
    pub(super) fn close(&mut self, connection: ConnectionId, by: ProcessId) {
        if !self.shared.mishap(0.5) {
            self.network.lose(connection);
        }
        let other = self.network.peer(connection, by);
        self.tell_closed(connection, other);
    }

    /// The connection breaks in the middle.
    pub(super) fn break_one(&mut self) {
        let process = self.shared.rng.random_range(0..self.hosts.len());
        let connections = self.network.of(process);
        if connections.is_empty() {
            return;
        }
        let connection = connections[self.shared.rng.random_range(0..connections.len())];
        let other = self.network.peer(connection, process);
        self.note(|| format!("connection between {process} and {other} breaks"));
        self.network.lose(connection);
        self.tell_closed(connection, process);
        self.tell_closed(connection, other);
    }

    fn tell_closed(&mut self, connection: ConnectionId, to: ProcessId) {
        self.network.tell(connection, to);
        let at = self.network.arrival(connection, to, &mut self.shared);
        self.push(at, to, Happening::Closed { connection });
    }

    pub(super) fn cut(&mut self, from: ProcessId, to: ProcessId, time: Millis) {
        self.note(|| format!("nothing passes from {from} to {to} for {time} ms"));
        self.network.cut(from, to, self.shared.now + time);
    }

    pub(super) fn freeze(&mut self, process: ProcessId, time: Millis) {
        self.note(|| format!("process {process} freezes for {time} ms"));
        let until = self.shared.now + time;
        let host = &mut self.hosts[process];
        host.frozen_until = host.frozen_until.max(until);
    }

    pub(super) fn start(&mut self, process: ProcessId) {
        let host = &mut self.hosts[process];
        host.is_alive = true;
        host.is_silent = false;
        self.note(|| format!("process {process} starts"));
        self.push(self.shared.now, process, Happening::Tick);
    }

    /// Ends a process; it is started again after `restart`.
    pub(super) fn kill(&mut self, process: ProcessId, kill: Kill, restart: Millis) {
        self.note(|| format!("process {process} is killed ({kill:?})"));
        let host = &mut self.hosts[process];
        host.is_alive = false;
        host.is_silent = kill == Kill::Machine;
        host.life += 1;
        host.frozen_until = 0;
        for connection in self.network.of(process) {
            self.network.lose(connection);
            let other = self.network.peer(connection, process);
            if !self.hosts[other].is_alive {
                continue;
            }
            if kill == Kill::Process {
                self.tell_closed(connection, other);
            } else if process.min(other) >= self.managers && !self.network.tell(connection, other) {
                // The data plane hears no heartbeat any more; the control plane's silence is for its ends to notice.
                self.after(GIVES_UP, other, Happening::Closed { connection });
            }
        }
        self.push(self.shared.now + restart, process, Happening::Restart);
    }

    /// From now on nothing goes wrong any more. What went wrong before still has its consequences.
    pub(super) fn heal(&mut self) {
        self.note(|| "everything heals".to_owned());
        self.shared.chaos = false;
        for storage in &self.storages {
            storage.set_faults(Faults::NONE);
        }
    }
}

impl PartialEq for Entry {
    fn eq(&self, other: &Self) -> bool {
        self.sequence == other.sequence
    }
}

impl Eq for Entry {}

impl PartialOrd for Entry {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Entry {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.at, self.sequence).cmp(&(other.at, other.sequence))
    }
}
