//! Channels between the tasks of one deployment: within this process, and to and from other TaskManagers.
//!
//! An edge between two vertices of equal parallelism that says forward joins subtask i with subtask i; every other
//! edge joins each subtask with each.

use std::collections::{BTreeMap, HashMap};

use streamkeeper_engine::{
    JobEdge, JobGraph, Partitioning, Vertex,
    task::{OutputEdge, TaskInput, TaskWiring},
};
use streamkeeper_network::{
    ChannelKey, ChannelSender, Compression, InputGate, Interrupt,
    tcp::{DataPlane, Peer},
};
use streamkeeper_types::{AttemptId, Error, Result, SubtaskId, VertexId};

/// Bounds of one channel's room; below, every batch would wait, above, a barrier waits behind too much.
const CHANNEL_BYTES: std::ops::RangeInclusive<usize> = (64 << 10)..=(1 << 20);

/// Where the subtasks of a run are.
pub(crate) enum Hosts<'a> {
    /// All in this process.
    AllHere,
    /// Some with other TaskManagers.
    Apart(&'a Apart<'a>),
}

/// A run that is divided among TaskManagers.
pub(crate) struct Apart<'a> {
    pub plane: &'a DataPlane,
    /// Subtasks that are not in this process.
    pub elsewhere: HashMap<SubtaskId, Peer>,
    /// The run's attempt of a subtask.
    pub attempt_of: &'a dyn Fn(SubtaskId) -> AttemptId,
}

impl Hosts<'_> {
    fn elsewhere(&self, subtask: SubtaskId) -> Option<(&Apart<'_>, &Peer)> {
        let Self::Apart(apart) = self else { return None };
        apart.elsewhere.get(&subtask).map(|peer| (*apart, peer))
    }

    fn is_here(&self, subtask: SubtaskId) -> bool {
        self.elsewhere(subtask).is_none()
    }
}

/// Channels for the subtasks of the graph that run here, which share `network_bytes` of memory.
///
/// # Errors
/// When an edge's key has no stable bytes, or a channel to another TaskManager cannot be opened.
pub(crate) fn wire(graph: &JobGraph, network_bytes: usize, hosts: &Hosts) -> Result<BTreeMap<SubtaskId, TaskWiring>> {
    let channels: usize =
        graph.edges.iter().map(|edge| ends(graph, edge).map_or(0, |(from, to)| joins(edge, from, to))).sum();
    let room = (network_bytes / channels.max(1)).clamp(*CHANNEL_BYTES.start(), *CHANNEL_BYTES.end());
    let mut inputs: BTreeMap<SubtaskId, TaskInput> = BTreeMap::new();
    for vertex in &graph.vertices {
        for subtask in subtasks(vertex).filter(|subtask| hosts.is_here(*subtask)) {
            if let Some(input) = input_of(graph, vertex, subtask, room, hosts)? {
                inputs.insert(subtask, input);
            }
        }
    }
    let mut wirings = BTreeMap::new();
    for vertex in &graph.vertices {
        for subtask in subtasks(vertex).filter(|subtask| hosts.is_here(*subtask)) {
            let interrupt = Interrupt::default();
            let outputs = Outputs { graph, inputs: &inputs, hosts, interrupt: &interrupt }.of(vertex, subtask)?;
            wirings.insert(subtask, TaskWiring { input: None, outputs, interrupt });
        }
    }
    for (subtask, input) in inputs {
        if let Some(wiring) = wirings.get_mut(&subtask) {
            wiring.input = Some(input);
        }
    }
    Ok(wirings)
}

fn subtasks(vertex: &Vertex) -> impl Iterator<Item = SubtaskId> + use<> {
    let id = vertex.id;
    (0..vertex.parallelism).map(move |index| SubtaskId { vertex: id, index })
}

fn vertex_of(graph: &JobGraph, id: VertexId) -> Result<&Vertex> {
    graph.vertices.iter().find(|v| v.id == id).ok_or_else(|| Error::internal(format!("an edge names no vertex: {id}")))
}

fn ends<'a>(graph: &'a JobGraph, edge: &JobEdge) -> Result<(&'a Vertex, &'a Vertex)> {
    Ok((vertex_of(graph, edge.from)?, vertex_of(graph, edge.to)?))
}

fn is_pointwise(edge: &JobEdge, from: &Vertex, to: &Vertex) -> bool {
    edge.partitioning == Partitioning::Forward && from.parallelism == to.parallelism
}

/// Channels of one edge.
fn joins(edge: &JobEdge, from: &Vertex, to: &Vertex) -> usize {
    let (from_count, to_count) = (from.parallelism as usize, to.parallelism as usize);
    if is_pointwise(edge, from, to) { from_count } else { from_count * to_count }
}

/// Channels that one subtask of `to` has for an edge.
fn width(edge: &JobEdge, from: &Vertex, to: &Vertex) -> usize {
    if is_pointwise(edge, from, to) { 1 } else { from.parallelism as usize }
}

fn input_of(
    graph: &JobGraph,
    vertex: &Vertex,
    subtask: SubtaskId,
    room: usize,
    hosts: &Hosts,
) -> Result<Option<TaskInput>> {
    let mut logical = Vec::new();
    let mut producers = Vec::new();
    for edge in graph.edges.iter().filter(|edge| edge.to == vertex.id) {
        let (from, to) = ends(graph, edge)?;
        logical.extend(std::iter::repeat_n(edge.input, width(edge, from, to)));
        producers.extend(subtasks(from).filter(|p| !is_pointwise(edge, from, to) || p.index == subtask.index));
    }
    if logical.is_empty() {
        return Ok(None);
    }
    let gate = InputGate::new(logical.len(), room);
    for (channel, producer) in producers.into_iter().enumerate() {
        let Some((apart, peer)) = hosts.elsewhere(producer) else { continue };
        apart.plane.receiver(peer, channel_key(apart, producer, subtask, channel)?, &gate, room)?;
    }
    Ok(Some(TaskInput { gate, logical }))
}

fn channel_key(apart: &Apart, producer: SubtaskId, consumer: SubtaskId, channel: usize) -> Result<ChannelKey> {
    let input = u32::try_from(channel).map_err(|_| Error::internal("a task has more channels than can be numbered"))?;
    Ok(ChannelKey { producer: (apart.attempt_of)(producer), consumer: (apart.attempt_of)(consumer), input })
}

/// What outputs are made from.
struct Outputs<'a> {
    graph: &'a JobGraph,
    inputs: &'a BTreeMap<SubtaskId, TaskInput>,
    hosts: &'a Hosts<'a>,
    interrupt: &'a Interrupt,
}

impl Outputs<'_> {
    fn of(&self, vertex: &Vertex, subtask: SubtaskId) -> Result<Vec<OutputEdge>> {
        let graph = self.graph;
        let mut outputs = Vec::new();
        let Some(last) = vertex.nodes.last() else { return Ok(outputs) };
        for (position, edge) in graph.edges.iter().enumerate().filter(|(_, edge)| edge.from == vertex.id) {
            let (from, to) = ends(graph, edge)?;
            let pointwise = is_pointwise(edge, from, to);
            let mut channel = if pointwise { 0 } else { subtask.index as usize };
            for earlier in graph.edges[..position].iter().filter(|earlier| earlier.to == edge.to) {
                let (from, to) = ends(graph, earlier)?;
                channel += width(earlier, from, to);
            }
            let reached = subtasks(to).filter(|target| !pointwise || target.index == subtask.index);
            let targets = reached.map(|target| self.sender(subtask, target, channel)).collect::<Result<_>>()?;
            let max_parallelism = graph.max_parallelism;
            outputs.push(OutputEdge::new(&edge.partitioning, &last.output, targets, subtask.index, max_parallelism)?);
        }
        Ok(outputs)
    }

    /// The sending end of a channel of `target`'s gate.
    fn sender(&self, from: SubtaskId, target: SubtaskId, channel: usize) -> Result<Box<dyn ChannelSender>> {
        if let Some((apart, peer)) = self.hosts.elsewhere(target) {
            let key = channel_key(apart, from, target, channel)?;
            return Ok(Box::new(apart.plane.sender(peer, key, Compression::None, self.interrupt.clone())?));
        }
        let input = self.inputs.get(&target).ok_or_else(|| Error::internal(format!("{target} has no input")))?;
        Ok(Box::new(input.gate.sender(channel, self.interrupt.clone())))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::{sync::Arc, time::Duration};

    use arrow::{
        array::RecordBatch,
        datatypes::{DataType, Field, Schema, SchemaRef},
    };
    use streamkeeper_engine::{
        Changelog, Node, NodeFactory, Operator, OperatorContext, OperatorFactory, Output, SubtaskInfo,
    };
    use streamkeeper_network::{Arrival, Element};
    use streamkeeper_types::{OperatorId, Watermark};

    use super::*;

    struct Idle;

    impl OperatorFactory for Idle {
        fn create(&self, _: &SubtaskInfo) -> Result<Box<dyn Operator>> {
            Ok(Box::new(Self))
        }
    }

    impl Operator for Idle {
        fn process(&mut self, _: usize, _: RecordBatch, _: &mut OperatorContext, _: &mut dyn Output) -> Result<()> {
            Ok(())
        }
    }

    fn schema() -> SchemaRef {
        Arc::new(Schema::new(vec![Field::new("v", DataType::Int64, false)]))
    }

    fn vertex(id: u32, parallelism: u32) -> Vertex {
        let node = Node {
            id: OperatorId(u128::from(id)),
            name: "x".into(),
            details: Vec::new(),
            output: schema(),
            changelog: Changelog::InsertOnly,
            state: Vec::new(),
            factory: NodeFactory::Operator(Arc::new(Idle)),
            parallelism: None,
        };
        Vertex { id: VertexId(id), name: "x".into(), nodes: vec![node], parallelism }
    }

    fn edge(from: u32, to: u32, input: usize, partitioning: Partitioning) -> JobEdge {
        JobEdge { from: VertexId(from), to: VertexId(to), input, partitioning }
    }

    /// Logical input of each channel of each subtask of `to`.
    fn inputs(graph: &JobGraph, to: u32) -> Vec<Vec<usize>> {
        let wirings = wire(graph, 1 << 20, &Hosts::AllHere).unwrap();
        let of_vertex = wirings.into_iter().filter(|(subtask, _)| subtask.vertex == VertexId(to));
        of_vertex.map(|(_, wiring)| wiring.input.map_or(Vec::new(), |input| input.logical)).collect()
    }

    #[test]
    fn a_forward_edge_between_equals_is_one_to_one_and_every_other_joins_all() {
        let graph = JobGraph {
            vertices: vec![vertex(0, 2), vertex(1, 3), vertex(2, 2)],
            edges: vec![
                edge(0, 2, 0, Partitioning::Forward),
                edge(1, 2, 1, Partitioning::Forward),
                edge(0, 1, 0, Partitioning::Hash(vec![0])),
            ],
            max_parallelism: 128,
        };
        assert_eq!(inputs(&graph, 0), [[]; 2] as [[usize; 0]; 2]);
        assert_eq!(inputs(&graph, 1), [[0, 0]; 3]);
        assert_eq!(inputs(&graph, 2), [[0, 1, 1, 1]; 2]);
    }

    #[test]
    fn each_channel_carries_what_its_own_producer_sends() {
        let graph = JobGraph {
            vertices: vec![vertex(0, 2), vertex(1, 2), vertex(2, 2)],
            edges: vec![edge(0, 2, 0, Partitioning::Forward), edge(1, 2, 1, Partitioning::Broadcast)],
            max_parallelism: 128,
        };
        let mut wirings = wire(&graph, 1 << 20, &Hosts::AllHere).unwrap();
        let subtask = |vertex, index| SubtaskId { vertex: VertexId(vertex), index };
        let mut seen = Vec::new();
        for (vertex, index) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
            for edge in &mut wirings.get_mut(&subtask(vertex, index)).unwrap().outputs {
                edge.send_to_all(&Element::Watermark(Watermark(i64::from(vertex * 10 + index)))).unwrap();
            }
        }
        for index in 0..2 {
            let gate = &mut wirings.get_mut(&subtask(2, index)).unwrap().input.as_mut().unwrap().gate;
            while let Arrival::Element { channel, element: Element::Watermark(watermark), .. } =
                gate.poll(Duration::ZERO)
            {
                seen.push((index, channel, watermark.0));
            }
        }
        seen.sort_unstable();
        assert_eq!(seen, [(0, 0, 0), (0, 1, 10), (0, 2, 11), (1, 0, 1), (1, 1, 10), (1, 2, 11)]);
    }
}
