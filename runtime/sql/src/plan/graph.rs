//! Grows the stream graph: nodes with their ids, edges, and names for state.

use std::collections::HashSet;

use arrow::datatypes::SchemaRef;
use streamkeeper_engine::{
    Changelog, Edge, Node, NodeFactory, OperatorFactory, Partitioning, StateDescription, StreamGraph,
};
use streamkeeper_types::OperatorId;

use super::fingerprint::{Ids, Lineage};

/// An operator to be added.
pub(crate) struct Step<'a> {
    /// As fingerprints have it.
    pub(crate) kind: &'a str,
    /// Keys in terms of tables, as fingerprints have them.
    pub(crate) keys: &'a [String],
    /// What the input's rows are.
    pub(crate) lineage: Option<&'a Lineage>,
    /// What people see.
    pub(crate) name: String,
    pub(crate) details: Vec<(String, String)>,
    pub(crate) output: SchemaRef,
    pub(crate) changelog: Changelog,
    pub(crate) state: Vec<StateDescription>,
    pub(crate) parallelism: Option<u32>,
}

#[derive(Default)]
pub(crate) struct GraphBuilder {
    pub(crate) graph: StreamGraph,
    ids: Ids,
    aliases: HashSet<String>,
}

impl GraphBuilder {
    /// The id that the step gets. Asked once a step, since the next equal one gets another.
    pub(crate) fn id(&mut self, step: &Step, target: Option<&str>) -> OperatorId {
        self.ids.next(step.kind, step.keys, step.lineage, target)
    }

    /// Adds a node behind `inputs` and returns its index.
    pub(crate) fn add(
        &mut self,
        step: Step,
        id: OperatorId,
        factory: NodeFactory,
        inputs: &[(usize, Partitioning)],
    ) -> usize {
        let Step { name, details, output, changelog, state, parallelism, .. } = step;
        let index = self.graph.nodes.len();
        self.graph.nodes.push(Node { id, name, details, output, changelog, state, factory, parallelism });
        let edges = inputs.iter().enumerate().map(|(input, (from, partitioning))| Edge {
            from: *from,
            to: index,
            input,
            partitioning: partitioning.clone(),
        });
        self.graph.edges.extend(edges);
        index
    }

    /// Adds an operator of one input.
    pub(crate) fn operator(
        &mut self,
        step: Step,
        target: &str,
        factory: std::sync::Arc<dyn OperatorFactory>,
        input: (usize, Partitioning),
    ) -> usize {
        let id = self.id(&step, Some(target));
        self.add(step, id, NodeFactory::Operator(factory), &[input])
    }

    /// A name for state that nothing has yet: `wanted`, or `wanted` with a number behind it.
    pub(crate) fn alias(&mut self, wanted: &str) -> String {
        let mut alias = wanted.to_owned();
        let mut number = 2;
        while !self.aliases.insert(alias.clone()) {
            alias = format!("{wanted}_{number}");
            number += 1;
        }
        alias
    }
}
