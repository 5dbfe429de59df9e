//! The receiving ends: matched by key, metered, and closed by both sides.

use std::collections::{BTreeMap, HashMap};

use streamkeeper_types::Millis;

use crate::frame::{ChannelKey, Fault};

use super::{
    credit::{Cost, Credit, ReceiveWindow},
    event::InputId,
};

#[derive(Debug)]
pub(super) struct Incoming {
    channels: HashMap<u32, Channel>,
    inputs: HashMap<InputId, u32>,
    /// Ready here, not opened by the other end yet.
    expected: BTreeMap<ChannelKey, Expected>,
    /// Opened by the other end, not ready here yet.
    opened: BTreeMap<ChannelKey, Opened>,
    /// Numbers only grow, so that an old one is never taken for a new one.
    highest: u32,
    most: usize,
}

#[derive(Debug)]
struct Channel {
    key: ChannelKey,
    window: ReceiveWindow,
    /// `None`: we said that we close; what still comes is dropped.
    input: Option<InputId>,
}

#[derive(Debug)]
struct Expected {
    /// `None`: the task is gone before the other end opened the channel.
    input: Option<InputId>,
    window: Credit,
    since: Millis,
}

#[derive(Debug)]
struct Opened {
    channel: u32,
    since: Millis,
}

/// What the other end's opening of a channel leads to.
pub(super) enum Match {
    /// Both ends are there: this much room is granted.
    Joined(Credit),
    /// The receiving task came and went.
    Gone,
    Waiting,
}

/// What a producer's last word leads to.
pub(super) struct Abandoned {
    pub input: Option<InputId>,
    /// Our own last word is still to be said.
    pub unanswered: bool,
}

/// Ends that waited too long.
pub(super) struct Late {
    pub opened: Vec<u32>,
    pub expected: Vec<(InputId, ChannelKey)>,
}

impl Incoming {
    pub(super) fn new(most: usize) -> Self {
        Self {
            channels: HashMap::new(),
            inputs: HashMap::new(),
            expected: BTreeMap::new(),
            opened: BTreeMap::new(),
            highest: 0,
            most,
        }
    }

    /// A receiving end is ready; the channel that waited for it, if one did.
    pub(super) fn expect(
        &mut self,
        input: InputId,
        key: ChannelKey,
        window: Credit,
        now: Millis,
    ) -> Result<Option<u32>, Fault> {
        if let Some(opened) = self.opened.remove(&key) {
            self.join(opened.channel, key, input, window);
            return Ok(Some(opened.channel));
        }
        if self.expected.len() >= self.most {
            return Err(Fault::TooManyChannels(self.most));
        }
        self.expected.insert(key, Expected { input: Some(input), window, since: now });
        Ok(None)
    }

    /// The other end opened a channel.
    pub(super) fn opened(&mut self, channel: u32, key: ChannelKey, now: Millis) -> Result<Match, Fault> {
        if channel <= self.highest || self.opened.contains_key(&key) {
            return Err(Fault::ChannelReused(channel));
        }
        self.highest = channel;
        if self.channels.len() + self.opened.len() >= self.most {
            return Err(Fault::TooManyChannels(self.most));
        }
        match self.expected.remove(&key) {
            Some(Expected { input: Some(input), window, .. }) => {
                self.join(channel, key, input, window);
                Ok(Match::Joined(window))
            }
            Some(_) => {
                self.drop_what_comes(channel, key);
                Ok(Match::Gone)
            }
            None => {
                self.opened.insert(key, Opened { channel, since: now });
                Ok(Match::Waiting)
            }
        }
    }

    fn join(&mut self, channel: u32, key: ChannelKey, input: InputId, window: Credit) {
        self.inputs.insert(input, channel);
        self.channels.insert(channel, Channel { key, window: ReceiveWindow::new(window), input: Some(input) });
    }

    /// Keeps a channel that nobody reads until the other end has its last word said.
    fn drop_what_comes(&mut self, channel: u32, key: ChannelKey) {
        let window = ReceiveWindow::new(Credit::default());
        self.channels.insert(channel, Channel { key, window, input: None });
    }

    pub(super) fn admit(&self, channel: u32) -> Result<(), Fault> {
        let open = self.channels.get(&channel).ok_or(Fault::UnknownChannel(channel))?;
        if open.window.takes_records() { Ok(()) } else { Err(Fault::CreditExceeded(channel)) }
    }

    /// Where an element goes; `None` when its task is gone.
    pub(super) fn arrived(&mut self, channel: u32, cost: Cost, ends: bool) -> Result<Option<InputId>, Fault> {
        let open = self.channels.get_mut(&channel).ok_or(Fault::UnknownChannel(channel))?;
        open.window.arrived(cost, channel)?;
        let input = open.input;
        if ends {
            self.remove(channel);
        }
        Ok(input)
    }

    pub(super) fn consumed(&mut self, input: InputId, cost: Cost) -> Option<(u32, Credit)> {
        let channel = *self.inputs.get(&input)?;
        let credit = self.channels.get_mut(&channel)?.window.consumed(cost)?;
        Some((channel, credit))
    }

    /// The task is gone; the channel to close.
    pub(super) fn close(&mut self, input: InputId) -> Option<u32> {
        if let Some(expected) = self.expected.values_mut().find(|expected| expected.input == Some(input)) {
            expected.input = None;
        }
        let channel = self.inputs.remove(&input)?;
        self.channels.get_mut(&channel)?.input = None;
        Some(channel)
    }

    pub(super) fn abandoned(&mut self, channel: u32) -> Result<Abandoned, Fault> {
        if let Some(key) = self.opened.iter().find(|(_, opened)| opened.channel == channel).map(|(key, _)| *key) {
            self.opened.remove(&key);
            return Ok(Abandoned { input: None, unanswered: true });
        }
        let input = self.channels.get(&channel).ok_or(Fault::UnknownChannel(channel))?.input;
        self.remove(channel);
        Ok(Abandoned { input, unanswered: input.is_some() })
    }

    fn remove(&mut self, channel: u32) {
        let removed = self.channels.remove(&channel);
        if let Some(input) = removed.and_then(|channel| channel.input) {
            self.inputs.remove(&input);
        }
    }

    /// Gives up on ends that have waited since `before` or longer.
    pub(super) fn expire(&mut self, before: Millis) -> Late {
        let expected = self.expected.extract_if(.., |_, expected| expected.since <= before);
        let expected = expected.filter_map(|(key, expected)| Some((expected.input?, key))).collect();
        let late: Vec<_> = self.opened.extract_if(.., |_, opened| opened.since <= before).collect();
        let opened = late.iter().map(|(_, opened)| opened.channel).collect();
        for (key, Opened { channel, .. }) in late {
            self.drop_what_comes(channel, key);
        }
        Late { opened, expected }
    }

    pub(super) fn is_empty(&self) -> bool {
        let expects = self.expected.values().any(|expected| expected.input.is_some());
        self.channels.is_empty() && self.opened.is_empty() && !expects
    }

    /// Receiving ends that did not come to their end.
    pub(super) fn drain(&mut self) -> Vec<(InputId, ChannelKey)> {
        self.inputs.clear();
        self.opened.clear();
        let open = self.channels.drain().filter_map(|(_, channel)| channel.input.map(|input| (input, channel.key)));
        let mut drained: Vec<_> = open.collect();
        let expected = std::mem::take(&mut self.expected);
        drained.extend(expected.into_iter().filter_map(|(key, expected)| Some((expected.input?, key))));
        drained.sort_unstable();
        drained
    }
}
