//! What the way between two tasks costs: in the process, and over TCP on the loopback.
//!
//! ```text
//! cargo run --release -p streamkeeper-network --example shuffle [million rows]
//! ```
//! One task sends batches of five columns (about 70 bytes a row) over eight channels to another, which reads and drops
//! them. In the process nothing is copied, so that the price of TCP is the difference in CPU time a row, of all threads.

use std::{sync::Arc, thread, time::Instant};

use arrow::{
    array::{Int64Array, RecordBatch, StringArray, TimestampMillisecondArray},
    datatypes::{DataType, Field, Schema, TimeUnit},
};
use streamkeeper_network::{
    Arrival, ChannelKey, ChannelSender, Compression, Element, InputGate, Interrupt, PeerId,
    tcp::{DataPlane, DataPlaneOptions, Identity, Peer},
};
use streamkeeper_types::{AttemptId, Error, Generation, Result, SubtaskId, VertexId};

const CHANNELS: usize = 8;
const CAPACITY: usize = 1 << 20;

fn main() -> Result<()> {
    let argument = std::env::args().nth(1).unwrap_or_else(|| "8".into());
    let millions: usize = argument.parse().map_err(|_| Error::internal("give a number of million rows"))?;
    println!("{:>10} {:>6} {:>16} {:>14}", "way", "batch", "million rows/s", "CPU ns/row");
    for rows in [256, 1_024, 8_192] {
        let batch = batch(rows)?;
        let batches = millions * 1_000_000 / rows;
        let ways =
            [("in process", local()?), ("TCP", remote(Compression::None)?), ("TCP, lz4", remote(Compression::Lz4)?)];
        for (name, way) in ways {
            let before = cpu_seconds()?;
            let rate = million_rows(&batch, batches, &way)?;
            let cpu = (cpu_seconds()? - before) * 1e9 / (batches * rows) as f64;
            println!("{name:>10} {rows:>6} {rate:>16.2} {cpu:>14.1}");
        }
    }
    Ok(())
}

/// CPU time of this process so far, user and system: fields 14 and 15 of its `stat`, in hundredths of a second.
fn cpu_seconds() -> Result<f64> {
    let stat = std::fs::read_to_string("/proc/self/stat").map_err(|e| Error::internal(e.to_string()))?;
    let after_name = stat.rsplit(')').next().unwrap_or_default();
    let ticks: f64 = after_name.split_whitespace().skip(11).take(2).filter_map(|n| n.parse::<f64>().ok()).sum();
    Ok(ticks / 100.0)
}

/// A gate and its senders; the planes live as long.
struct Way {
    gate: parking_lot::Mutex<Option<Ends>>,
    _planes: Vec<DataPlane>,
}

type Ends = (InputGate, Vec<Box<dyn ChannelSender>>);

fn local() -> Result<Way> {
    let gate = InputGate::new(CHANNELS, CAPACITY);
    let sender = |channel| Box::new(gate.sender(channel, Interrupt::default())) as Box<dyn ChannelSender>;
    let senders = (0..CHANNELS).map(sender).collect();
    Ok(Way { gate: Some((gate, senders)).into(), _planes: Vec::new() })
}

fn remote(compression: Compression) -> Result<Way> {
    let start = |id: &str| {
        let identity = Identity { id: PeerId::new(id), token: String::new(), job: "bench".into() };
        let options = DataPlaneOptions::new(identity, ([127, 0, 0, 1], 0).into());
        let plane = DataPlane::start(options, Arc::new(|failure| eprintln!("{failure:?}")))?;
        let peer = Peer { id: PeerId::new(id), address: plane.address().to_string() };
        Ok::<_, Error>((plane, peer))
    };
    let ((near, near_peer), (far, far_peer)) = (start("a")?, start("b")?);
    let gate = InputGate::new(CHANNELS, CAPACITY);
    let mut senders: Vec<Box<dyn ChannelSender>> = Vec::new();
    for input in 0..8 {
        far.receiver(&near_peer, key(input), &gate, CAPACITY)?;
        senders.push(Box::new(near.sender(&far_peer, key(input), compression, Interrupt::default())?));
    }
    Ok(Way { gate: Some((gate, senders)).into(), _planes: vec![near, far] })
}

fn key(input: u32) -> ChannelKey {
    let attempt = |vertex| AttemptId {
        generation: Generation(1),
        subtask: SubtaskId { vertex: VertexId(vertex), index: 0 },
        number: 0,
    };
    ChannelKey { producer: attempt(0), consumer: attempt(1), input }
}

/// Million rows a second.
fn million_rows(batch: &RecordBatch, batches: usize, way: &Way) -> Result<f64> {
    let Some((mut gate, mut senders)) = way.gate.lock().take() else { return Ok(0.0) };
    let start = Instant::now();
    let sent = batch.clone();
    let producer = thread::spawn(move || {
        for number in 0..batches {
            if senders[number % CHANNELS].send(Element::Batch(sent.clone())).is_err() {
                return;
            }
        }
        for sender in &mut senders {
            // The reader counts what is missing.
            let _ = sender.send(Element::EndOfPartition);
        }
    });
    let (mut rows, mut ended) = (0, 0);
    while ended < CHANNELS {
        match gate.poll(std::time::Duration::from_secs(60)) {
            Arrival::Element { element: Element::Batch(batch), .. } => rows += batch.num_rows(),
            Arrival::Element { element: Element::EndOfPartition, .. } => ended += 1,
            Arrival::Failed(error) => return Err(error),
            Arrival::Element { .. } | Arrival::Opened | Arrival::Woken => {}
            Arrival::TimedOut => return Err(Error::internal("nothing came for a minute")),
        }
    }
    let seconds = start.elapsed().as_secs_f64();
    producer.join().map_err(|_| Error::internal("the producer panicked"))?;
    if rows != batches * batch.num_rows() {
        return Err(Error::internal(format!("{rows} rows came")));
    }
    Ok(rows as f64 / seconds / 1e6)
}

fn batch(rows: usize) -> Result<RecordBatch> {
    let number = |row: usize| i64::try_from(row).unwrap_or(0);
    let time = DataType::Timestamp(TimeUnit::Millisecond, None);
    let schema = Schema::new(vec![
        Field::new("auction", DataType::Int64, false),
        Field::new("bidder", DataType::Int64, false),
        Field::new("price", DataType::Int64, false),
        Field::new("time", time, false),
        Field::new("channel", DataType::Utf8, false),
    ]);
    let numbers = |factor| Int64Array::from_iter_values((0..rows).map(|row| number(row) * factor % 10_007));
    let texts = StringArray::from_iter_values((0..rows).map(|row| format!("https://example.org/{:08}", row * 7919)));
    RecordBatch::try_new(
        Arc::new(schema),
        vec![
            Arc::new(numbers(1)),
            Arc::new(numbers(31)),
            Arc::new(numbers(977)),
            Arc::new(TimestampMillisecondArray::from_iter_values((0..rows).map(number))),
            Arc::new(texts),
        ],
    )
    .map_err(|e| Error::internal(e.to_string()))
}
