//! What `streamkeeper plan` shows of a dataflow: a tree for people, JSON for programs, DOT for drawings.
//!
//! All three are deterministic: the same text planned by the same binary gives the same bytes. Must not know: SQL.

mod dot;
mod json;
mod tree;

use streamkeeper_engine::StreamGraph;

/// How a plan is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    Tree,
    Json,
    Dot,
}

/// Writes the whole graph.
#[must_use]
pub fn explain(graph: &StreamGraph, format: Format) -> String {
    match format {
        Format::Tree => tree::write(graph),
        Format::Json => json::write(graph),
        Format::Dot => dot::write(graph),
    }
}

/// Names of the columns at these places, as in `path, window_end`; a place that does not exist shows as its number.
fn column_names(graph: &StreamGraph, node: usize, columns: &[usize]) -> String {
    let fields = graph.nodes[node].output.fields();
    let name = |&column: &usize| fields.get(column).map_or_else(|| format!("#{column}"), |field| field.name().clone());
    columns.iter().map(name).collect::<Vec<_>>().join(", ")
}

/// How an edge spreads rows, as in `hash(path)`.
fn partitioning(graph: &StreamGraph, edge: &streamkeeper_engine::Edge) -> String {
    use streamkeeper_engine::Partitioning;
    match &edge.partitioning {
        Partitioning::Forward => "forward".to_owned(),
        Partitioning::Hash(columns) => format!("hash({})", column_names(graph, edge.from, columns)),
        Partitioning::Global => "global".to_owned(),
        Partitioning::Broadcast => "broadcast".to_owned(),
        Partitioning::Rebalance => "rebalance".to_owned(),
    }
}

fn changelog(changelog: streamkeeper_engine::Changelog) -> &'static str {
    match changelog {
        streamkeeper_engine::Changelog::InsertOnly => "insert-only",
        streamkeeper_engine::Changelog::Updating => "updating",
    }
}
