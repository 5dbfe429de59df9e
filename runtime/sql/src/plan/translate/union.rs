//! UNION ALL: one node that takes the rows of all its inputs as they come.

use std::sync::Arc;

use datafusion::logical_expr::Union;
use streamkeeper_engine::{Changelog, NodeFactory, Partitioning};
use streamkeeper_operators::UnionAllFactory;
use streamkeeper_types::Result;

use super::Translator;
use crate::plan::{
    fingerprint::Lineage,
    graph::Step,
    stream::{Column, Role, Stream},
};

impl Translator<'_> {
    pub(super) fn union(&mut self, union: &Union) -> Result<Stream> {
        let mut inputs = Vec::with_capacity(union.inputs.len());
        for input in &union.inputs {
            let stream = self.relation(input)?;
            inputs.push(self.flush(stream)?);
        }
        let updating = inputs.iter().any(|input| input.changelog == Changelog::Updating);
        let changelog = if updating { Changelog::Updating } else { Changelog::InsertOnly };
        let columns: Vec<Column> = union
            .schema
            .fields()
            .iter()
            .enumerate()
            .map(|(index, field)| {
                let parts: Vec<&Column> = inputs.iter().map(|input| &input.columns[index]).collect();
                let lineage = parts.iter().map(|part| part.lineage.as_str()).collect::<Vec<_>>().join("|");
                let nullable = parts.iter().any(|part| part.nullable);
                let field = field.as_ref().clone().with_nullable(nullable);
                Column::of_node(index, &field, common_role(&parts), lineage)
            })
            .collect();
        let parts: Vec<Lineage> = inputs.iter().map(|input| input.lineage.clone()).collect();
        let lineage = Lineage::union(&parts);
        let mut stream = Stream::of_node(0, changelog, columns, lineage.clone());
        let output = stream.schema();
        let step = Step {
            kind: "union",
            keys: &[],
            lineage: Some(&lineage),
            name: "UnionAll".to_owned(),
            details: Vec::new(),
            output: Arc::clone(&output),
            changelog,
            state: Vec::new(),
            parallelism: None,
        };
        let id = self.graph.id(&step, Some(self.target));
        let factory = NodeFactory::Operator(Arc::new(UnionAllFactory::new(output)));
        let edges: Vec<_> = inputs.iter().map(|input| (input.head, Partitioning::Forward)).collect();
        stream.head = self.graph.add(step, id, factory, &edges);
        Ok(stream)
    }
}

/// A column is a time attribute of the union only if it is one in every input.
fn common_role(parts: &[&Column]) -> Role {
    if parts.iter().all(|part| part.role.is_rowtime()) {
        return Role::Rowtime;
    }
    if parts.iter().all(|part| part.role == Role::Proctime) {
        return Role::Proctime;
    }
    Role::Plain
}
