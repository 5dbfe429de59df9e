//! The dataflow as JSON. Names of members are part of the interface.

use serde::Serialize;
use streamkeeper_engine::{Changelog, Partitioning, StateDescription, StreamGraph};
use streamkeeper_types::OperatorId;

use super::column_names;
use crate::types::SqlType;

#[derive(Serialize)]
struct Graph<'a> {
    nodes: Vec<Node<'a>>,
    edges: Vec<Edge<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Node<'a> {
    id: OperatorId,
    name: &'a str,
    details: Vec<Detail<'a>>,
    output: Vec<Column<'a>>,
    changelog: Changelog,
    #[serde(skip_serializing_if = "Option::is_none")]
    parallelism: Option<u32>,
    state: &'a [StateDescription],
}

#[derive(Serialize)]
struct Detail<'a> {
    name: &'a str,
    value: &'a str,
}

#[derive(Serialize)]
struct Column<'a> {
    name: &'a str,
    #[serde(rename = "type")]
    data_type: String,
    nullable: bool,
}

#[derive(Serialize)]
struct Edge<'a> {
    from: OperatorId,
    to: OperatorId,
    input: usize,
    partitioning: &'a Partitioning,
    #[serde(skip_serializing_if = "Option::is_none")]
    keys: Option<String>,
}

pub(super) fn write(graph: &StreamGraph) -> String {
    let nodes = graph.nodes.iter().map(node).collect();
    let edges = graph.edges.iter().map(|e| edge(graph, e)).collect();
    serde_json::to_string_pretty(&Graph { nodes, edges }).expect("the graph has string keys only")
}

fn node(node: &streamkeeper_engine::Node) -> Node<'_> {
    Node {
        id: node.id,
        name: &node.name,
        details: node.details.iter().map(|(name, value)| Detail { name, value }).collect(),
        output: node
            .output
            .fields()
            .iter()
            .map(|field| Column {
                name: field.name(),
                data_type: SqlType::name_of(field.data_type()),
                nullable: field.is_nullable(),
            })
            .collect(),
        changelog: node.changelog,
        parallelism: node.parallelism,
        state: &node.state,
    }
}

fn edge<'a>(graph: &'a StreamGraph, edge: &'a streamkeeper_engine::Edge) -> Edge<'a> {
    let keys = match &edge.partitioning {
        Partitioning::Hash(columns) => Some(column_names(graph, edge.from, columns)),
        _ => None,
    };
    Edge {
        from: graph.nodes[edge.from].id,
        to: graph.nodes[edge.to].id,
        input: edge.input,
        partitioning: &edge.partitioning,
        keys,
    }
}
