//! The TaskManager's side: listens, keeps the connections, hands out the ends of channels.

use std::{
    collections::HashMap,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream},
    sync::{
        Arc, Weak,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
    },
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use parking_lot::{Condvar, Mutex};
use streamkeeper_types::{Code, Error, Generation, Result, ResultExt};

use super::{
    accept,
    connection::{Connection, ConnectionKey},
    dial, handshake,
    options::DataPlaneOptions,
    reader,
    remote_input::RemoteInput,
    sender::RemoteSender,
    socket::Halves,
    tls::Tls,
    writer,
};
use crate::{
    BatchEncoder, Compression, InputGate, Interrupt,
    frame::{ChannelKey, Fault, PeerId},
    link::{Credit, EVENT_WINDOW, Event, InputId},
};

/// Another TaskManager.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Peer {
    pub id: PeerId,
    /// Where it listens: `host:port`.
    pub address: String,
}

/// Which end of a channel is at this TaskManager.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChannelEnd {
    Producer,
    Consumer,
}

/// A channel broke: the attempt at this end has to fail.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChannelFailure {
    pub channel: ChannelKey,
    /// The end at this TaskManager.
    pub end: ChannelEnd,
    pub peer: PeerId,
    pub error: Error,
}

/// Takes failures, on any thread, that of the caller of [`DataPlane::sender`] among them. It must not block.
pub type FailureSink = Arc<dyn Fn(ChannelFailure) + Send + Sync>;

/// All channels between this TaskManager and others.
///
/// Dropping it is [`DataPlane::shut_down`].
#[derive(Debug)]
pub struct DataPlane {
    inner: Arc<Inner>,
    address: SocketAddr,
}

pub(super) struct Inner {
    pub options: DataPlaneOptions,
    pub tls: Option<Tls>,
    pub stopping: AtomicBool,
    /// Greetings under way.
    pub greetings: AtomicUsize,
    lowest: AtomicU64,
    next_input: AtomicU64,
    epoch: Instant,
    failures: FailureSink,
    connections: Mutex<HashMap<ConnectionKey, Arc<Connection>>>,
    /// Signalled when a connection is over, and to stop the clock.
    changed: Condvar,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

impl std::fmt::Debug for Inner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DataPlane").field("options", &self.options).finish_non_exhaustive()
    }
}

impl DataPlane {
    /// Listens. `failures` learns of every channel that breaks, besides the task itself.
    ///
    /// # Errors
    /// When the address cannot be listened on, or TLS cannot be set up.
    pub fn start(options: DataPlaneOptions, failures: FailureSink) -> Result<Self> {
        let listener = TcpListener::bind(options.listen)
            .or_code(Code::OptionInvalid, || format!("listening on {} for other TaskManagers", options.listen))?;
        let address = listener.local_addr().or_code(Code::Internal, || "the data port's own address".into())?;
        let tls = options.tls.as_ref().map(Tls::new).transpose()?;
        let inner = Arc::new(Inner {
            options,
            tls,
            stopping: AtomicBool::new(false),
            greetings: AtomicUsize::new(0),
            lowest: AtomicU64::new(0),
            next_input: AtomicU64::new(0),
            epoch: Instant::now(),
            failures,
            connections: Mutex::default(),
            changed: Condvar::new(),
            threads: Mutex::default(),
        });
        let plane = Arc::clone(&inner);
        inner.spawn("net-accept", move || accept::run(&plane, &listener));
        let plane = Arc::clone(&inner);
        inner.spawn("net-clock", move || plane.keep_time());
        Ok(Self { inner, address })
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The sending end of `channel`, whose consumer runs at `peer`, for the task that `interrupt` belongs to. Does not
    /// wait: the first send does, until connection and consumer are there.
    ///
    /// # Errors
    /// `FENCED` for a generation that is fenced; `CONNECTION_LOST` when there are too many channels.
    pub fn sender(
        &self,
        peer: &Peer,
        channel: ChannelKey,
        compression: Compression,
        interrupt: Interrupt,
    ) -> Result<RemoteSender> {
        let connection = self.connection(peer, channel)?;
        let (number, wake) = connection.open_sender(channel).map_err(|fault| fault.to_error(peer.id.as_str()))?;
        let encoder = BatchEncoder::new(compression);
        Ok(RemoteSender::new(connection, number, wake, encoder, interrupt))
    }

    /// Feeds channel `channel.input` of `gate` from its producer at `peer`. `capacity`: bytes of records that the
    /// channel may take up, here, under way and at the producer together; a row larger than half of it may take more.
    ///
    /// # Errors
    /// `FENCED` for a generation that is fenced; `CONNECTION_LOST` when there are too many connections.
    pub fn receiver(&self, peer: &Peer, channel: ChannelKey, gate: &InputGate, capacity: usize) -> Result<()> {
        let connection = self.connection(peer, channel)?;
        let input = InputId(self.inner.next_input.fetch_add(1, Ordering::Relaxed));
        let feed = RemoteInput { connection: Arc::downgrade(&connection), input };
        let feeder = gate.feeder(channel.input as usize, Arc::new(feed));
        // A window is exceeded by at most one piece, which is no larger.
        let bytes = u32::try_from(capacity / 2).unwrap_or(u32::MAX).max(1);
        let window = Credit { bytes, events: EVENT_WINDOW };
        connection.open_input(input, feeder, Event::ConsumerReady { input, key: channel, window });
        Ok(())
    }

    /// Refuses and ends every connection of a generation below `lowest`. Generations only grow: returns the one that holds
    /// from now on, a higher one if that was fenced before.
    pub fn fence(&self, lowest: Generation) -> Generation {
        let before = self.inner.lowest.fetch_max(lowest.0, Ordering::SeqCst);
        if before >= lowest.0 {
            return Generation(before);
        }
        for connection in self.inner.all() {
            let own = connection.key.1;
            if own < lowest {
                connection.on(Event::Broken(Fault::Fenced { own: own.0, lowest: lowest.0 }));
            }
        }
        lowest
    }

    /// Writes what is queued, says farewell, and ends all threads. Channels that did not come to their end fail, here
    /// and there.
    pub fn shut_down(self) {
        drop(self);
    }

    fn connection(&self, peer: &Peer, channel: ChannelKey) -> Result<Arc<Connection>> {
        let generation = channel.producer.generation.max(channel.consumer.generation);
        let lowest = self.inner.lowest();
        if generation < lowest {
            return Err(Error::new(Code::Fenced, format!("{channel}: generation {lowest} runs")));
        }
        let key = (peer.id.clone(), generation);
        let (connection, is_new) = self.inner.connection(key).map_err(|fault| fault.to_error(peer.id.as_str()))?;
        if is_new && handshake::dials(&self.inner.options.identity.id, &peer.id) {
            let inner = Arc::clone(&self.inner);
            let dialled = Arc::clone(&connection);
            let address = peer.address.clone();
            self.inner.spawn("net-read", move || dial::run(&inner, &dialled, &address));
        }
        Ok(connection)
    }
}

impl Drop for DataPlane {
    fn drop(&mut self) {
        let inner = &self.inner;
        inner.stopping.store(true, Ordering::SeqCst);
        inner.all().iter().for_each(|connection| connection.on(Event::Leave));
        let deadline = Instant::now() + inner.options.farewell_timeout;
        let mut connections = inner.connections.lock();
        while !connections.is_empty() && !inner.changed.wait_until(&mut connections, deadline).timed_out() {}
        drop(connections);
        inner.all().iter().for_each(|connection| connection.on(Event::Broken(Fault::Leaving)));
        inner.changed.notify_all();
        // The listener has no other way to be woken.
        let _ = TcpStream::connect_timeout(&reachable(self.address), Duration::from_secs(1));
        let threads = std::mem::take(&mut *inner.threads.lock());
        for thread in threads {
            if thread.thread().id() != thread::current().id() {
                // A thread that panicked has said so.
                let _ = thread.join();
            }
        }
    }
}

impl Inner {
    pub(super) fn lowest(&self) -> Generation {
        Generation(self.lowest.load(Ordering::SeqCst))
    }

    /// Starts a thread that the shutdown waits for. Without one its work is dropped, and the link's clock ends what
    /// waits for it.
    pub(super) fn spawn(&self, name: &str, work: impl FnOnce() + Send + 'static) {
        let mut threads = self.threads.lock();
        threads.retain(|thread| !thread.is_finished());
        match thread::Builder::new().name(name.into()).spawn(work) {
            Ok(thread) => threads.push(thread),
            Err(error) => tracing::error!(%error, name, "the machine gives no thread"),
        }
    }

    fn all(&self) -> Vec<Arc<Connection>> {
        self.connections.lock().values().cloned().collect()
    }

    /// The connection of this key, and whether it was made just now.
    fn connection(self: &Arc<Self>, key: ConnectionKey) -> Result<(Arc<Connection>, bool), Fault> {
        let mut connections = self.connections.lock();
        if let Some(connection) = connections.get(&key).filter(|connection| !connection.is_over()) {
            return Ok((Arc::clone(connection), false));
        }
        // Under the lock that the shutdown takes: no connection is made behind its back.
        if self.stopping.load(Ordering::SeqCst) {
            return Err(Fault::Leaving);
        }
        if connections.len() >= self.options.connections {
            return Err(Fault::Io(format!("more than {} connections", self.options.connections)));
        }
        let made = self.make(key.clone());
        connections.insert(key, Arc::clone(&made));
        Ok((made, true))
    }

    /// The connection that a dialler gets. Who dials anew has lost the old one, whether we noticed or not.
    pub(super) fn accepted(self: &Arc<Self>, key: ConnectionKey) -> Result<Arc<Connection>, Fault> {
        loop {
            let (connection, _) = self.connection(key.clone())?;
            if connection.is_connecting() {
                return Ok(connection);
            }
            connection.on(Event::Broken(Fault::Superseded));
        }
    }

    fn make(self: &Arc<Self>, key: ConnectionKey) -> Arc<Connection> {
        let plane: Weak<Self> = Arc::downgrade(self);
        let on_over = move |connection: &Connection| {
            if let Some(plane) = plane.upgrade() {
                plane.forget(connection);
            }
        };
        let limits = self.options.link_limits();
        let failures = Arc::clone(&self.failures);
        Arc::new(Connection::new(key, limits, self.epoch, failures, Box::new(on_over)))
    }

    fn forget(&self, connection: &Connection) {
        let mut connections = self.connections.lock();
        if connections.get(&connection.key).is_some_and(|known| std::ptr::eq(Arc::as_ptr(known), connection)) {
            connections.remove(&connection.key);
        }
        self.changed.notify_all();
    }

    /// Reads a greeted connection on this thread and writes it on another, until it is over.
    pub(super) fn serve(&self, connection: &Arc<Connection>, halves: Halves, largest_batch: u32) {
        let Halves { read, write, stream } = halves;
        connection.connected(stream, largest_batch);
        let written = Arc::clone(connection);
        self.spawn("net-write", move || writer::run(&written, write));
        reader::run(connection, read, self.options.largest_batch);
    }

    /// Lets the links see the time pass.
    fn keep_time(&self) {
        let step = (self.options.heartbeat / 2).clamp(Duration::from_millis(5), Duration::from_millis(250));
        loop {
            let mut connections = self.connections.lock();
            if connections.is_empty() && self.stopping.load(Ordering::SeqCst) {
                return;
            }
            self.changed.wait_for(&mut connections, step);
            drop(connections);
            self.all().iter().for_each(|connection| connection.tick());
        }
    }
}

/// An address of this machine at which a listener on any address can be reached.
fn reachable(mut address: SocketAddr) -> SocketAddr {
    if address.ip().is_unspecified() {
        address.set_ip(match address {
            SocketAddr::V4(_) => IpAddr::V4(Ipv4Addr::LOCALHOST),
            SocketAddr::V6(_) => IpAddr::V6(Ipv6Addr::LOCALHOST),
        });
    }
    address
}
