//! A broken line fails the tasks at both ends, and nothing arrives in part.

use std::{
    thread::{self, JoinHandle},
    time::Duration,
};

use streamkeeper_network::{ChannelClosed, ChannelSender, Element, tcp::ChannelEnd, tcp::RemoteSender};
use streamkeeper_types::Code;

use crate::{
    batches::{numbers, values},
    proxy::Script,
    world::{World, next, tls, until_failure},
};

const CAPACITY: usize = 64 << 10;
const ROWS: i64 = 300;

/// Sends numbered batches until the channel is closed.
fn flood(mut sender: RemoteSender) -> JoinHandle<ChannelClosed> {
    thread::spawn(move || {
        let mut at = 0;
        loop {
            if let Err(closed) = sender.send(Element::Batch(numbers(at..at + ROWS))) {
                return closed;
            }
            at += ROWS;
        }
    })
}

/// Whole batches, without gap, from the first on.
fn assert_prefix(elements: &[Element]) {
    for (batch, element) in elements.iter().enumerate() {
        let start = i64::try_from(batch).unwrap() * ROWS;
        assert_eq!(values(element), (start..start + ROWS).collect::<Vec<_>>());
    }
}

fn check(world: &World) {
    let mut gate = world.gate(1, CAPACITY);
    let producer = flood(world.sender(0));
    let (elements, error) = until_failure(&mut gate);
    assert_prefix(&elements);
    assert_eq!(error.code, Code::ConnectionLost, "{error}");
    assert_eq!(producer.join().unwrap(), ChannelClosed::Connection);
    let (end, input, error) = world.a.failure();
    assert_eq!((end, input, error.code), (ChannelEnd::Producer, 0, Code::ConnectionLost));
    let (end, input, error) = world.b.failure();
    assert_eq!((end, input, error.code), (ChannelEnd::Consumer, 0, Code::ConnectionLost));
}

/// Places in the stream: greeting, between frames, in headers, in bodies.
fn places() -> impl Iterator<Item = usize> {
    (0..24).map(|n| 260 + n * 397)
}

#[test]
fn a_line_cut_anywhere_fails_both_ends_and_delivers_only_whole_batches() {
    for place in places() {
        check(&World::through(Script::CutAfter(place), |_| {}));
    }
}

#[test]
fn a_bit_that_flips_anywhere_is_noticed() {
    for place in places() {
        check(&World::through(Script::Corrupt(place), |_| {}));
    }
}

#[test]
fn the_same_holds_under_tls() {
    let tls = tls();
    for place in [6_000, 20_011] {
        check(&World::through(Script::CutAfter(place), |options| options.tls = Some(tls.clone())));
        let world = World::through(Script::Corrupt(place), |options| options.tls = Some(tls.clone()));
        let mut gate = world.gate(1, CAPACITY);
        let producer = flood(world.sender(0));
        assert_prefix(&until_failure(&mut gate).0);
        assert_eq!(producer.join().unwrap(), ChannelClosed::Connection);
    }
}

#[test]
fn a_line_that_says_nothing_more_fails_both_ends_though_it_stays_open() {
    let quick = Duration::from_millis(20);
    check(&World::through(Script::MuteAfter(5_000), |options| {
        options.heartbeat = quick;
        options.silence_timeout = 10 * quick;
    }));
}

#[test]
fn a_slow_line_of_tiny_packets_delivers_everything() {
    let world = World::through(Script::Dribble, |_| {});
    let mut gate = world.gate(1, CAPACITY);
    let mut sender = world.sender(0);
    let producer = thread::spawn(move || {
        for batch in 0..20 {
            sender.send(Element::Batch(numbers(batch * ROWS..(batch + 1) * ROWS))).unwrap();
        }
        sender.send(Element::EndOfPartition).unwrap();
    });
    let mut elements = Vec::new();
    while let (_, batch @ Element::Batch(_)) = next(&mut gate) {
        elements.push(batch);
    }
    assert_eq!(elements.len(), 20);
    assert_prefix(&elements);
    producer.join().unwrap();
}

#[test]
fn a_task_manager_that_leaves_with_open_channels_fails_both_ends() {
    let World { a, b, to_b, _proxy } = World::new();
    let world = World { a, b, to_b, _proxy };
    let mut gate = world.gate(1, CAPACITY);
    let mut sender = world.sender(0);
    sender.send(Element::Batch(numbers(0..ROWS))).unwrap();
    assert_eq!(values(&next(&mut gate).1).len(), usize::try_from(ROWS).unwrap());
    world.b.plane.shut_down();
    assert!(matches!(until_failure(&mut gate).1.code, Code::ConnectionLost));
    assert_eq!(world.a.failure().0, ChannelEnd::Producer);
    assert_eq!(sender.send(Element::Idle), Err(ChannelClosed::Connection));
}

#[test]
fn new_attempts_get_a_new_connection_after_a_break() {
    let world = World::through(Script::CutAfter(4_000), |_| {});
    check(&world);
    let mut gate = world.gate(1, CAPACITY);
    let mut sender = world.sender(0);
    sender.send(Element::Batch(numbers(0..ROWS))).unwrap();
    assert_prefix(&[next(&mut gate).1]);
}
