//! Room: bounded, per channel, and never in the way of events.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
};

use streamkeeper_network::{Arrival, ChannelClosed, ChannelSender, Compression, Element, Interrupt};
use streamkeeper_types::{Code, Watermark};

use crate::{
    batches::{numbers, values},
    world::{LONG, World, key, next},
};

const CAPACITY: usize = 64 << 10;

#[test]
fn a_reader_that_stops_bounds_its_sender_while_the_neighbour_flows() {
    let world = World::new();
    let mut gate = world.gate(2, CAPACITY);
    let interrupt = Interrupt::default();
    let mut blocked = world.sender_with(0, Compression::None, interrupt.clone());
    let mut neighbour = world.sender(1);
    for sender in [&mut blocked, &mut neighbour] {
        sender.send(Element::Idle).unwrap();
        next(&mut gate);
    }
    let sent = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&sent);
    let producer = thread::spawn(move || {
        loop {
            match blocked.send(Element::Batch(numbers(0..1_000))) {
                Ok(one) => counter.fetch_add(one.bytes, Ordering::SeqCst),
                Err(closed) => return closed,
            };
        }
    });
    // The task reads channel 1 alone, as in an alignment.
    gate.block(0);
    for turn in 0..200 {
        neighbour.send(Element::Batch(numbers(turn..turn + 1_000))).unwrap();
        let (channel, element) = next(&mut gate);
        assert_eq!((channel, values(&element)[0]), (1, turn));
    }
    assert!(sent.load(Ordering::SeqCst) <= CAPACITY, "{sent:?} bytes are under way");
    interrupt.set();
    assert_eq!(producer.join().unwrap(), ChannelClosed::Interrupted);
}

#[test]
fn what_the_task_reads_becomes_room_again() {
    let world = World::new();
    let mut gate = world.gate(1, CAPACITY);
    let mut sender = world.sender(0);
    let producer = thread::spawn(move || {
        for turn in 0..500 {
            sender.send(Element::Batch(numbers(turn..turn + 2_000))).unwrap();
        }
        sender.send(Element::EndOfPartition).unwrap();
    });
    let mut rows = 0;
    while let (_, batch @ Element::Batch(_)) = next(&mut gate) {
        rows += values(&batch).len();
    }
    assert_eq!(rows, 500 * 2_000);
    producer.join().unwrap();
}

#[test]
fn an_event_goes_while_records_have_no_room() {
    let world = World::new();
    let mut gate = world.gate(1, CAPACITY);
    let mut sender = world.sender(0);
    let mut bytes = 0;
    let mut batches = 0;
    // Half of the capacity is the window; the batch that fills it is the last that goes without waiting.
    while bytes < CAPACITY / 2 {
        bytes += sender.send(Element::Batch(numbers(0..100))).unwrap().bytes;
        batches += 1;
    }
    sender.send(Element::Watermark(Watermark(7))).unwrap();
    for _ in 0..batches {
        assert!(matches!(next(&mut gate).1, Element::Batch(_)));
    }
    assert!(matches!(next(&mut gate).1, Element::Watermark(Watermark(7))), "behind the records, not before them");
}

#[test]
fn a_sender_without_room_returns_when_the_receiving_task_ends() {
    let world = World::new();
    let gate = world.gate(1, CAPACITY);
    let mut sender = world.sender(0);
    let producer = thread::spawn(move || {
        loop {
            if let Err(closed) = sender.send(Element::Batch(numbers(0..1_000))) {
                return closed;
            }
        }
    });
    drop(gate);
    assert_eq!(producer.join().unwrap(), ChannelClosed::Receiver);
    assert!(world.a.failures.try_recv().is_err(), "the task that ended is at fault, not the connection");
}

#[test]
fn a_sender_that_ends_early_neither_ends_nor_fails_the_channel() {
    let world = World::new();
    let mut gate = world.gate(2, CAPACITY);
    let mut first = world.sender(0);
    let mut second = world.sender(1);
    first.send(Element::Batch(numbers(0..1))).unwrap();
    assert_eq!(next(&mut gate).0, 0);
    drop(first);
    second.send(Element::EndOfPartition).unwrap();
    assert_eq!(next(&mut gate).0, 1);
    assert!(matches!(gate.poll(LONG), Arrival::Opened), "both have said where they stand");
    assert!(matches!(gate.poll(std::time::Duration::ZERO), Arrival::TimedOut));
}

#[test]
fn a_row_larger_than_the_largest_frame_is_refused_and_one_larger_than_the_window_is_not() {
    let world = World::with(|options| options.largest_batch = 1 << 20);
    let mut gate = world.gate(1, CAPACITY);
    let mut sender = world.sender(0);
    let row = |bytes: usize| {
        let text: arrow::array::StringArray = std::iter::once(Some("x".repeat(bytes))).collect();
        arrow::array::RecordBatch::try_from_iter([("s", Arc::new(text) as arrow::array::ArrayRef)]).unwrap()
    };
    sender.send(Element::Batch(row(CAPACITY * 4))).unwrap();
    assert!(matches!(next(&mut gate).1, Element::Batch(batch) if batch.num_rows() == 1));
    assert_eq!(sender.send(Element::Batch(row(2 << 20))), Err(ChannelClosed::Unsendable));
}

#[test]
fn an_end_that_nobody_deploys_fails_at_both_ends() {
    let world = World::with(|options| options.deploy_timeout = std::time::Duration::from_millis(50));
    let mut gate = world.gate(1, CAPACITY);
    let mut sender = world.a.plane.sender(&world.to_b, key(1, 5), Compression::None, Interrupt::default()).unwrap();
    assert_eq!(sender.send(Element::Idle), Err(ChannelClosed::Connection));
    assert_eq!(world.a.failure().2.code, Code::ConnectionLost);
    assert!(matches!(gate.poll(LONG), Arrival::Failed(error) if error.code == Code::ConnectionLost));
    assert_eq!(world.b.failure().1, 0);
}
