//! What is sent arrives, all of it, in order, and at its place.

use std::{collections::BTreeMap, thread};

use streamkeeper_network::{ChannelSender, Compression, Element, InputGate, Interrupt, tcp::TlsOptions};
use streamkeeper_protocol::{Barrier, CheckpointKind, SnapshotFormat};
use streamkeeper_types::{CheckpointId, Watermark};

use crate::{
    batches::{numbers, values, wide},
    world::{World, back_key, next, tls},
};

fn barrier(id: u64) -> Element {
    Element::Barrier(Barrier {
        id: CheckpointId(id),
        timestamp: 1_700_000_000_000,
        kind: CheckpointKind::Checkpoint,
        format: SnapshotFormat::Native,
        target: format!("chk-{id}"),
        full: false,
    })
}

/// Elements as text; batches by their content.
fn text(element: &Element) -> String {
    format!("{element:?}")
}

fn round_trip(tls: Option<TlsOptions>, compression: Compression) {
    let world = World::with(|options| options.tls.clone_from(&tls));
    let mut gate = world.gate(1, 1 << 20);
    let mut sender = world.sender_with(0, compression, Interrupt::default());
    let whole = wide(1_000);
    let sent = [
        Element::Watermark(Watermark(3)),
        Element::Batch(whole.clone()),
        barrier(1),
        Element::Batch(whole.slice(700, 100)),
        // Another schema on the same channel, and back.
        Element::Batch(numbers(0..10)),
        Element::Idle,
        Element::Batch(wide(1)),
        Element::CancelBarrier(CheckpointId(1)),
        Element::EndOfData,
        Element::EndOfPartition,
    ];
    for element in &sent {
        sender.send(element.clone()).unwrap();
    }
    for element in &sent {
        let (channel, received) = next(&mut gate);
        assert_eq!(channel, 0);
        match (element, &received) {
            (Element::Batch(sent), Element::Batch(received)) => assert_eq!(sent, received),
            _ => assert_eq!(text(element), text(&received)),
        }
    }
    drop(sender);
    world.a.plane.shut_down();
    world.b.plane.shut_down();
    assert!(world.a.failures.try_recv().is_err() && world.b.failures.try_recv().is_err(), "it ended in peace");
}

#[test]
fn elements_arrive_as_they_were_sent_with_and_without_tls_and_lz4() {
    for compression in [Compression::None, Compression::Lz4] {
        round_trip(None, compression);
        round_trip(Some(tls()), compression);
    }
}

#[test]
fn barriers_keep_their_exact_place_among_records() {
    let world = World::new();
    let mut gate = world.gate(1, 64 << 10);
    let mut sender = world.sender(0);
    let producer = thread::spawn(move || {
        let mut at = 0;
        for id in 0..200 {
            // Some larger than the window, which go in pieces.
            let rows = 1 + i64::try_from(id * 7919 % 13_000).unwrap();
            sender.send(Element::Batch(numbers(at..at + rows))).unwrap();
            at += rows;
            sender.send(barrier(id)).unwrap();
        }
        sender.send(Element::EndOfPartition).unwrap();
    });
    let mut at = 0;
    let mut next_id = 0;
    let mut cut = 0;
    loop {
        match next(&mut gate).1 {
            Element::Barrier(barrier) => {
                assert_eq!(barrier.id.0, next_id);
                cut += 1 + i64::try_from(next_id * 7919 % 13_000).unwrap();
                assert_eq!(at, cut, "barrier {next_id}");
                next_id += 1;
            }
            Element::EndOfPartition => break,
            batch => {
                let numbers = values(&batch);
                assert_eq!(numbers, (at..at + numbers.len() as i64).collect::<Vec<_>>());
                at += numbers.len() as i64;
            }
        }
    }
    assert_eq!(next_id, 200);
    producer.join().unwrap();
}

#[test]
fn many_channels_share_a_connection_in_both_directions() {
    const CHANNELS: u32 = 24;
    const BATCHES: i64 = 60;
    let world = World::new();
    let back = InputGate::new(CHANNELS as usize, 0);
    for input in 0..CHANNELS {
        world.a.plane.receiver(&world.b.peer(), back_key(input), &back, 20 << 10).unwrap();
    }
    let there = world.gate(CHANNELS, 20 << 10);
    let send = |mut sender: Box<dyn ChannelSender>, channel: u32| {
        for batch in 0..BATCHES {
            let start = i64::from(channel) * 1_000_000 + batch * 500;
            sender.send(Element::Batch(numbers(start..start + 500))).unwrap();
        }
        sender.send(Element::EndOfPartition).unwrap();
    };
    let receive = |mut gate: InputGate| {
        let mut seen: BTreeMap<usize, Vec<i64>> = BTreeMap::new();
        let mut ended = 0;
        while ended < CHANNELS {
            match next(&mut gate) {
                (_, Element::EndOfPartition) => ended += 1,
                (channel, batch) => seen.entry(channel).or_default().extend(values(&batch)),
            }
        }
        seen
    };
    thread::scope(|scope| {
        let readers = [scope.spawn(move || receive(there)), scope.spawn(move || receive(back))];
        for channel in 0..CHANNELS {
            let forth = world.sender(channel);
            let key = back_key(channel);
            let peer = world.a.peer();
            let back = world.b.plane.sender(&peer, key, Compression::None, Interrupt::default()).unwrap();
            scope.spawn(move || send(Box::new(forth), channel));
            scope.spawn(move || send(Box::new(back), channel));
        }
        for reader in readers {
            let seen = reader.join().unwrap();
            assert_eq!(seen.len(), CHANNELS as usize);
            for (channel, numbers) in seen {
                let start = i64::try_from(channel).unwrap() * 1_000_000;
                assert_eq!(numbers, (start..start + BATCHES * 500).collect::<Vec<_>>());
            }
        }
    });
}
