//! What a link is told, and what it answers.

use crate::frame::{ChannelKey, CloseReason, Fault};

use super::credit::{Cost, Credit};

/// A receiving end at this TaskManager: the caller's name for one channel of one gate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct InputId(pub u64);

/// What happens to a link. `B` is an element in the form in which it is sent.
#[derive(Debug)]
pub enum Event<B> {
    /// Both ends agreed to talk.
    Connected,
    /// A task here has a sending end; its number comes from [`super::Link::allot`].
    ProducerReady { channel: u32, key: ChannelKey },
    /// A task here has a receiving end, with room for `window`.
    ConsumerReady { input: InputId, key: ChannelKey, window: Credit },
    /// The task sends; [`super::Link::room_for_records`] or `room_for_event` said that it may.
    Send { channel: u32, cost: Cost, ends: bool, element: B },
    /// The sending task ended. After the end of the partition it means nothing.
    ProducerGone { channel: u32 },
    /// The receiving task took an element out of its gate.
    Consumed { input: InputId, cost: Cost },
    /// The receiving task ended.
    ConsumerGone { input: InputId },
    /// The other end sent this.
    Received(Inbound),
    /// Bytes came, whatever they are.
    Heard,
    /// Time passed.
    Tick,
    /// No new channels: say farewell once everything is sent.
    Leave,
    /// It is over.
    Broken(Fault),
}

/// A frame as it comes in; an element itself stays with the caller.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Inbound {
    Open { channel: u32, key: ChannelKey },
    Element { channel: u32, cost: Cost, ends: bool },
    Abandon { channel: u32 },
    Grant { channel: u32, credit: Credit },
    Close { channel: u32, reason: CloseReason },
    Heartbeat,
    Goodbye,
}

/// A frame to be written.
#[derive(Debug, PartialEq, Eq)]
pub enum Outbound<B> {
    Open { channel: u32, key: ChannelKey },
    Element { channel: u32, element: B },
    Abandon { channel: u32 },
    Grant { channel: u32, credit: Credit },
    Close { channel: u32, reason: CloseReason },
    Heartbeat,
    Goodbye,
}

/// What the caller is to do, in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// Hand the element that just came to this input.
    Deliver { input: InputId },
    /// [`super::Link::next`] has something.
    Write,
    /// The sender of this channel may look again: there is room, or the channel is closed.
    Wake { channel: u32 },
    /// The sending task has to fail.
    FailProducer { channel: u32, key: ChannelKey, fault: Fault },
    /// The receiving task has to fail.
    FailConsumer { input: InputId, key: ChannelKey, fault: Fault },
    /// Forget this input: nothing more comes for it.
    Release { input: InputId },
    /// Close the connection, at once. Last action of a link.
    Disconnect { fault: Option<Fault> },
}
