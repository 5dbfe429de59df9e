//! One connection: the link behind a lock, and what its actions mean to threads and tasks.

use std::{
    collections::{HashMap, HashSet},
    net::{Shutdown, TcpStream},
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering},
    },
    time::{Duration, Instant},
};

use parking_lot::{Condvar, Mutex, MutexGuard};
use streamkeeper_types::{Generation, Millis};

use super::plane::{ChannelEnd, ChannelFailure, FailureSink};
use crate::{
    ChannelClosed, Element, GateFeeder, Interrupt,
    frame::{ChannelKey, Fault, Flags, Kind, PeerId},
    gate::INTERRUPT_CHECK,
    link::{Action, Event, Inbound, InputId, Link, LinkLimits, Outbound, Room},
};

/// An element ready to be written.
#[derive(Debug)]
pub(super) struct Encoded {
    pub kind: Kind,
    pub flags: Flags,
    pub body: Vec<u8>,
    pub checksum: u32,
}

/// The other TaskManager, and the generation that the connection serves.
pub(super) type ConnectionKey = (PeerId, Generation);

/// Called once when a connection is over, without any lock held.
pub(super) type OnOver = Box<dyn Fn(&Connection) + Send + Sync>;

pub(super) struct Connection {
    pub key: ConnectionKey,
    state: Mutex<State>,
    /// The writing thread waits here.
    writable: Condvar,
    /// Milliseconds of the plane's clock at which bytes last came.
    heard: AtomicI64,
    epoch: Instant,
    failures: FailureSink,
    on_over: OnOver,
}

struct State {
    link: Link<Encoded>,
    senders: HashMap<u32, Arc<Condvar>>,
    /// Sending channels whose task has to fail, rather than wait for its cancellation.
    failed: HashSet<u32>,
    inputs: HashMap<InputId, GateFeeder>,
    actions: Vec<Action>,
    stream: Option<TcpStream>,
    /// Largest batch that the other end takes, in bytes.
    largest_batch: u32,
}

/// What is to be done once the lock is released.
#[derive(Default)]
struct Aftermath {
    deliver: Option<GateFeeder>,
    failures: Vec<(Option<GateFeeder>, ChannelEnd, ChannelKey, Fault)>,
    over: bool,
}

impl Connection {
    pub(super) fn new(
        key: ConnectionKey,
        limits: LinkLimits,
        epoch: Instant,
        failures: FailureSink,
        on_over: OnOver,
    ) -> Self {
        let now = elapsed(epoch);
        let state = State {
            link: Link::new(limits, now),
            senders: HashMap::new(),
            failed: HashSet::new(),
            inputs: HashMap::new(),
            actions: Vec::new(),
            stream: None,
            largest_batch: 0,
        };
        Self {
            key,
            state: Mutex::new(state),
            writable: Condvar::new(),
            heard: AtomicI64::new(now),
            epoch,
            failures,
            on_over,
        }
    }

    fn now(&self) -> Millis {
        elapsed(self.epoch)
    }

    /// The greeting is over.
    pub(super) fn connected(&self, stream: TcpStream, largest_batch: u32) {
        let mut state = self.state.lock();
        if state.link.is_over() {
            // It ended during the greeting: let the reading thread see that.
            let _ = stream.shutdown(Shutdown::Both);
            return;
        }
        state.stream = Some(stream);
        state.largest_batch = largest_batch;
        self.note_heard();
        self.act(state, Event::Connected);
    }

    pub(super) fn is_over(&self) -> bool {
        self.state.lock().link.is_over()
    }

    pub(super) fn is_connecting(&self) -> bool {
        self.state.lock().link.is_connecting()
    }

    pub(super) fn on(&self, event: Event<Encoded>) {
        self.act(self.state.lock(), event);
    }

    /// Time passed.
    pub(super) fn tick(&self) {
        let mut state = self.state.lock();
        let heard = self.heard.load(Ordering::Relaxed);
        let State { link, actions, .. } = &mut *state;
        link.on(Event::Heard, heard, actions);
        self.act(state, Event::Tick);
    }

    /// Bytes came.
    pub(super) fn note_heard(&self) {
        self.heard.store(self.now(), Ordering::Relaxed);
    }

    /// A frame came; `element` goes where the link says.
    pub(super) fn receive(&self, frame: Inbound, element: Option<(Element, usize)>) {
        let deliver = self.act(self.state.lock(), Event::Received(frame));
        if let (Some(feeder), Some((element, bytes))) = (deliver, element) {
            feeder.push(element, bytes);
        }
    }

    /// Whether records may come over `channel`.
    pub(super) fn admit(&self, channel: u32) -> Result<(), Fault> {
        self.state.lock().link.admit(channel)
    }

    pub(super) fn open_sender(&self, key: ChannelKey) -> Result<(u32, Arc<Condvar>), Fault> {
        let mut state = self.state.lock();
        let channel = state.link.allot()?;
        let wake = Arc::new(Condvar::new());
        state.senders.insert(channel, Arc::clone(&wake));
        self.act(state, Event::ProducerReady { channel, key });
        Ok((channel, wake))
    }

    pub(super) fn close_sender(&self, channel: u32) {
        let mut state = self.state.lock();
        state.senders.remove(&channel);
        state.failed.remove(&channel);
        self.act(state, Event::ProducerGone { channel });
    }

    pub(super) fn open_input(&self, input: InputId, feeder: GateFeeder, event: Event<Encoded>) {
        let mut state = self.state.lock();
        state.inputs.insert(input, feeder);
        self.act(state, event);
    }

    /// Waits until `ask` says that there is room. The largest piece, the largest batch, and how long it took.
    pub(super) fn wait_for_room(
        &self,
        channel: u32,
        wake: &Condvar,
        interrupt: &Interrupt,
        ask: impl Fn(&Link<Encoded>, u32) -> Room,
    ) -> Result<(u32, u32, Duration), ChannelClosed> {
        let mut state = self.state.lock();
        let mut waited = Duration::ZERO;
        loop {
            match ask(&state.link, channel) {
                Room::Open { piece } => return Ok((piece, state.largest_batch, waited)),
                Room::Closed if state.failed.contains(&channel) => return Err(ChannelClosed::Connection),
                Room::Closed => return Err(ChannelClosed::Receiver),
                Room::Full => {}
            }
            if interrupt.is_set() {
                return Err(ChannelClosed::Interrupted);
            }
            let start = Instant::now();
            wake.wait_for(&mut state, INTERRUPT_CHECK);
            waited += start.elapsed();
        }
    }

    /// Frames to write: at least one, and not much more than `bytes`. `None`: the connection is over, or all is said.
    pub(super) fn wait_for_frames(&self, bytes: usize, frames: &mut Vec<Outbound<Encoded>>) -> Option<()> {
        let mut state = self.state.lock();
        loop {
            let now = self.now();
            let mut size = 0;
            while size < bytes && frames.len() < super::writer::MOST_FRAMES {
                let Some(frame) = state.link.next(now) else { break };
                if let Outbound::Element { element, .. } = &frame {
                    size += element.body.len();
                }
                frames.push(frame);
            }
            if !frames.is_empty() {
                return Some(());
            }
            if state.link.is_over() {
                return None;
            }
            self.writable.wait(&mut state);
        }
    }

    /// Lets the link decide, then does it: what only wakes threads at once, everything else without the lock.
    fn act(&self, mut state: MutexGuard<'_, State>, event: Event<Encoded>) -> Option<GateFeeder> {
        let now = self.now();
        let State { link, actions, .. } = &mut *state;
        link.on(event, now, actions);
        if actions.is_empty() {
            return None;
        }
        let mut actions = std::mem::take(&mut state.actions);
        let mut aftermath = Aftermath::default();
        for action in actions.drain(..) {
            self.perform(&mut state, action, &mut aftermath);
        }
        state.actions = actions;
        drop(state);
        for (feeder, end, channel, fault) in aftermath.failures {
            let error = fault.to_error(self.key.0.as_str()).at(channel.to_string());
            if let Some(feeder) = feeder {
                feeder.fail(error.clone());
            }
            (self.failures)(ChannelFailure { channel, end, peer: self.key.0.clone(), error });
        }
        if aftermath.over {
            (self.on_over)(self);
        }
        aftermath.deliver
    }

    fn perform(&self, state: &mut State, action: Action, aftermath: &mut Aftermath) {
        match action {
            Action::Write => {
                self.writable.notify_one();
            }
            Action::Wake { channel } => {
                if let Some(wake) = state.senders.get(&channel) {
                    wake.notify_all();
                }
            }
            Action::Deliver { input } => aftermath.deliver = state.inputs.get(&input).cloned(),
            Action::Release { input } => {
                state.inputs.remove(&input);
            }
            Action::FailProducer { channel, key, fault } => {
                if state.senders.contains_key(&channel) {
                    state.failed.insert(channel);
                }
                aftermath.failures.push((None, ChannelEnd::Producer, key, fault));
            }
            Action::FailConsumer { input, key, fault } => {
                let feeder = state.inputs.remove(&input);
                aftermath.failures.push((feeder, ChannelEnd::Consumer, key, fault));
            }
            Action::Disconnect { fault } => {
                let (peer, generation) = &self.key;
                match &fault {
                    Some(fault) => tracing::warn!(%peer, %generation, %fault, "connection lost"),
                    None => tracing::debug!(%peer, %generation, "connection closed"),
                }
                if let Some(stream) = state.stream.take() {
                    // It may be closed already.
                    let _ = stream.shutdown(Shutdown::Both);
                }
                self.writable.notify_all();
                aftermath.over = true;
            }
        }
    }
}

fn elapsed(epoch: Instant) -> Millis {
    super::options::millis(epoch.elapsed())
}
