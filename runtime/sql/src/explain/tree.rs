//! The dataflow as a tree, from each sink back to its sources.

use std::fmt::Write;

use streamkeeper_engine::{Edge, StreamGraph};

use super::{changelog, partitioning};

pub(super) fn write(graph: &StreamGraph) -> String {
    let mut tree = Tree { graph, shown: vec![false; graph.nodes.len()], text: String::new() };
    for node in 0..graph.nodes.len() {
        if graph.edges.iter().all(|edge| edge.from != node) {
            if !tree.text.is_empty() {
                tree.text.push('\n');
            }
            tree.node(node, "", "");
        }
    }
    tree.text
}

struct Tree<'a> {
    graph: &'a StreamGraph,
    /// Nodes that stand in the text already: a second time only their name is shown.
    shown: Vec<bool>,
    text: String,
}

impl Tree<'_> {
    /// `lead` begins the node's first line, `indent` all lines beneath.
    fn node(&mut self, index: usize, lead: &str, indent: &str) {
        let node = &self.graph.nodes[index];
        if std::mem::replace(&mut self.shown[index], true) {
            self.line(lead, &format!("{} (as above)", node.name));
            return;
        }
        let parallelism = node.parallelism.map_or_else(String::new, |p| format!(", parallelism {p}"));
        self.line(lead, &format!("{} [{}{parallelism}]", node.name, changelog(node.changelog)));
        let inputs: Vec<&Edge> = self.graph.edges.iter().filter(|edge| edge.to == index).collect();
        let bar = format!("{indent}{}", if inputs.is_empty() { "    " } else { "│   " });
        self.line(&bar, &format!("id: {}", node.id));
        for (name, value) in &node.details {
            self.line(&bar, &format!("{name}: {value}"));
        }
        for state in &node.state {
            let ttl = state.ttl.as_ref().map_or_else(String::new, |ttl| format!(", kept {ttl}"));
            let (keys, values) = (state.keys.join(", "), state.values.join(", "));
            self.line(&bar, &format!("state {} as {}: ({keys}) → ({values}){ttl}", state.name, state.alias));
        }
        for (i, edge) in inputs.iter().enumerate() {
            let (branch, below) = if i + 1 == inputs.len() { ("└─", "   ") } else { ("├─", "│  ") };
            let lead = format!("{indent}{branch} {} ─ ", partitioning(self.graph, edge));
            self.node(edge.from, &lead, &format!("{indent}{below}"));
        }
    }

    fn line(&mut self, lead: &str, text: &str) {
        // Writing to a String cannot fail.
        let _ = writeln!(self.text, "{lead}{text}");
    }
}
