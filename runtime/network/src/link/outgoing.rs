//! The sending ends: a queue per channel, read in turn.

use std::collections::{HashMap, VecDeque};

use crate::frame::{ChannelKey, CloseReason, Fault};

use super::{
    credit::{Cost, Credit, Room, SendWindow},
    event::Outbound,
};

#[derive(Debug)]
pub(super) struct Outgoing<B> {
    channels: HashMap<u32, Channel<B>>,
    /// Channels with something to say, each once.
    ready: VecDeque<u32>,
    next: u32,
    most: usize,
}

#[derive(Debug)]
struct Channel<B> {
    key: ChannelKey,
    window: SendWindow,
    queue: VecDeque<B>,
    end: End,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    Open,
    /// The end of the partition is queued or written.
    Ended,
    /// Said once everything queued is.
    Abandoned {
        said: bool,
    },
}

/// What a consumer's last word leads to.
pub(super) struct Closed {
    pub key: ChannelKey,
    /// Our own last word is still to be said.
    pub unanswered: bool,
}

impl<B> Outgoing<B> {
    pub(super) fn new(most: usize) -> Self {
        Self { channels: HashMap::new(), ready: VecDeque::new(), next: 1, most }
    }

    pub(super) fn allot(&mut self) -> Result<u32, Fault> {
        if self.channels.len() >= self.most || self.next == u32::MAX {
            return Err(Fault::TooManyChannels(self.most));
        }
        self.next += 1;
        Ok(self.next - 1)
    }

    pub(super) fn ready(&mut self, channel: u32, key: ChannelKey) {
        let fresh = Channel { key, window: SendWindow::default(), queue: VecDeque::new(), end: End::Open };
        self.channels.insert(channel, fresh);
    }

    pub(super) fn room(&self, channel: u32, ask: impl Fn(&SendWindow) -> Room) -> Room {
        let open = self.channels.get(&channel).filter(|c| c.end == End::Open);
        open.map_or(Room::Closed, |channel| ask(&channel.window))
    }

    /// Queues an element; `false` when the channel takes no more.
    pub(super) fn send(&mut self, channel: u32, cost: Cost, ends: bool, element: B) -> bool {
        let Some(open) = self.channels.get_mut(&channel).filter(|c| c.end == End::Open) else { return false };
        open.window.spend(cost);
        if ends {
            open.end = End::Ended;
        }
        if open.queue.is_empty() {
            self.ready.push_back(channel);
        }
        open.queue.push_back(element);
        true
    }

    /// Lets what is queued go, and then says that nothing follows. `false`: the channel had its last word already.
    pub(super) fn abandon(&mut self, channel: u32) -> bool {
        let Some(open) = self.channels.get_mut(&channel).filter(|c| c.end == End::Open) else { return false };
        open.end = End::Abandoned { said: false };
        if open.queue.is_empty() {
            self.ready.push_back(channel);
        }
        true
    }

    pub(super) fn granted(&mut self, channel: u32, credit: Credit) -> Result<(), Fault> {
        let channel = self.channels.get_mut(&channel).ok_or(Fault::UnknownChannel(channel))?;
        channel.window.granted(credit)
    }

    pub(super) fn closed(&mut self, channel: u32, reason: CloseReason) -> Result<Closed, Fault> {
        let closed = self.channels.remove(&channel).ok_or(Fault::UnknownChannel(channel))?;
        self.ready.retain(|ready| *ready != channel);
        if reason == CloseReason::Ended && (closed.end != End::Ended || !closed.queue.is_empty()) {
            return Err(Fault::Malformed("a partition is called ended before its end".into()));
        }
        let said = match closed.end {
            End::Open => false,
            End::Ended => closed.queue.is_empty(),
            End::Abandoned { said } => said,
        };
        Ok(Closed { key: closed.key, unanswered: !said })
    }

    /// The next frame of the channel whose turn it is.
    pub(super) fn next(&mut self) -> Option<Outbound<B>> {
        let number = self.ready.pop_front()?;
        let channel = self.channels.get_mut(&number)?;
        let Some(element) = channel.queue.pop_front() else {
            channel.end = End::Abandoned { said: true };
            return Some(Outbound::Abandon { channel: number });
        };
        if !channel.queue.is_empty() || channel.end == (End::Abandoned { said: false }) {
            self.ready.push_back(number);
        }
        Some(Outbound::Element { channel: number, element })
    }

    pub(super) fn is_quiet(&self) -> bool {
        self.ready.is_empty()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.channels.is_empty()
    }

    /// Channels that did not come to their end, the other end's word included.
    pub(super) fn drain(&mut self) -> Vec<(u32, ChannelKey)> {
        self.ready.clear();
        let drained = self.channels.drain().filter(|(_, channel)| !matches!(channel.end, End::Abandoned { .. }));
        let mut drained: Vec<_> = drained.map(|(number, channel)| (number, channel.key)).collect();
        drained.sort_unstable();
        drained
    }
}
