//! No element behind a channel's first one is read before every channel has delivered its first.

use std::{sync::Arc, thread, time::Duration};

use arrow::{
    array::{Int64Array, RecordBatch},
    datatypes::{DataType, Field, Schema},
};
use streamkeeper_network::{Arrival, ChannelClosed, ChannelSender, Element, InputGate, Interrupt, LocalSender};
use streamkeeper_protocol::{Barrier, CheckpointKind, SnapshotFormat};
use streamkeeper_types::{CheckpointId, Watermark};

const LOWEST: Element = Element::Watermark(Watermark::MIN);

struct Bench {
    gate: InputGate,
    senders: Vec<LocalSender>,
    interrupt: Interrupt,
}

impl Bench {
    fn new(channels: usize, capacity: usize) -> Self {
        let gate = InputGate::new(channels, capacity);
        let interrupt = Interrupt::default();
        let senders = (0..channels).map(|channel| gate.sender(channel, interrupt.clone())).collect();
        Self { gate, senders, interrupt }
    }

    fn send(&mut self, channel: usize, element: Element) {
        self.senders[channel].send(element).unwrap();
    }

    /// Everything that can be read now.
    fn read(&mut self) -> Vec<String> {
        let mut seen = Vec::new();
        loop {
            match self.gate.poll(Duration::ZERO) {
                Arrival::Element { channel, element, .. } => seen.push(format!("{channel}: {}", short(&element))),
                Arrival::Opened => seen.push("opened".to_owned()),
                Arrival::Woken => seen.push("woken".to_owned()),
                Arrival::TimedOut => return seen,
                Arrival::Failed(error) => panic!("{error}"),
            }
        }
    }
}

fn short(element: &Element) -> String {
    match element {
        Element::Batch(batch) => format!("{} rows", batch.num_rows()),
        Element::Watermark(Watermark::MIN) => "watermark MIN".to_owned(),
        Element::Watermark(watermark) => format!("watermark {}", watermark.0),
        Element::Barrier(barrier) => format!("barrier {}", barrier.id.0),
        Element::CancelBarrier(id) => format!("cancel {}", id.0),
        other => format!("{other:?}"),
    }
}

fn rows(count: i64) -> Element {
    let schema = Arc::new(Schema::new(vec![Field::new("v", DataType::Int64, false)]));
    Element::Batch(RecordBatch::try_new(schema, vec![Arc::new(Int64Array::from_iter_values(0..count))]).unwrap())
}

fn barrier(id: u64) -> Element {
    Element::Barrier(Barrier {
        id: CheckpointId(id),
        timestamp: 0,
        kind: CheckpointKind::Checkpoint,
        format: SnapshotFormat::Native,
        target: format!("chk-{id}"),
        full: false,
    })
}

/// Channel 0 has much to say; channel 1 says `first`, and nothing of channel 0 but its first element comes before.
fn check_opened_by(first: Element) {
    let name = short(&first);
    let mut bench = Bench::new(2, 1 << 20);
    for element in [LOWEST, rows(1), Element::Watermark(Watermark(60)), rows(2)] {
        bench.send(0, element);
    }
    assert_eq!(bench.read(), ["0: watermark MIN"], "{name}: channel 1 is silent");
    bench.send(0, rows(3));
    assert!(bench.read().is_empty(), "{name}: what comes later waits too");
    bench.send(1, first);
    let expected = [&format!("1: {name}"), "opened", "0: 1 rows", "0: watermark 60", "0: 2 rows", "0: 3 rows"];
    assert_eq!(bench.read(), expected);
    bench.send(1, rows(4));
    assert_eq!(bench.read(), ["1: 4 rows"], "{name}: it opens once");
}

#[test]
fn d13_whatever_says_where_a_channel_stands_opens_the_gate_before_any_record_of_the_others() {
    let firsts = [
        LOWEST,
        Element::Watermark(Watermark(7)),
        Element::Watermark(Watermark::MAX),
        Element::Idle,
        Element::EndOfData,
        Element::EndOfPartition,
        barrier(1),
        rows(9),
    ];
    firsts.into_iter().for_each(check_opened_by);
}

#[test]
fn a_cancel_marker_passes_and_says_nothing_about_time() {
    let mut bench = Bench::new(2, 1 << 20);
    bench.send(0, LOWEST);
    bench.send(0, rows(1));
    bench.send(1, Element::CancelBarrier(CheckpointId(3)));
    assert_eq!(bench.read(), ["0: watermark MIN", "1: cancel 3"]);
    bench.send(1, Element::Idle);
    assert_eq!(bench.read(), ["1: Idle", "opened", "0: 1 rows"]);
}

#[test]
fn a_barrier_before_the_first_watermark_passes_and_its_blocked_channel_stays_blocked_when_the_gate_opens() {
    let mut bench = Bench::new(2, 1 << 20);
    bench.send(0, barrier(1));
    bench.send(0, rows(1));
    assert_eq!(bench.read(), ["0: barrier 1"]);
    bench.gate.block(0);
    bench.send(1, Element::Idle);
    bench.send(1, barrier(1));
    assert_eq!(bench.read(), ["1: Idle", "opened", "1: barrier 1"]);
    bench.gate.unblock_all();
    assert_eq!(bench.read(), ["0: 1 rows"]);
}

#[test]
fn unblocking_does_not_open_a_gate_with_a_silent_channel() {
    let mut bench = Bench::new(3, 1 << 20);
    bench.send(0, LOWEST);
    bench.send(0, rows(1));
    bench.send(1, barrier(1));
    bench.read();
    bench.gate.block(1);
    bench.gate.unblock_all();
    assert!(bench.read().is_empty());
    bench.send(2, Element::EndOfPartition);
    assert_eq!(bench.read(), ["2: EndOfPartition", "opened", "0: 1 rows"]);
}

#[test]
fn a_single_channel_is_open_with_its_first_element() {
    let mut bench = Bench::new(1, 1 << 20);
    bench.send(0, LOWEST);
    bench.send(0, rows(1));
    assert_eq!(bench.read(), ["0: watermark MIN", "opened", "0: 1 rows"]);
}

#[test]
fn a_sender_that_fills_its_channel_waits_and_goes_on_when_the_other_channel_has_spoken() {
    let mut bench = Bench::new(2, 64);
    bench.send(0, LOWEST);
    bench.send(0, rows(1_000));
    assert_eq!(bench.read(), ["0: watermark MIN"]);
    let mut sender = bench.senders.remove(0);
    let full = thread::spawn(move || {
        for count in 2..5 {
            sender.send(rows(count)).unwrap();
        }
    });
    bench.senders[0].send(barrier(1)).unwrap();
    assert_eq!(bench.read()[..3], ["1: barrier 1", "opened", "0: 1000 rows"]);
    full.join().unwrap();
}

#[test]
fn a_sender_that_waits_for_a_gate_which_never_opens_can_be_interrupted() {
    let mut bench = Bench::new(2, 64);
    bench.send(0, LOWEST);
    bench.send(0, rows(1_000));
    let (mut sender, interrupt) = (bench.senders.remove(0), bench.interrupt.clone());
    let waiting = thread::spawn(move || sender.send(rows(1)));
    interrupt.set();
    assert_eq!(waiting.join().unwrap(), Err(ChannelClosed::Interrupted));
    bench.gate.waker().wake();
    assert_eq!(bench.read(), ["woken", "0: watermark MIN"]);
}
