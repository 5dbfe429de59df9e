//! When a task begins to read behind the first element of its channels.
//!
//! A channel's first element says where its sender stands in time: a watermark (the lowest, if it promises nothing yet)
//! or idleness. Until every channel has said so, none is read further:
//!
//! ```text
//!  channel 0 ──▶ watermark │ batch, watermark 60, batch with a row of 40 …    ← said: waits
//!  channel 1 ──▶                                                              ← silent: does it hold the watermark back?
//! ```
//! Otherwise the row of 40 would be late or not, depending on which comes first: the watermark 60 on one channel, or
//! the idleness of a source without splits on the other.
//!
//! Nothing waits for ever: a task says it on all its channels before its first batch, so whoever is stopped by a full
//! channel has spoken; and control elements need no room.

use crate::Element;

#[derive(Debug)]
pub(crate) struct Opening {
    spoken: Vec<bool>,
    silent: usize,
}

impl Opening {
    pub(crate) fn new(channels: usize) -> Self {
        Self { spoken: vec![false; channels], silent: channels }
    }

    /// Whether a channel must not be read because others are still silent.
    pub(crate) fn holds(&self, channel: usize) -> bool {
        self.silent > 0 && self.spoken[channel]
    }

    /// An element of a channel is about to be delivered. `true` if it is what the other channels waited for.
    pub(crate) fn on_element(&mut self, channel: usize, element: &Element) -> bool {
        if self.silent == 0 || self.spoken[channel] || !speaks(element) {
            return false;
        }
        self.spoken[channel] = true;
        self.silent -= 1;
        self.silent == 0
    }
}

/// Everything but a cancel marker: a source may have to pass that on before it knows of any split. Barriers and batches
/// come behind a first watermark or idleness; should one come first, its channel counts as active.
fn speaks(element: &Element) -> bool {
    !matches!(element, Element::CancelBarrier(_))
}
