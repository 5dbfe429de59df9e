//! Gives an operator's state tables the names under which `state query` finds them.

use std::sync::Arc;

use streamkeeper_engine::{Operator, OperatorFactory, StateDescription, SubtaskInfo};
use streamkeeper_state::TableSpec;
use streamkeeper_types::{Result, duration};

/// An operator whose first table is called `alias`, and every other one `alias_<its own name>`, or `alias_distinct_0`
/// where that is no identifier.
pub(super) struct NamedState {
    factory: Arc<dyn OperatorFactory>,
    alias: String,
}

impl NamedState {
    pub(super) fn new(factory: impl OperatorFactory + 'static, alias: String) -> Self {
        Self { factory: Arc::new(factory), alias }
    }

    /// The tables as `plan` shows them.
    pub(super) fn describe(&self) -> Vec<StateDescription> {
        let describe = |(index, table): (usize, &TableSpec)| StateDescription {
            name: table.name().to_owned(),
            alias: self.alias_of(index, table),
            keys: table.key().fields().iter().map(|field| field.name().clone()).collect(),
            values: table.values().iter().map(|field| field.name.clone()).collect(),
            ttl: table.ttl().map(|ttl| duration::format(ttl.duration)),
        };
        self.factory.tables().iter().enumerate().map(describe).collect()
    }

    fn alias_of(&self, index: usize, table: &TableSpec) -> String {
        let name = table.name();
        match (index, name.split_once('_')) {
            (0, _) => self.alias.clone(),
            // An aggregate's own table is named after its SQL, which would have to be quoted in a query.
            (_, Some((kind, _))) if !name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') => {
                format!("{}_{kind}_{}", self.alias, index - 1)
            }
            _ => format!("{}_{name}", self.alias),
        }
    }
}

impl OperatorFactory for NamedState {
    fn tables(&self) -> Vec<TableSpec> {
        let named = |(index, table): (usize, TableSpec)| {
            let alias = self.alias_of(index, &table);
            table.with_alias(alias)
        };
        self.factory.tables().into_iter().enumerate().map(named).collect()
    }

    fn create(&self, subtask: &SubtaskInfo) -> Result<Box<dyn Operator>> {
        self.factory.create(subtask)
    }
}
