//! A task's inputs: bounded in-process channels that share one lock and one ready list.
//!
//! ```text
//!  sender 0 ──▶ [batch barrier]        ┐
//!  sender 1 ──▶ [batch batch] blocked  ├─▶ ready: 0, 2 ──▶ poll()
//!  sender 2 ──▶ [watermark]            ┘
//! ```
//! The lock is taken once a batch, never once a record. A channel holds at most its capacity in bytes, but always
//! lets one batch in when it is empty, however large. Behind its first element a channel is read only when every
//! channel has delivered its own ([`Arrival::Opened`]).

use std::{
    collections::VecDeque,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use parking_lot::{Condvar, Mutex};
use streamkeeper_types::Error;

use crate::{Element, opening::Opening};

/// The other end is gone: the receiving task ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ChannelClosed {
    #[error("the receiving task is gone")]
    Receiver,
    #[error("the sending task was interrupted")]
    Interrupted,
    /// The cause goes to whoever registered the channel.
    #[error("the connection to the receiving task broke")]
    Connection,
    /// A row larger than the largest frame, or a type that does not travel; the cause is in the log.
    #[error("a batch cannot be sent to another TaskManager")]
    Unsendable,
}

/// An output channel of a task.
pub trait ChannelSender: Send {
    /// Puts an element in, waiting for room if it is a batch.
    ///
    /// # Errors
    /// When the receiver is gone or the sending task is interrupted.
    fn send(&mut self, element: Element) -> Result<Sent, ChannelClosed>;
}

/// What one send cost.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Sent {
    /// [`Element::bytes`] of the element.
    pub bytes: usize,
    /// How long the send waited for room: back-pressure.
    pub waited: Duration,
}

/// Ends a task's blocking calls; set once, at cancellation.
#[derive(Debug, Clone, Default)]
pub struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    pub fn set(&self) {
        self.0.store(true, Ordering::SeqCst);
    }

    #[must_use]
    pub fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// What `poll` found.
#[derive(Debug)]
pub enum Arrival {
    /// `bytes` is what [`Element::bytes`] gives: it was computed once, at the sender.
    Element {
        channel: usize,
        element: Element,
        bytes: usize,
    },
    /// The connection of a channel broke: the task has to fail. Comes before anything still queued, and again at each
    /// further call.
    Failed(Error),
    /// Every channel has delivered its first element; comes once, before any second one. A cancel marker is not counted.
    Opened,
    /// Somebody called [`GateWaker::wake`]: look at the mailbox.
    Woken,
    TimedOut,
}

#[derive(Debug)]
struct Channel {
    /// Elements with their bytes.
    queue: VecDeque<(Element, usize)>,
    bytes: usize,
    blocked: bool,
    listed: bool,
    /// Set for a channel that is fed from outside the process.
    feed: Option<Arc<dyn Feed>>,
}

/// Behind a channel that is fed from outside the process: learns what the task takes out, and so may let more in.
pub trait Feed: std::fmt::Debug + Send + Sync {
    /// The task took out an element that was pushed with `bytes`.
    fn consumed(&self, bytes: usize, is_control: bool);
    /// The gate is gone.
    fn closed(&self);
}

#[derive(Debug)]
struct State {
    channels: Vec<Channel>,
    ready: VecDeque<usize>,
    opening: Opening,
    /// [`Arrival::Opened`] is to be told.
    opened: bool,
    woken: bool,
    closed: bool,
    failed: Option<Error>,
}

#[derive(Debug)]
struct Shared {
    state: Mutex<State>,
    readable: Condvar,
    writable: Condvar,
    capacity: usize,
}

impl State {
    /// Puts a channel with something to read onto the ready list, once.
    fn list(&mut self, index: usize) {
        let channel = &mut self.channels[index];
        if !channel.listed && !channel.blocked && !channel.queue.is_empty() && !self.opening.holds(index) {
            channel.listed = true;
            self.ready.push_back(index);
        }
    }

    fn list_all(&mut self) {
        (0..self.channels.len()).for_each(|index| self.list(index));
    }

    /// Takes the next element of a listed channel; lists what may be read now.
    fn take(&mut self, index: usize) -> Option<(Element, usize)> {
        let (element, bytes) = self.channels[index].queue.pop_front()?;
        self.channels[index].bytes -= bytes;
        if self.opening.on_element(index, &element) {
            self.opened = true;
            self.list_all();
        }
        self.list(index);
        Some((element, bytes))
    }
}

/// The receiving end of all channels of one task.
#[derive(Debug)]
pub struct InputGate {
    shared: Arc<Shared>,
}

/// The sending end of one in-process channel.
#[derive(Debug)]
pub struct LocalSender {
    shared: Arc<Shared>,
    channel: usize,
    interrupt: Interrupt,
}

/// Puts elements into one channel from outside the process. It never waits: room is the [`Feed`]'s business.
#[derive(Debug, Clone)]
pub struct GateFeeder {
    shared: Arc<Shared>,
    channel: usize,
}

/// Makes a blocked `poll` return.
#[derive(Debug, Clone)]
pub struct GateWaker {
    shared: Arc<Shared>,
}

/// How often a sender that waits for room looks whether its task was cancelled.
pub(crate) const INTERRUPT_CHECK: Duration = Duration::from_millis(20);

impl InputGate {
    /// A gate with `channels` channels of `capacity` bytes each.
    #[must_use]
    pub fn new(channels: usize, capacity: usize) -> Self {
        let channel = || Channel { queue: VecDeque::new(), bytes: 0, blocked: false, listed: false, feed: None };
        let state = State {
            channels: (0..channels).map(|_| channel()).collect(),
            ready: VecDeque::new(),
            opening: Opening::new(channels),
            opened: false,
            woken: false,
            closed: false,
            failed: None,
        };
        Self {
            shared: Arc::new(Shared {
                state: Mutex::new(state),
                readable: Condvar::new(),
                writable: Condvar::new(),
                capacity,
            }),
        }
    }

    /// The sender of one channel, for the task that `interrupt` belongs to.
    #[must_use]
    pub fn sender(&self, channel: usize, interrupt: Interrupt) -> LocalSender {
        LocalSender { shared: Arc::clone(&self.shared), channel, interrupt }
    }

    /// The outside end of one channel, fed from outside the process from now on.
    #[must_use]
    pub fn feeder(&self, channel: usize, feed: Arc<dyn Feed>) -> GateFeeder {
        self.shared.state.lock().channels[channel].feed = Some(feed);
        GateFeeder { shared: Arc::clone(&self.shared), channel }
    }

    #[must_use]
    pub fn waker(&self) -> GateWaker {
        GateWaker { shared: Arc::clone(&self.shared) }
    }

    /// Number of channels, open or not.
    #[must_use]
    pub fn channels(&self) -> usize {
        self.shared.state.lock().channels.len()
    }

    /// The next element of any channel that is not blocked, in turn.
    pub fn poll(&mut self, timeout: Duration) -> Arrival {
        let deadline = Instant::now() + timeout;
        let mut state = self.shared.state.lock();
        loop {
            if std::mem::take(&mut state.woken) {
                return Arrival::Woken;
            }
            if let Some(error) = &state.failed {
                return Arrival::Failed(error.clone());
            }
            if std::mem::take(&mut state.opened) {
                return Arrival::Opened;
            }
            if let Some(index) = state.ready.pop_front() {
                state.channels[index].listed = false;
                if state.channels[index].blocked {
                    continue;
                }
                let was_full = state.channels[index].bytes >= self.shared.capacity;
                let Some((element, bytes)) = state.take(index) else { continue };
                if was_full {
                    self.shared.writable.notify_all();
                }
                let feed = state.channels[index].feed.clone();
                drop(state);
                if let Some(feed) = feed {
                    feed.consumed(bytes, element.is_control());
                }
                return Arrival::Element { channel: index, element, bytes };
            }
            if self.shared.readable.wait_until(&mut state, deadline).timed_out() {
                return Arrival::TimedOut;
            }
        }
    }

    /// Stops reading a channel; what is in it stays in order.
    pub fn block(&mut self, channel: usize) {
        self.shared.state.lock().channels[channel].blocked = true;
    }

    /// Reads all channels again.
    pub fn unblock_all(&mut self) {
        let mut state = self.shared.state.lock();
        for channel in &mut state.channels {
            channel.blocked = false;
        }
        state.list_all();
    }
}

impl Drop for InputGate {
    fn drop(&mut self) {
        let mut state = self.shared.state.lock();
        state.closed = true;
        for channel in &mut state.channels {
            channel.queue.clear();
        }
        let feeds: Vec<_> = state.channels.iter_mut().filter_map(|channel| channel.feed.take()).collect();
        drop(state);
        self.shared.writable.notify_all();
        feeds.iter().for_each(|feed| feed.closed());
    }
}

impl GateFeeder {
    /// Puts an element in; `bytes` is what it takes up. After the gate is gone it is dropped.
    pub fn push(&self, element: Element, bytes: usize) {
        let mut state = self.shared.state.lock();
        if state.closed {
            return;
        }
        let channel = &mut state.channels[self.channel];
        channel.queue.push_back((element, bytes));
        channel.bytes += bytes;
        state.list(self.channel);
        drop(state);
        self.shared.readable.notify_one();
    }

    /// Fails the task: what its channels still hold is of no use, since it starts again from a checkpoint.
    pub fn fail(&self, error: Error) {
        let mut state = self.shared.state.lock();
        state.failed.get_or_insert(error);
        drop(state);
        self.shared.readable.notify_one();
    }
}

impl GateWaker {
    pub fn wake(&self) {
        self.shared.state.lock().woken = true;
        self.shared.readable.notify_one();
    }
}

impl ChannelSender for LocalSender {
    fn send(&mut self, element: Element) -> Result<Sent, ChannelClosed> {
        let bytes = element.bytes();
        let mut state = self.shared.state.lock();
        let mut waited = Duration::ZERO;
        while !state.closed && !element.is_control() && state.channels[self.channel].bytes >= self.shared.capacity {
            if self.interrupt.is_set() {
                return Err(ChannelClosed::Interrupted);
            }
            let start = Instant::now();
            self.shared.writable.wait_for(&mut state, INTERRUPT_CHECK);
            waited += start.elapsed();
        }
        if state.closed {
            return Err(ChannelClosed::Receiver);
        }
        let channel = &mut state.channels[self.channel];
        channel.queue.push_back((element, bytes));
        channel.bytes += bytes;
        state.list(self.channel);
        drop(state);
        self.shared.readable.notify_one();
        Ok(Sent { bytes, waited })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::sync::Arc;

    use arrow::{
        array::{Int64Array, RecordBatch},
        datatypes::{DataType, Field, Schema},
    };
    use streamkeeper_types::Watermark;

    use super::*;

    fn batch(rows: i64) -> Element {
        let schema = Arc::new(Schema::new(vec![Field::new("v", DataType::Int64, false)]));
        let values: Int64Array = (0..rows).collect();
        Element::Batch(RecordBatch::try_new(schema, vec![Arc::new(values)]).unwrap())
    }

    fn next(gate: &mut InputGate) -> Option<(usize, Element)> {
        loop {
            match gate.poll(Duration::ZERO) {
                Arrival::Element { channel, element, .. } => return Some((channel, element)),
                Arrival::Opened => {}
                Arrival::Woken | Arrival::TimedOut | Arrival::Failed(_) => return None,
            }
        }
    }

    /// A gate whose channels have delivered their first element.
    fn opened(channels: usize, capacity: usize) -> (InputGate, Vec<LocalSender>) {
        let mut gate = InputGate::new(channels, capacity);
        let mut senders: Vec<_> = (0..channels).map(|i| gate.sender(i, Interrupt::default())).collect();
        for sender in &mut senders {
            sender.send(Element::Idle).unwrap();
        }
        while next(&mut gate).is_some() {}
        (gate, senders)
    }

    #[test]
    fn elements_of_one_channel_keep_their_order_and_channels_take_turns() {
        let (mut gate, mut senders) = opened(2, 1 << 20);
        for time in 0..3 {
            for sender in &mut senders {
                sender.send(Element::Watermark(Watermark(time))).unwrap();
            }
        }
        let seen: Vec<(usize, i64)> = std::iter::from_fn(|| next(&mut gate))
            .map(|(channel, element)| match element {
                Element::Watermark(w) => (channel, w.0),
                other => panic!("{other:?}"),
            })
            .collect();
        assert_eq!(seen, [(0, 0), (1, 0), (0, 1), (1, 1), (0, 2), (1, 2)]);
    }

    #[test]
    fn a_blocked_channel_is_not_read_and_loses_nothing() {
        let (mut gate, mut senders) = opened(2, 1 << 20);
        senders[0].send(batch(1)).unwrap();
        gate.block(0);
        senders[1].send(batch(2)).unwrap();
        assert_eq!(next(&mut gate).unwrap().0, 1);
        assert!(next(&mut gate).is_none());
        senders[0].send(batch(3)).unwrap();
        gate.unblock_all();
        let rows: Vec<usize> = std::iter::from_fn(|| next(&mut gate))
            .map(|(_, element)| match element {
                Element::Batch(b) => b.num_rows(),
                other => panic!("{other:?}"),
            })
            .collect();
        assert_eq!(rows, [1, 3]);
    }

    #[test]
    fn a_full_channel_makes_batches_wait_but_lets_barriers_in() {
        let mut gate = InputGate::new(1, 64);
        let mut sender = gate.sender(0, Interrupt::default());
        sender.send(batch(1000)).unwrap();
        sender.send(Element::EndOfData).unwrap();
        let blocked = std::thread::spawn(move || {
            sender.send(batch(7)).unwrap();
        });
        assert!(matches!(next(&mut gate), Some((0, Element::Batch(_)))));
        blocked.join().unwrap();
        assert!(matches!(next(&mut gate), Some((0, Element::EndOfData))));
        assert!(matches!(next(&mut gate), Some((0, Element::Batch(b))) if b.num_rows() == 7));
    }

    #[test]
    fn an_interrupted_or_orphaned_sender_returns() {
        let gate = InputGate::new(1, 1);
        let interrupt = Interrupt::default();
        let mut sender = gate.sender(0, interrupt.clone());
        sender.send(batch(10)).unwrap();
        interrupt.set();
        assert_eq!(sender.send(batch(10)), Err(ChannelClosed::Interrupted));
        drop(gate);
        assert_eq!(sender.send(batch(10)), Err(ChannelClosed::Receiver));
    }

    #[test]
    fn a_fed_channel_tells_what_is_taken_out_and_a_failure_comes_before_all_else() {
        #[derive(Debug, Default)]
        struct Taken(Mutex<Vec<(usize, bool)>>, AtomicBool);
        impl Feed for Taken {
            fn consumed(&self, bytes: usize, is_control: bool) {
                self.0.lock().push((bytes, is_control));
            }
            fn closed(&self) {
                self.1.store(true, Ordering::SeqCst);
            }
        }
        let mut gate = InputGate::new(2, 1);
        let taken = Arc::new(Taken::default());
        let feeder = gate.feeder(1, Arc::<Taken>::clone(&taken));
        gate.sender(0, Interrupt::default()).send(Element::Idle).unwrap();
        feeder.push(batch(3), 500);
        feeder.push(Element::Idle, 0);
        feeder.push(batch(4), 600);
        assert!(matches!(next(&mut gate), Some((0, Element::Idle))));
        assert!(matches!(next(&mut gate), Some((1, Element::Batch(_)))));
        assert!(matches!(next(&mut gate), Some((1, Element::Idle))));
        assert_eq!(*taken.0.lock(), [(500, false), (0, true)]);
        feeder.fail(Error::internal("gone"));
        feeder.fail(Error::internal("later"));
        for _ in 0..2 {
            assert!(matches!(gate.poll(Duration::ZERO), Arrival::Failed(error) if error.cause == "gone"));
        }
        drop(gate);
        assert!(taken.1.load(Ordering::SeqCst));
        feeder.push(Element::Idle, 0);
    }

    #[test]
    fn wake_ends_a_poll_once() {
        let mut gate = InputGate::new(1, 1);
        gate.waker().wake();
        assert!(matches!(gate.poll(Duration::from_secs(5)), Arrival::Woken));
        assert!(matches!(gate.poll(Duration::ZERO), Arrival::TimedOut));
    }
}
