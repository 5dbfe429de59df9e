//! Where the rows of a task leave it: the edges behind its last operator.

use std::time::Duration;

use arrow::{array::RecordBatch, datatypes::SchemaRef};
use streamkeeper_network::{ChannelClosed, ChannelSender, Element, Partitioner};
use streamkeeper_state::{KeyEncoder, KeySchema};
use streamkeeper_types::{Code, Error, KeyGroup, Result, ResultExt};

use crate::{Output, Partitioning};

/// One edge of the job graph as one subtask sees it.
pub struct OutputEdge {
    route: Route,
    /// One channel for each subtask that the edge reaches, in order.
    targets: Vec<Box<dyn ChannelSender>>,
}

enum Route {
    /// The only target: nothing is computed.
    One,
    /// The key's owner.
    Hash(Box<HashRoute>),
    /// Subtask 0; the others only see control elements.
    First,
    All,
    /// In turn.
    Next(usize),
}

struct HashRoute {
    columns: Vec<usize>,
    encoder: KeyEncoder,
    groups: Vec<KeyGroup>,
    partitioner: Partitioner,
}

impl OutputEdge {
    /// `schema` is what the task's last operator puts out; `subtask` spreads the starts of rebalancing subtasks.
    ///
    /// # Errors
    /// When a key column has no stable bytes.
    pub fn new(
        partitioning: &Partitioning,
        schema: &SchemaRef,
        targets: Vec<Box<dyn ChannelSender>>,
        subtask: u32,
        max_parallelism: u32,
    ) -> Result<Self> {
        let route = match partitioning {
            _ if targets.len() == 1 => Route::One,
            Partitioning::Hash(columns) => {
                Route::Hash(Box::new(HashRoute::new(columns, schema, targets.len(), max_parallelism)?))
            }
            Partitioning::Global => Route::First,
            Partitioning::Broadcast => Route::All,
            Partitioning::Forward | Partitioning::Rebalance => Route::Next(subtask as usize % targets.len().max(1)),
        };
        Ok(Self { route, targets })
    }

    /// Sends a control element over each channel of the edge.
    ///
    /// # Errors
    /// When a receiver is gone or the task is interrupted.
    pub fn send_to_all(&mut self, element: &Element) -> std::result::Result<(), ChannelClosed> {
        self.targets.iter_mut().try_for_each(|target| target.send(element.clone()).map(drop))
    }
}

impl HashRoute {
    fn new(columns: &[usize], schema: &SchemaRef, targets: usize, max_parallelism: u32) -> Result<Self> {
        let fields = columns.iter().map(|c| schema.fields()[*c].clone()).collect();
        let parallelism = u32::try_from(targets).or_code(Code::ParallelismInvalid, || "targets of an edge".into())?;
        Ok(Self {
            columns: columns.to_vec(),
            encoder: KeyEncoder::new(KeySchema::new(fields)?, max_parallelism),
            groups: Vec::new(),
            partitioner: Partitioner::new(parallelism, max_parallelism),
        })
    }
}

/// All edges of a task, and what went over them.
pub(super) struct Router {
    edges: Vec<OutputEdge>,
    totals: Totals,
    receiver_gone: bool,
}

#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Totals {
    pub records: u64,
    pub bytes: u64,
    /// Time that sends waited for room.
    pub waited: Duration,
}

impl Router {
    pub(super) fn new(edges: Vec<OutputEdge>) -> Self {
        Self { edges, totals: Totals::default(), receiver_gone: false }
    }

    pub(super) fn totals(&self) -> Totals {
        self.totals
    }

    /// A send failed because a receiving task ended: the fault lies there, and this task is about to be cancelled.
    pub(super) fn receiver_gone(&self) -> bool {
        self.receiver_gone
    }

    /// Sends a control element over every channel.
    pub(super) fn broadcast(&mut self, element: &Element) -> Result<()> {
        let sent = self.edges.iter_mut().try_for_each(|edge| edge.send_to_all(element));
        sent.map_err(|closed| closed_channel(closed, &mut self.receiver_gone))
    }
}

impl Output for Router {
    fn emit(&mut self, batch: RecordBatch) -> Result<()> {
        if batch.num_rows() == 0 || self.edges.is_empty() {
            return Ok(());
        }
        self.totals.records += batch.num_rows() as u64;
        let Self { edges, totals, receiver_gone } = self;
        let mut to = |target: &mut Box<dyn ChannelSender>, batch| {
            send(target.as_mut(), Element::Batch(batch), totals, receiver_gone)
        };
        for edge in edges {
            let targets = &mut edge.targets;
            match &mut edge.route {
                Route::One | Route::First => to(&mut targets[0], batch.clone())?,
                Route::All => targets.iter_mut().try_for_each(|target| to(target, batch.clone()))?,
                Route::Next(next) => {
                    let target = *next;
                    *next = (target + 1) % targets.len();
                    to(&mut targets[target], batch.clone())?;
                }
                Route::Hash(hash) => {
                    let keys: Vec<_> = hash.columns.iter().map(|c| batch.column(*c).clone()).collect();
                    hash.encoder.groups(&keys, batch.num_rows(), &mut hash.groups)?;
                    let parts = hash.partitioner.split(&batch, &hash.groups);
                    for part in parts.or_code(Code::Internal, || "splitting a batch by key group".into())? {
                        to(&mut targets[part.target], part.batch)?;
                    }
                }
            }
        }
        Ok(())
    }
}

fn send(target: &mut dyn ChannelSender, element: Element, totals: &mut Totals, receiver_gone: &mut bool) -> Result<()> {
    match target.send(element) {
        Ok(sent) => {
            totals.bytes += sent.bytes as u64;
            totals.waited += sent.waited;
            Ok(())
        }
        Err(closed) => Err(closed_channel(closed, receiver_gone)),
    }
}

fn closed_channel(closed: ChannelClosed, receiver_gone: &mut bool) -> Error {
    *receiver_gone |= closed == ChannelClosed::Receiver;
    match closed {
        ChannelClosed::Interrupted => Error::new(Code::Cancelled, closed.to_string()),
        // Should no cancellation follow, a restart mends it.
        ChannelClosed::Receiver | ChannelClosed::Connection => Error::new(Code::ConnectionLost, closed.to_string()),
        ChannelClosed::Unsendable => Error::new(Code::RecordInvalid, closed.to_string())
            .way_out("a row and its columns have to fit into one frame of the data plane; see the TaskManager's log"),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::sync::Arc;

    use arrow::{
        array::{AsArray, Int64Array},
        datatypes::{DataType, Field, Int64Type, Schema},
    };
    use streamkeeper_network::{Arrival, InputGate, Interrupt, Sent};
    use streamkeeper_types::{Watermark, key_group};

    use super::*;

    fn schema() -> SchemaRef {
        Arc::new(Schema::new(vec![Field::new("k", DataType::Int64, false)]))
    }

    fn batch(keys: std::ops::Range<i64>) -> RecordBatch {
        RecordBatch::try_new(schema(), vec![Arc::new(Int64Array::from_iter_values(keys))]).unwrap()
    }

    /// A router with one edge to `targets` subtasks, each with a gate of its own.
    fn router(partitioning: &Partitioning, targets: usize) -> (Router, Vec<InputGate>) {
        let gates: Vec<InputGate> = (0..targets).map(|_| InputGate::new(1, 1 << 20)).collect();
        let senders = gates.iter().map(|g| Box::new(g.sender(0, Interrupt::default())) as Box<dyn ChannelSender>);
        let edge = OutputEdge::new(partitioning, &schema(), senders.collect(), 0, 128).unwrap();
        (Router::new(vec![edge]), gates)
    }

    /// Keys of all batches in each gate.
    fn keys(gates: &mut [InputGate]) -> Vec<Vec<i64>> {
        let drain = |gate: &mut InputGate| {
            let mut keys = Vec::new();
            loop {
                match gate.poll(Duration::ZERO) {
                    Arrival::Element { element: Element::Batch(batch), .. } => {
                        keys.extend(batch.column(0).as_primitive::<Int64Type>().values());
                    }
                    Arrival::TimedOut => return keys,
                    Arrival::Failed(error) => panic!("{error}"),
                    Arrival::Element { .. } | Arrival::Opened | Arrival::Woken => {}
                }
            }
        };
        gates.iter_mut().map(drain).collect()
    }

    fn check(partitioning: &Partitioning, targets: usize, expected: &[&[i64]]) {
        let (mut router, mut gates) = router(partitioning, targets);
        router.emit(batch(0..2)).unwrap();
        router.emit(batch(2..4)).unwrap();
        assert_eq!(keys(&mut gates), expected, "{partitioning:?}");
    }

    #[test]
    fn batches_go_where_the_partitioning_says() {
        check(&Partitioning::Forward, 1, &[&[0, 1, 2, 3]]);
        check(&Partitioning::Global, 2, &[&[0, 1, 2, 3], &[]]);
        check(&Partitioning::Broadcast, 2, &[&[0, 1, 2, 3], &[0, 1, 2, 3]]);
        check(&Partitioning::Rebalance, 2, &[&[0, 1], &[2, 3]]);
        check(&Partitioning::Hash(vec![0]), 1, &[&[0, 1, 2, 3]]);
    }

    #[test]
    fn b53_a_forward_edge_to_several_subtasks_is_a_rebalance() {
        check(&Partitioning::Forward, 2, &[&[0, 1], &[2, 3]]);
    }

    #[test]
    fn a_keyed_row_goes_to_the_owner_of_its_key_group() {
        let (mut router, mut gates) = router(&Partitioning::Hash(vec![0]), 3);
        router.emit(batch(0..100)).unwrap();
        assert_eq!(router.totals().records, 100);
        for (subtask, keys) in keys(&mut gates).into_iter().enumerate() {
            assert!(!keys.is_empty());
            for key in keys {
                let mut bytes = vec![1];
                bytes.extend((key ^ i64::MIN).to_be_bytes());
                let group = key_group::of_hash(key_group::hash(&bytes), 128);
                assert_eq!(key_group::subtask_of(group, 3, 128) as usize, subtask, "key {key}");
            }
        }
    }

    #[test]
    fn control_elements_reach_every_channel_and_a_lost_receiver_is_told_apart() {
        let (mut router, mut gates) = router(&Partitioning::Global, 2);
        router.broadcast(&Element::Watermark(Watermark(3))).unwrap();
        for gate in &mut gates {
            assert!(matches!(gate.poll(Duration::ZERO), Arrival::Element { element: Element::Watermark(_), .. }));
        }
        drop(gates);
        assert_eq!(router.emit(batch(0..1)).unwrap_err().code, Code::ConnectionLost);
        assert!(router.receiver_gone());
    }

    #[test]
    fn a_broken_connection_is_a_failure_and_no_cancellation() {
        struct Broken(ChannelClosed);
        impl ChannelSender for Broken {
            fn send(&mut self, _: Element) -> std::result::Result<Sent, ChannelClosed> {
                Err(self.0)
            }
        }
        let code = |closed| {
            let targets: Vec<Box<dyn ChannelSender>> = vec![Box::new(Broken(closed))];
            let edge = OutputEdge::new(&Partitioning::Forward, &schema(), targets, 0, 128).unwrap();
            let mut router = Router::new(vec![edge]);
            (router.emit(batch(0..1)).unwrap_err().code, router.receiver_gone())
        };
        assert_eq!(code(ChannelClosed::Connection), (Code::ConnectionLost, false));
        assert_eq!(code(ChannelClosed::Unsendable), (Code::RecordInvalid, false));
        assert_eq!(code(ChannelClosed::Receiver), (Code::ConnectionLost, true));
        assert_eq!(code(ChannelClosed::Interrupted), (Code::Cancelled, false));
    }
}
