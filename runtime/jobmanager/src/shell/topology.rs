//! A job graph as the engine sees it.

use streamkeeper_engine::{JobGraph, NodeFactory, Partitioning};

use super::JobSpec;
use crate::engine::{JobTopology, TopologyInput, TopologyOperator, TopologyVertex, Wiring};

/// The graph as the engine sees it.
pub(super) fn topology(spec: &JobSpec, graph: &JobGraph) -> JobTopology {
    let vertices = graph.vertices.iter().map(|vertex| {
        let inputs = graph.edges.iter().filter(|edge| edge.to == vertex.id).map(|edge| {
            let producer = graph.vertices.iter().find(|v| v.id == edge.from);
            let equal = producer.is_some_and(|producer| producer.parallelism == vertex.parallelism);
            let pointwise = edge.partitioning == Partitioning::Forward && equal;
            let wiring = if pointwise { Wiring::OneToOne } else { Wiring::AllToAll };
            TopologyInput { vertex: edge.from, wiring }
        });
        let operators = vertex.nodes.iter().map(|node| TopologyOperator {
            id: node.id,
            name: node.name.clone(),
            coordinated: matches!(node.factory, NodeFactory::Source { .. }),
        });
        TopologyVertex {
            id: vertex.id,
            parallelism: vertex.parallelism,
            inputs: inputs.collect(),
            operators: operators.collect(),
        }
    });
    JobTopology {
        job: spec.full_name(),
        program: spec.program.clone(),
        max_parallelism: graph.max_parallelism,
        vertices: vertices.collect(),
    }
}
