//! Everything that one connection between two TaskManagers decides: no I/O, no thread, no clock.
//!
//! [`Link::on`] takes an [`Event`] and the time, and answers with [`Action`]s; [`Link::next`] gives the frame to write
//! next. The shell in `tcp` performs; a simulator can do the same without sockets, with elements as they are.
//!
//! ```text
//!  task ─ Send ─▶ queue of its channel ─┐ in turn
//!  task ─ Send ─▶ queue of its channel ─┼─▶ next() ─▶ wire ─▶ Received ─▶ Deliver ─▶ gate
//!  grants, farewells, heartbeats ───────┘ first                   ◀─ Grant ── Consumed ◀─ task
//! ```
//! **Credit is spent when an element is queued**, not when it is written: what waits here has its room at the receiver
//! already, so a queue is bounded by the receiver's window, no channel waits for another, and a channel's elements,
//! barriers among them, leave in the order in which they were sent.
//!
//! **A channel is closed by both ends**: the producer's last word is the end of the partition or that it abandons, the
//! consumer's that it closes. Each says it once, and forgets the channel when it has both.

mod credit;
mod event;
mod incoming;
mod outgoing;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;

use streamkeeper_types::Millis;

use crate::frame::{CloseReason, Fault};

pub use credit::{Cost, Credit, EVENT_WINDOW, ReceiveWindow, Room, SendWindow};
pub use event::{Action, Event, Inbound, InputId, Outbound};

use incoming::{Incoming, Match};
use outgoing::Outgoing;

/// Bounds of a link, in milliseconds unless said otherwise.
#[derive(Debug, Clone, Copy)]
pub struct LinkLimits {
    /// A heartbeat goes out when nothing was written for this long.
    pub heartbeat: Millis,
    /// The other end is lost when nothing came for this long.
    pub silence: Millis,
    /// From the link's start until both ends talk.
    pub connect: Millis,
    /// From one end of a channel being ready until the other is.
    pub deploy: Millis,
    /// Channels in one direction.
    pub channels: usize,
}

/// Answers that may wait for a channel: its opening and close, and grants, of which what may be under way at once yields
/// at most eight for records and four for events.
const ANSWERS: usize = 16;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Connecting,
    Up,
    /// Everything queued is still written, then a farewell.
    Leaving,
    /// Our farewell is said.
    Parted,
    Over,
}

/// One connection, as one end sees it.
#[derive(Debug)]
pub struct Link<B> {
    limits: LinkLimits,
    phase: Phase,
    outgoing: Outgoing<B>,
    incoming: Incoming,
    /// Frames that go before any element.
    urgent: VecDeque<Outbound<B>>,
    started: Millis,
    written: Millis,
    heard: Millis,
}

impl<B> Link<B> {
    #[must_use]
    pub fn new(limits: LinkLimits, now: Millis) -> Self {
        Self {
            limits,
            phase: Phase::Connecting,
            outgoing: Outgoing::new(limits.channels),
            incoming: Incoming::new(limits.channels),
            urgent: VecDeque::new(),
            started: now,
            written: now,
            heard: now,
        }
    }

    /// A number for a new sending channel, never used before on this link.
    ///
    /// # Errors
    /// When there are too many channels.
    pub fn allot(&mut self) -> Result<u32, Fault> {
        self.outgoing.allot()
    }

    /// Whether a batch may be sent now.
    #[must_use]
    pub fn room_for_records(&self, channel: u32) -> Room {
        self.outgoing.room(channel, SendWindow::room_for_records)
    }

    /// Whether an event may be sent now.
    #[must_use]
    pub fn room_for_event(&self, channel: u32) -> Room {
        self.outgoing.room(channel, SendWindow::room_for_event)
    }

    /// Whether the other end may send records over `channel`: asked when a header came and before memory is taken.
    ///
    /// # Errors
    /// When the channel is not open or has no credit left.
    pub fn admit(&self, channel: u32) -> Result<(), Fault> {
        self.incoming.admit(channel)
    }

    /// Whether it ended, for whatever reason.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.phase == Phase::Over
    }

    #[must_use]
    pub fn is_connecting(&self) -> bool {
        self.phase == Phase::Connecting
    }

    /// Whether it stands and carries nothing, nor will by what is known.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.outgoing.is_empty() && self.incoming.is_empty() && self.urgent.is_empty()
    }

    /// Takes in an event; what is to be done is added to `actions`. After the end every event is ignored, but a new
    /// channel is failed at once.
    pub fn on(&mut self, event: Event<B>, now: Millis, actions: &mut Vec<Action>) {
        if self.phase == Phase::Over {
            return refuse_late(event, actions);
        }
        if let Err(fault) = self.step(event, now, actions) {
            self.end(Some(fault), actions);
        }
    }

    fn step(&mut self, event: Event<B>, now: Millis, actions: &mut Vec<Action>) -> Result<(), Fault> {
        match event {
            Event::Connected => {
                if self.phase == Phase::Connecting {
                    self.phase = Phase::Up;
                }
                (self.written, self.heard) = (now, now);
                actions.push(Action::Write);
            }
            Event::ProducerReady { channel, key } => {
                self.outgoing.ready(channel, key);
                self.say(Outbound::Open { channel, key }, actions)?;
            }
            Event::ConsumerReady { input, key, window } => {
                if let Some(channel) = self.incoming.expect(input, key, window, now)? {
                    self.say(Outbound::Grant { channel, credit: window }, actions)?;
                }
            }
            Event::Send { channel, cost, ends, element } => {
                if self.outgoing.send(channel, cost, ends, element) {
                    actions.push(Action::Write);
                }
            }
            Event::ProducerGone { channel } => {
                if self.outgoing.abandon(channel) {
                    actions.push(Action::Write);
                }
            }
            Event::Consumed { input, cost } => {
                if let Some((channel, credit)) = self.incoming.consumed(input, cost) {
                    self.say(Outbound::Grant { channel, credit }, actions)?;
                }
            }
            Event::ConsumerGone { input } => {
                if let Some(channel) = self.incoming.close(input) {
                    self.say(Outbound::Close { channel, reason: CloseReason::Gone }, actions)?;
                }
                actions.push(Action::Release { input });
            }
            Event::Received(frame) => {
                self.heard = now;
                self.receive(frame, now, actions)?;
            }
            Event::Heard => self.heard = self.heard.max(now),
            Event::Tick => self.tick(now, actions)?,
            Event::Leave => {
                if self.phase == Phase::Connecting {
                    let fault = (!self.is_idle()).then_some(Fault::Leaving);
                    self.end(fault, actions);
                    return Ok(());
                }
                if self.phase == Phase::Up {
                    self.phase = Phase::Leaving;
                }
                actions.push(Action::Write);
            }
            // Both have said farewell, or the other end has heard ours, and hung up.
            Event::Broken(_) if self.phase == Phase::Parted && self.is_idle() => self.end(None, actions),
            Event::Broken(fault) => return Err(fault),
        }
        Ok(())
    }

    fn receive(&mut self, frame: Inbound, now: Millis, actions: &mut Vec<Action>) -> Result<(), Fault> {
        match frame {
            Inbound::Open { channel, key } => match self.incoming.opened(channel, key, now)? {
                Match::Joined(credit) => self.say(Outbound::Grant { channel, credit }, actions)?,
                Match::Gone => self.say(Outbound::Close { channel, reason: CloseReason::Gone }, actions)?,
                Match::Waiting => {}
            },
            Inbound::Element { channel, cost, ends } => {
                let Some(input) = self.incoming.arrived(channel, cost, ends)? else { return Ok(()) };
                actions.push(Action::Deliver { input });
                if ends {
                    actions.push(Action::Release { input });
                    self.say(Outbound::Close { channel, reason: CloseReason::Ended }, actions)?;
                }
            }
            Inbound::Abandon { channel } => {
                let abandoned = self.incoming.abandoned(channel)?;
                if let Some(input) = abandoned.input {
                    actions.push(Action::Release { input });
                }
                if abandoned.unanswered {
                    self.say(Outbound::Close { channel, reason: CloseReason::Gone }, actions)?;
                }
            }
            Inbound::Grant { channel, credit } => {
                self.outgoing.granted(channel, credit)?;
                actions.push(Action::Wake { channel });
            }
            Inbound::Close { channel, reason } => {
                let closed = self.outgoing.closed(channel, reason)?;
                if closed.unanswered {
                    self.say(Outbound::Abandon { channel }, actions)?;
                }
                if reason == CloseReason::Unknown {
                    let fault = Fault::ChannelRefused;
                    actions.push(Action::FailProducer { channel, key: closed.key, fault });
                }
                actions.push(Action::Wake { channel });
            }
            Inbound::Heartbeat => {}
            Inbound::Goodbye => {
                if !self.outgoing.is_empty() || !self.incoming.is_empty() {
                    return Err(Fault::Left);
                }
                if self.phase == Phase::Parted {
                    self.end(None, actions);
                    return Ok(());
                }
                // Our last words are still on their way; the other end hangs up once it has them.
                self.phase = Phase::Leaving;
                actions.push(Action::Write);
            }
        }
        Ok(())
    }

    fn tick(&mut self, now: Millis, actions: &mut Vec<Action>) -> Result<(), Fault> {
        if self.phase == Phase::Connecting {
            let late = now - self.started >= self.limits.connect;
            return if late { Err(Fault::NotConnected(self.limits.connect)) } else { Ok(()) };
        }
        if now - self.heard >= self.limits.silence {
            return Err(Fault::Silent(now - self.heard));
        }
        let is_quiet = self.urgent.is_empty() && self.outgoing.is_quiet();
        if self.phase != Phase::Parted && is_quiet && now - self.written >= self.limits.heartbeat {
            self.say(Outbound::Heartbeat, actions)?;
        }
        let late = self.incoming.expire(now - self.limits.deploy);
        for channel in late.opened {
            self.say(Outbound::Close { channel, reason: CloseReason::Unknown }, actions)?;
        }
        for (input, key) in late.expected {
            let fault = Fault::NotDeployed(self.limits.deploy);
            actions.push(Action::FailConsumer { input, key, fault });
        }
        Ok(())
    }

    /// The next frame to write. `None`: wait for [`Action::Write`].
    pub fn next(&mut self, now: Millis) -> Option<Outbound<B>> {
        if !matches!(self.phase, Phase::Up | Phase::Leaving) {
            return None;
        }
        let frame = self.urgent.pop_front().or_else(|| self.outgoing.next());
        let frame = match frame {
            None if self.phase == Phase::Leaving => {
                self.phase = Phase::Parted;
                Some(Outbound::Goodbye)
            }
            frame => frame,
        };
        if frame.is_some() {
            self.written = now;
        }
        frame
    }

    /// # Errors
    /// When the other end makes us answer and does not read the answers: these are the only frames without credit.
    fn say(&mut self, frame: Outbound<B>, actions: &mut Vec<Action>) -> Result<(), Fault> {
        if self.urgent.len() >= self.limits.channels * ANSWERS {
            return Err(Fault::Flooded);
        }
        self.urgent.push_back(frame);
        actions.push(Action::Write);
        Ok(())
    }

    /// Fails whatever is not ended.
    fn end(&mut self, fault: Option<Fault>, actions: &mut Vec<Action>) {
        self.phase = Phase::Over;
        self.urgent.clear();
        let cause = fault.clone().unwrap_or(Fault::Left);
        for (channel, key) in self.outgoing.drain() {
            actions.push(Action::FailProducer { channel, key, fault: cause.clone() });
            actions.push(Action::Wake { channel });
        }
        for (input, key) in self.incoming.drain() {
            actions.push(Action::FailConsumer { input, key, fault: cause.clone() });
        }
        actions.push(Action::Disconnect { fault });
    }
}

fn refuse_late<B>(event: Event<B>, actions: &mut Vec<Action>) {
    match event {
        Event::ProducerReady { channel, key } => {
            actions.push(Action::FailProducer { channel, key, fault: Fault::Closed });
            actions.push(Action::Wake { channel });
        }
        Event::ConsumerReady { input, key, .. } => {
            actions.push(Action::FailConsumer { input, key, fault: Fault::Closed });
        }
        _ => {}
    }
}
