//! The dataflow for Graphviz.

use std::fmt::Write;

use streamkeeper_engine::{Changelog, StreamGraph};

use super::partitioning;

pub(super) fn write(graph: &StreamGraph) -> String {
    let mut text = String::from("digraph dataflow {\n  rankdir=LR;\n  node [shape=box];\n");
    for (index, node) in graph.nodes.iter().enumerate() {
        let details = node.details.iter().map(|(name, value)| format!("{name}: {value}"));
        let state = node.state.iter().map(|state| format!("state {}", state.alias));
        let lines: Vec<String> = std::iter::once(node.name.clone()).chain(details).chain(state).collect();
        let style = match node.changelog {
            Changelog::InsertOnly => "",
            Changelog::Updating => ", style=dashed",
        };
        // Writing to a String cannot fail.
        let _ = writeln!(text, "  n{index} [label=\"{}\"{style}];", escape(&lines));
    }
    for edge in &graph.edges {
        let label = escape(&[partitioning(graph, edge)]);
        let _ = writeln!(text, "  n{} -> n{} [label=\"{label}\"];", edge.from, edge.to);
    }
    text.push_str("}\n");
    text
}

/// Left-aligned lines of a label.
fn escape(lines: &[String]) -> String {
    let escaped = lines.iter().map(|line| line.replace('\\', "\\\\").replace('"', "\\\""));
    escaped.collect::<Vec<_>>().join("\\l")
}
