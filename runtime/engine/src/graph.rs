//! StreamGraph (one node an operator) → JobGraph (chains of operators as vertices).
//!
//! Both are immutable values. Factories stand beside the descriptions; two graphs planned from the same text by the
//! same binary are equal, which is what lets every TaskManager plan for itself.

use std::{sync::Arc, time::Duration};

use arrow::{array::RecordBatch, datatypes::SchemaRef};
use serde::Serialize;
use streamkeeper_state::TableSpec;
use streamkeeper_types::{OperatorId, Result, VertexId};

use crate::{OperatorFactory, SourceFactory, WatermarkStrategy};

/// The dataflow as planned. Nodes are in topological order.
#[derive(Clone, Default)]
pub struct StreamGraph {
    pub nodes: Vec<Node>,
    pub edges: Vec<Edge>,
}

/// One operator.
#[derive(Clone)]
pub struct Node {
    pub id: OperatorId,
    /// Short, as in `Window(TUMBLE 1m)`.
    pub name: String,
    /// What `plan` shows beneath: (`keys`, `path`), (`aggregates`, `COUNT(*)`), …
    pub details: Vec<(String, String)>,
    pub output: SchemaRef,
    pub changelog: Changelog,
    pub state: Vec<StateDescription>,
    pub factory: NodeFactory,
    /// Fixed parallelism (1 for a global aggregate); else the job's.
    pub parallelism: Option<u32>,
}

impl Node {
    /// The tables of its keyed state; none for a source.
    #[must_use]
    pub fn tables(&self) -> Vec<TableSpec> {
        match &self.factory {
            NodeFactory::Source { .. } => Vec::new(),
            NodeFactory::Operator(factory) => factory.tables(),
        }
    }
}

/// How rows go from one node to another.
#[derive(Debug, Clone)]
pub struct Edge {
    /// Index of the producing node.
    pub from: usize,
    pub to: usize,
    /// Logical input of the consumer.
    pub input: usize,
    pub partitioning: Partitioning,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Partitioning {
    /// Subtask i to subtask i; a rebalance where the parallelisms differ (B53).
    Forward,
    /// By key group of these columns.
    Hash(Vec<usize>),
    /// Everything to subtask 0.
    Global,
    /// Everything to everybody.
    Broadcast,
    /// Batches in turn.
    Rebalance,
}

/// Whether rows are only added, or also taken back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Changelog {
    InsertOnly,
    /// The last column is [`streamkeeper_types::ROW_KIND_COLUMN`].
    Updating,
}

/// A state table as `plan` shows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct StateDescription {
    pub name: String,
    /// What `state query` calls it.
    pub alias: String,
    pub keys: Vec<String>,
    pub values: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ttl: Option<String>,
}

/// What makes the node's subtasks.
#[derive(Clone)]
pub enum NodeFactory {
    Source {
        source: Arc<dyn SourceFactory>,
        /// Computed columns and projections that run before the watermark is taken.
        prelude: Option<Arc<dyn Fn(RecordBatch) -> Result<RecordBatch> + Send + Sync>>,
        watermark: Option<WatermarkStrategy>,
        /// `scan.rate-limit` in rows per second for the whole source.
        rate_limit: Option<u64>,
        /// Pause while nothing comes.
        idle_wait: Duration,
    },
    Operator(Arc<dyn OperatorFactory>),
}

/// The dataflow as deployed: nodes chained where rows need not leave the thread.
#[derive(Clone)]
pub struct JobGraph {
    pub vertices: Vec<Vertex>,
    pub edges: Vec<JobEdge>,
    pub max_parallelism: u32,
}

/// A chain of operators that runs as `parallelism` tasks.
#[derive(Clone)]
pub struct Vertex {
    pub id: VertexId,
    /// Names of its operators joined by ` → `.
    pub name: String,
    pub nodes: Vec<Node>,
    pub parallelism: u32,
}

#[derive(Debug, Clone)]
pub struct JobEdge {
    pub from: VertexId,
    pub to: VertexId,
    pub input: usize,
    pub partitioning: Partitioning,
}

impl JobGraph {
    /// Chains `graph`: a node joins its producer's vertex when the edge is forward, it is the producer's only consumer,
    /// its only input, and both have the same parallelism.
    #[must_use]
    pub fn chain(graph: &StreamGraph, parallelism: u32, max_parallelism: u32) -> Self {
        let of_node = |node: usize| graph.nodes[node].parallelism.unwrap_or(parallelism);
        let mut vertex_of: Vec<usize> = Vec::with_capacity(graph.nodes.len());
        let mut vertices: Vec<Vertex> = Vec::new();
        for (index, node) in graph.nodes.iter().enumerate() {
            let mut inputs = graph.edges.iter().filter(|e| e.to == index);
            let head = match (inputs.next(), inputs.next()) {
                (Some(edge), None)
                    if edge.partitioning == Partitioning::Forward
                        && of_node(edge.from) == of_node(index)
                        && graph.edges.iter().filter(|e| e.from == edge.from).count() == 1 =>
                {
                    Some(vertex_of[edge.from])
                }
                _ => None,
            };
            let vertex = head.unwrap_or_else(|| {
                let id = VertexId(u32::try_from(vertices.len()).expect("a graph has fewer than 2^32 nodes"));
                vertices.push(Vertex { id, name: String::new(), nodes: Vec::new(), parallelism: of_node(index) });
                vertices.len() - 1
            });
            vertices[vertex].nodes.push(node.clone());
            vertex_of.push(vertex);
        }
        for vertex in &mut vertices {
            let names: Vec<&str> = vertex.nodes.iter().map(|n| n.name.as_str()).collect();
            vertex.name = names.join(" → ");
        }
        let edges = graph
            .edges
            .iter()
            .filter(|e| vertex_of[e.from] != vertex_of[e.to])
            .map(|e| JobEdge {
                from: vertices[vertex_of[e.from]].id,
                to: vertices[vertex_of[e.to]].id,
                input: e.input,
                partitioning: e.partitioning.clone(),
            })
            .collect();
        Self { vertices, edges, max_parallelism }
    }
}
