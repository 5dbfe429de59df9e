//! The deployed dataflow as people see it.

use streamkeeper_engine::{JobGraph, Node, Partitioning};
use streamkeeper_protocol::rest::{PlanEdge, PlanOperator, PlanVertex, PlanView};

use crate::secrets;

/// The graph without the program's text, which the job's spec has.
pub(super) fn plan_view(graph: &JobGraph) -> PlanView {
    let operator = |node: &Node| PlanOperator {
        id: node.id.to_string(),
        name: node.name.clone(),
        details: node.details.iter().map(|(key, value)| secrets::shown(key, value)).collect(),
        state: node.state.iter().map(|state| state.name.clone()).collect(),
    };
    let vertices = graph.vertices.iter().map(|vertex| PlanVertex {
        id: vertex.id.0,
        name: vertex.name.clone(),
        parallelism: vertex.parallelism,
        operators: vertex.nodes.iter().map(operator).collect(),
    });
    let edges = graph.edges.iter().map(|edge| PlanEdge {
        from: edge.from.0,
        to: edge.to.0,
        partitioning: partitioning(&edge.partitioning).to_owned(),
    });
    PlanView { vertices: vertices.collect(), edges: edges.collect(), program: String::new() }
}

fn partitioning(partitioning: &Partitioning) -> &'static str {
    match partitioning {
        Partitioning::Forward => "forward",
        Partitioning::Hash(_) => "hash",
        Partitioning::Global => "global",
        Partitioning::Broadcast => "broadcast",
        Partitioning::Rebalance => "rebalance",
    }
}
