//! The protocol against a model: two links and two wires, no sockets, any interleaving.
#![allow(clippy::unwrap_used)]

use std::collections::{BTreeMap, VecDeque};

use proptest::prelude::*;
use streamkeeper_types::{AttemptId, Generation, SubtaskId, VertexId};

use super::*;
use crate::frame::ChannelKey;

const LIMITS: LinkLimits = LinkLimits { heartbeat: 100, silence: 1_000, connect: 5_000, deploy: 3_000, channels: 8 };
const WINDOW: u32 = 100;
const LARGEST: u32 = 40;
/// Channels in each direction.
const CHANNELS: usize = 3;

/// What is sent: a number that only the test knows, with its cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Item {
    number: u64,
    cost: Cost,
    ends: bool,
}

fn key(side: usize, channel: usize) -> ChannelKey {
    let attempt = |vertex| AttemptId {
        generation: Generation(1),
        subtask: SubtaskId { vertex: VertexId(vertex), index: u32::try_from(channel).unwrap() },
        number: 0,
    };
    let producer = u32::try_from(side).unwrap();
    ChannelKey { producer: attempt(producer), consumer: attempt(1 - producer), input: 0 }
}

/// One end: its link, and what its tasks did and saw.
struct Side {
    link: Link<Item>,
    actions: Vec<Action>,
    /// Number on the link of each sending channel.
    numbers: Vec<Option<u32>>,
    sent: Vec<Vec<Item>>,
    producer_gone: Vec<bool>,
    ready: Vec<bool>,
    /// Delivered and not yet consumed, by receiving channel.
    queued: Vec<VecDeque<Item>>,
    delivered: Vec<Vec<Item>>,
    consumer_gone: Vec<bool>,
    failed: BTreeMap<ChannelKey, Fault>,
    disconnected: Option<Option<Fault>>,
}

struct World {
    now: Millis,
    sides: [Side; 2],
    /// From side 0 to 1, and from 1 to 0.
    wires: [VecDeque<Outbound<Item>>; 2],
    next: u64,
}

impl World {
    fn new() -> Self {
        let side = || Side {
            link: Link::new(LIMITS, 0),
            actions: Vec::new(),
            numbers: vec![None; CHANNELS],
            sent: vec![Vec::new(); CHANNELS],
            producer_gone: vec![false; CHANNELS],
            ready: vec![false; CHANNELS],
            queued: vec![VecDeque::new(); CHANNELS],
            delivered: vec![Vec::new(); CHANNELS],
            consumer_gone: vec![false; CHANNELS],
            failed: BTreeMap::new(),
            disconnected: None,
        };
        let mut world = Self { now: 0, sides: [side(), side()], wires: [VecDeque::new(), VecDeque::new()], next: 0 };
        world.on(0, Event::Connected, None);
        world.on(1, Event::Connected, None);
        world
    }

    /// Lets a side decide and does what it says. `item`: the element that came with the event.
    fn on(&mut self, side: usize, event: Event<Item>, item: Option<Item>) {
        let now = self.now;
        let side = &mut self.sides[side];
        side.link.on(event, now, &mut side.actions);
        for action in std::mem::take(&mut side.actions) {
            match action {
                Action::Deliver { input } => {
                    let channel = usize::try_from(input.0).unwrap();
                    side.queued[channel].push_back(item.unwrap());
                    side.delivered[channel].push(item.unwrap());
                }
                Action::FailProducer { key, fault, .. } | Action::FailConsumer { key, fault, .. } => {
                    side.failed.insert(key, fault);
                }
                Action::Disconnect { fault } => side.disconnected = Some(fault),
                Action::Write | Action::Wake { .. } | Action::Release { .. } => {}
            }
        }
    }

    fn open(&mut self, side: usize, channel: usize) {
        if self.sides[side].numbers[channel].is_none() {
            let number = self.sides[side].link.allot().unwrap();
            self.sides[side].numbers[channel] = Some(number);
            self.on(side, Event::ProducerReady { channel: number, key: key(side, channel) }, None);
        }
    }

    fn expect(&mut self, side: usize, channel: usize) {
        if !std::mem::replace(&mut self.sides[side].ready[channel], true) {
            let window = Credit { bytes: WINDOW, events: EVENT_WINDOW };
            let input = InputId(channel as u64);
            self.on(side, Event::ConsumerReady { input, key: key(1 - side, channel), window }, None);
        }
    }

    /// Sends if there is room; whether it did.
    fn send(&mut self, side: usize, channel: usize, cost: Cost, ends: bool) -> bool {
        let Some(number) = self.sides[side].numbers[channel] else { return false };
        let link = &self.sides[side].link;
        let room = match cost {
            Cost::Records(_) => link.room_for_records(number),
            Cost::Event => link.room_for_event(number),
        };
        if !matches!(room, Room::Open { .. }) {
            return false;
        }
        self.next += 1;
        let item = Item { number: self.next, cost, ends };
        self.sides[side].sent[channel].push(item);
        self.on(side, Event::Send { channel: number, cost, ends, element: item }, None);
        true
    }

    fn consume(&mut self, side: usize, channel: usize) {
        if let Some(item) = self.sides[side].queued[channel].pop_front() {
            self.on(side, Event::Consumed { input: InputId(channel as u64), cost: item.cost }, None);
        }
    }

    /// One frame leaves `side`, or one arrives from it.
    fn write(&mut self, side: usize) -> bool {
        let now = self.now;
        let Some(frame) = self.sides[side].link.next(now) else { return false };
        self.wires[side].push_back(frame);
        true
    }

    fn arrive(&mut self, from: usize) -> bool {
        let Some(frame) = self.wires[from].pop_front() else { return false };
        let (inbound, item) = match frame {
            Outbound::Open { channel, key } => (Inbound::Open { channel, key }, None),
            Outbound::Element { channel, element } => {
                let Item { cost, ends, .. } = element;
                if matches!(cost, Cost::Records(_)) {
                    self.sides[1 - from].link.admit(channel).unwrap();
                }
                (Inbound::Element { channel, cost, ends }, Some(element))
            }
            Outbound::Abandon { channel } => (Inbound::Abandon { channel }, None),
            Outbound::Grant { channel, credit } => (Inbound::Grant { channel, credit }, None),
            Outbound::Close { channel, reason } => (Inbound::Close { channel, reason }, None),
            Outbound::Heartbeat => (Inbound::Heartbeat, None),
            Outbound::Goodbye => (Inbound::Goodbye, None),
        };
        self.on(1 - from, Event::Received(inbound), item);
        true
    }

    fn settle(&mut self) {
        while (0..2).any(|side| self.write(side) || self.arrive(side)) {}
    }

    fn check(&self) {
        for side in 0..2 {
            assert_eq!(self.sides[side].disconnected, None);
            for channel in 0..CHANNELS {
                let sent = &self.sides[side].sent[channel];
                let receiver = &self.sides[1 - side];
                let delivered = &receiver.delivered[channel];
                assert!(sent.starts_with(delivered), "order, without gaps: {sent:?} {delivered:?}");
                let consumed = delivered.len() - receiver.queued[channel].len();
                let unread: u32 = sent[consumed..].iter().map(|item| bytes(item.cost)).sum();
                assert!(unread < WINDOW + LARGEST, "{unread} bytes are under way");
            }
        }
    }

    /// An event goes whatever the records do.
    fn check_events_are_free(&self, side: usize, channel: usize) {
        let (sender, receiver) = (&self.sides[side], &self.sides[1 - side]);
        let Some(number) = sender.numbers[channel] else { return };
        let is_open = receiver.ready[channel] && !receiver.consumer_gone[channel] && !sender.producer_gone[channel];
        let is_ended = sender.sent[channel].last().is_some_and(|item| item.ends);
        if is_open && !is_ended && self.wires.iter().all(VecDeque::is_empty) {
            assert!(matches!(sender.link.room_for_event(number), Room::Open { .. }));
        }
    }
}

fn bytes(cost: Cost) -> u32 {
    match cost {
        Cost::Records(bytes) => bytes,
        Cost::Event => 0,
    }
}

#[derive(Debug, Clone, Copy)]
enum Op {
    Open(usize, usize),
    Expect(usize, usize),
    Records(usize, usize, u32),
    Event(usize, usize),
    End(usize, usize),
    ProducerGone(usize, usize),
    ConsumerGone(usize, usize),
    Consume(usize, usize),
    Write(usize),
    Arrive(usize),
    Tick,
}

fn op() -> impl Strategy<Value = Op> {
    let at = || (0usize..2, 0usize..CHANNELS);
    prop_oneof![
        2 => at().prop_map(|(s, c)| Op::Open(s, c)),
        2 => at().prop_map(|(s, c)| Op::Expect(s, c)),
        8 => (at(), 1..=LARGEST).prop_map(|((s, c), bytes)| Op::Records(s, c, bytes)),
        3 => at().prop_map(|(s, c)| Op::Event(s, c)),
        1 => at().prop_map(|(s, c)| Op::End(s, c)),
        1 => at().prop_map(|(s, c)| Op::ProducerGone(s, c)),
        1 => at().prop_map(|(s, c)| Op::ConsumerGone(s, c)),
        8 => at().prop_map(|(s, c)| Op::Consume(s, c)),
        12 => (0usize..2).prop_map(Op::Write),
        12 => (0usize..2).prop_map(Op::Arrive),
        1 => Just(Op::Tick),
    ]
}

fn run(world: &mut World, op: Op) {
    match op {
        Op::Open(side, channel) => world.open(side, channel),
        Op::Expect(side, channel) => world.expect(side, channel),
        Op::Records(side, channel, bytes) => {
            world.send(side, channel, Cost::Records(bytes), false);
        }
        Op::Event(side, channel) => {
            world.send(side, channel, Cost::Event, false);
        }
        Op::End(side, channel) => {
            world.send(side, channel, Cost::Event, true);
        }
        Op::ProducerGone(side, channel) => {
            if let Some(number) = world.sides[side].numbers[channel] {
                world.sides[side].producer_gone[channel] = true;
                world.on(side, Event::ProducerGone { channel: number }, None);
            }
        }
        Op::ConsumerGone(side, channel) => {
            if world.sides[side].ready[channel] {
                world.sides[side].consumer_gone[channel] = true;
                world.sides[side].queued[channel].clear();
                world.on(side, Event::ConsumerGone { input: InputId(channel as u64) }, None);
            }
        }
        Op::Consume(side, channel) => world.consume(side, channel),
        Op::Write(side) => {
            world.write(side);
        }
        Op::Arrive(from) => {
            world.arrive(from);
        }
        Op::Tick => {
            world.now += 50;
            world.on(0, Event::Tick, None);
            world.on(1, Event::Tick, None);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    /// Order without gaps, memory within bounds, no event held up by records, no wait without end, nothing left over.
    #[test]
    fn any_interleaving_keeps_order_bounds_and_progress(ops in prop::collection::vec(op(), 0..250)) {
        let mut world = World::new();
        for op in ops {
            // The silence of a slow test is not what is tested here.
            if matches!(op, Op::Tick) {
                world.settle();
            }
            run(&mut world, op);
            world.check();
        }
        world.settle();
        for side in 0..2 {
            for channel in 0..CHANNELS {
                world.open(side, channel);
                world.expect(side, channel);
            }
        }
        world.settle();
        for side in 0..2 {
            for channel in 0..CHANNELS {
                world.check_events_are_free(side, channel);
                let (sender, receiver) = (&world.sides[side], &world.sides[1 - side]);
                let is_whole = !sender.producer_gone[channel] && !receiver.consumer_gone[channel];
                if is_whole {
                    prop_assert_eq!(&sender.sent[channel], &receiver.delivered[channel]);
                }
                let ended = sender.sent[channel].last().is_some_and(|item| item.ends);
                while !world.sides[1 - side].queued[channel].is_empty() {
                    world.consume(1 - side, channel);
                }
                world.settle();
                if is_whole && !ended {
                    prop_assert!(world.send(side, channel, Cost::Records(1), false), "all was read: there is room");
                    prop_assert!(world.send(side, channel, Cost::Event, true));
                }
                let number = world.sides[side].numbers[channel].unwrap();
                world.on(side, Event::ProducerGone { channel: number }, None);
            }
        }
        // A consumer that was gone before its channel was opened is not known when it is.
        world.now += LIMITS.deploy;
        for side in 0..2 {
            world.on(side, Event::Heard, None);
            world.on(side, Event::Tick, None);
        }
        world.settle();
        for side in &world.sides {
            prop_assert!(side.link.is_idle(), "every channel is forgotten");
            prop_assert_eq!(&side.disconnected, &None);
        }
    }

    /// Whatever is under way when the connection breaks: each end fails exactly the channels that did not end.
    #[test]
    fn a_break_fails_whatever_did_not_end_at_both_ends(ops in prop::collection::vec(op(), 0..120)) {
        let mut world = World::new();
        for op in ops.into_iter().filter(|op| !matches!(op, Op::Tick | Op::ProducerGone(..) | Op::ConsumerGone(..))) {
            run(&mut world, op);
        }
        for side in 0..2 {
            world.on(side, Event::Broken(Fault::Closed), None);
        }
        for side in 0..2 {
            for channel in 0..CHANNELS {
                let receiver = &world.sides[1 - side];
                let has_end = receiver.delivered[channel].last().is_some_and(|item| item.ends);
                if receiver.ready[channel] {
                    prop_assert_eq!(receiver.failed.contains_key(&key(side, channel)), !has_end);
                }
                if world.sides[side].numbers[channel].is_some() && !has_end {
                    prop_assert!(world.sides[side].failed.contains_key(&key(side, channel)));
                }
            }
            prop_assert_eq!(&world.sides[side].disconnected, &Some(Some(Fault::Closed)));
            prop_assert!(world.sides[side].link.next(world.now).is_none());
        }
    }
}

/// A world with channel 0 from side 0 to side 1 in place.
fn joined() -> World {
    let mut world = World::new();
    world.open(0, 0);
    world.expect(1, 0);
    world.settle();
    world
}

#[test]
fn r11_a_barrier_neither_waits_for_room_nor_overtakes_records() {
    let mut world = joined();
    while world.send(0, 0, Cost::Records(LARGEST), false) {}
    assert!(world.send(0, 0, Cost::Event, false), "records are out of room, the barrier is not");
    world.settle();
    let delivered = &world.sides[1].delivered[0];
    assert_eq!(delivered.len(), 4, "three batches fill 100 bytes");
    assert_eq!(delivered.last().map(|item| item.cost), Some(Cost::Event));
    world.check();
}

#[test]
fn a_full_channel_does_not_stall_its_neighbours_and_they_take_turns() {
    let mut world = joined();
    world.open(0, 1);
    world.expect(1, 1);
    world.settle();
    while world.send(0, 0, Cost::Records(10), false) {}
    for _ in 0..3 {
        assert!(world.send(0, 1, Cost::Records(10), false));
    }
    let mut turns = Vec::new();
    while let Some(Outbound::Element { channel, .. }) = world.sides[0].link.next(0) {
        turns.push(channel);
    }
    assert_eq!(turns[..6], [1, 2, 1, 2, 1, 2]);
    assert!(world.send(0, 1, Cost::Records(10), false), "the neighbour goes on");
    assert!(!world.send(0, 0, Cost::Records(10), false));
}

#[test]
fn events_without_end_are_bounded_too() {
    let mut world = joined();
    for _ in 0..EVENT_WINDOW {
        assert!(world.send(0, 0, Cost::Event, false));
    }
    assert!(!world.send(0, 0, Cost::Event, false));
    world.settle();
    for _ in 0..EVENT_WINDOW / 4 {
        world.consume(1, 0);
    }
    world.settle();
    assert!(world.send(0, 0, Cost::Event, false));
}

#[test]
fn nothing_is_sent_before_both_ends_are_there_whichever_comes_first() {
    for consumer_first in [false, true] {
        let mut world = World::new();
        if consumer_first {
            world.expect(1, 0);
            world.settle();
        }
        world.open(0, 0);
        assert!(!world.send(0, 0, Cost::Event, false));
        if !consumer_first {
            world.settle();
            assert!(!world.send(0, 0, Cost::Event, false));
            world.expect(1, 0);
        }
        world.settle();
        assert!(world.send(0, 0, Cost::Event, false));
    }
}

#[test]
fn what_was_sent_goes_out_before_the_channel_is_abandoned() {
    let mut world = joined();
    world.send(0, 0, Cost::Records(7), false);
    world.send(0, 0, Cost::Event, false);
    world.on(0, Event::ProducerGone { channel: 1 }, None);
    world.settle();
    assert_eq!(world.sides[1].delivered[0].len(), 2);
    assert!(world.sides.iter().all(|side| side.link.is_idle()));
}

#[test]
fn a_consumer_that_is_gone_before_its_channel_is_opened_closes_it_at_once() {
    let mut world = World::new();
    world.expect(1, 0);
    world.on(1, Event::ConsumerGone { input: InputId(0) }, None);
    world.open(0, 0);
    world.settle();
    assert_eq!(world.sides[0].link.room_for_event(1), Room::Closed);
    assert!(world.sides[0].failed.is_empty());
    assert!(world.sides.iter().all(|side| side.link.is_idle()));
}

fn check_fault(frames: &[Inbound], expected: &Fault) {
    let mut world = joined();
    for frame in frames {
        let item = Item { number: 0, cost: Cost::Event, ends: false };
        world.on(1, Event::Received(frame.clone()), Some(item));
    }
    assert_eq!(world.sides[1].disconnected, Some(Some(expected.clone())), "{frames:?}");
}

#[test]
fn a_peer_that_breaks_the_rules_is_cut_off() {
    let element = |channel, cost| Inbound::Element { channel, cost, ends: false };
    let other = key(0, 1);
    let credit = Credit { bytes: u32::MAX, events: 0 };
    check_fault(&[element(9, Cost::Event)], &Fault::UnknownChannel(9));
    check_fault(&[Inbound::Abandon { channel: 9 }], &Fault::UnknownChannel(9));
    check_fault(&[Inbound::Grant { channel: 9, credit }], &Fault::UnknownChannel(9));
    check_fault(&[Inbound::Close { channel: 9, reason: CloseReason::Gone }], &Fault::UnknownChannel(9));
    check_fault(&[Inbound::Open { channel: 1, key: other }], &Fault::ChannelReused(1));
    check_fault(&[Inbound::Open { channel: 0, key: other }], &Fault::ChannelReused(0));
    let twice = [Inbound::Open { channel: 2, key: other }, Inbound::Open { channel: 3, key: other }];
    check_fault(&twice, &Fault::ChannelReused(3));
    let early = [Inbound::Open { channel: 2, key: other }, element(2, Cost::Event)];
    check_fault(&early, &Fault::UnknownChannel(2));
    check_fault(&[element(1, Cost::Records(WINDOW)), element(1, Cost::Records(1))], &Fault::CreditExceeded(1));
    check_fault(&[Inbound::Goodbye], &Fault::Left);
    let many: Vec<_> = (2..20).map(|n| Inbound::Open { channel: n, key: key(0, n as usize) }).collect();
    check_fault(&many, &Fault::TooManyChannels(LIMITS.channels));
}

#[test]
fn a_peer_that_makes_us_answer_and_does_not_read_is_cut_off() {
    let mut world = joined();
    for number in 2..1_000 {
        let frames = [Inbound::Open { channel: number, key: key(0, 1) }, Inbound::Abandon { channel: number }];
        for frame in frames {
            world.on(1, Event::Received(frame), None);
        }
    }
    assert_eq!(world.sides[1].disconnected, Some(Some(Fault::Flooded)));
}

#[test]
fn credit_without_bounds_is_refused() {
    let mut window = SendWindow::default();
    let credit = Credit { bytes: u32::MAX, events: u32::MAX };
    assert!((0..300).any(|_| window.granted(credit).is_err()));
}

#[test]
fn silence_ends_a_link_and_heartbeats_prevent_it() {
    let mut world = joined();
    for _ in 0..40 {
        world.now += LIMITS.heartbeat;
        for side in 0..2 {
            world.on(side, Event::Tick, None);
        }
        world.settle();
    }
    world.check();
    world.now += LIMITS.silence;
    world.on(0, Event::Tick, None);
    assert_eq!(world.sides[0].disconnected, Some(Some(Fault::Silent(LIMITS.silence))));
    assert!(world.sides[0].failed.contains_key(&key(0, 0)));
}

#[test]
fn an_end_that_waits_too_long_for_the_other_fails_alone() {
    let mut world = joined();
    world.open(0, 1);
    world.expect(1, 2);
    world.settle();
    for _ in 0..=LIMITS.deploy / LIMITS.heartbeat {
        world.now += LIMITS.heartbeat;
        for side in 0..2 {
            world.on(side, Event::Tick, None);
        }
        world.settle();
    }
    assert_eq!(world.sides[0].failed, BTreeMap::from([(key(0, 1), Fault::ChannelRefused)]));
    assert_eq!(world.sides[1].failed, BTreeMap::from([(key(0, 2), Fault::NotDeployed(LIMITS.deploy))]));
    assert!(world.send(0, 0, Cost::Event, false), "the others go on");
}

#[test]
fn a_farewell_comes_after_everything_queued_and_ends_both_ends_in_peace() {
    let mut world = joined();
    world.send(0, 0, Cost::Records(7), false);
    world.send(0, 0, Cost::Event, true);
    world.on(0, Event::Leave, None);
    world.settle();
    assert_eq!(world.sides[1].delivered[0].len(), 2);
    assert_eq!(world.sides[0].disconnected, Some(None), "it has the other's farewell, and hangs up");
    world.on(1, Event::Broken(Fault::Closed), None);
    assert_eq!(world.sides[1].disconnected, Some(None), "the channel had ended: nobody fails");
    assert!(world.sides.iter().all(|side| side.failed.is_empty()));
}
