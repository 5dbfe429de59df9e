//! Channels between the tasks of one deployment.

use std::collections::VecDeque;

use streamkeeper_protocol::Barrier;

/// Rows that a channel holds before its source waits.
const CAPACITY: usize = 12;

/// What travels on a channel, in order.
#[derive(Debug, Clone)]
pub(crate) enum Element {
    Record { split: u32, position: u32, key: u32 },
    Barrier(Barrier),
    EndOfData,
    EndOfPartition,
}

/// All channels of a deployment: one from each source to each counter.
#[derive(Debug, Default)]
pub(crate) struct Dataflow {
    sources: usize,
    channels: Vec<VecDeque<Element>>,
}

impl Dataflow {
    pub(crate) fn new(sources: usize, counters: usize) -> Self {
        Self { sources, channels: vec![VecDeque::new(); sources * counters] }
    }

    pub(crate) fn has_room(&self, source: usize) -> bool {
        self.channels.iter().skip(source).step_by(self.sources).all(|channel| channel.len() < CAPACITY)
    }

    pub(crate) fn send(&mut self, source: usize, counter: usize, element: Element) {
        self.channels[counter * self.sources + source].push_back(element);
    }

    pub(crate) fn broadcast(&mut self, source: usize, element: &Element) {
        for channel in self.channels.iter_mut().skip(source).step_by(self.sources) {
            channel.push_back(element.clone());
        }
    }

    pub(crate) fn has_element(&self, source: usize, counter: usize) -> bool {
        !self.channels[counter * self.sources + source].is_empty()
    }

    pub(crate) fn receive(&mut self, source: usize, counter: usize) -> Option<Element> {
        self.channels[counter * self.sources + source].pop_front()
    }

    pub(crate) fn sources(&self) -> usize {
        self.sources
    }
}
