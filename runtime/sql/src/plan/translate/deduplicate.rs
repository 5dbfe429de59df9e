//! Deduplication: the first or last row of each key, by event or processing time.

use std::sync::Arc;

use streamkeeper_engine::{Changelog, Partitioning};
use streamkeeper_operators::{
    self as operators, DeduplicateFactory, DeduplicateSpec, TimeOrder, changelog::updating_schema,
};
use streamkeeper_types::Result;

use super::{
    Translator,
    keyed::{Keyed, is_made},
};
use crate::plan::{
    fault::Spot,
    graph::Step,
    named_state::NamedState,
    stream::{Keep, RowNumber, Stream},
};

impl Translator<'_> {
    /// `input` has the row number as a column that is still to be made; it stays one.
    pub(super) fn deduplicate(&mut self, input: Stream, ranking: RowNumber) -> Result<Stream> {
        if input.changelog == Changelog::Updating {
            let way_out = "deduplicate before the aggregation, or group by the key and use MAX";
            let cause = "ROW_NUMBER over rows that are updated later is not supported yet";
            return Err(self.scope.unsupported(&[Spot::Function("ROW_NUMBER")], cause, way_out));
        }
        let columns = input.columns.clone();
        let by_rowtime = ranking.order.role.is_rowtime();
        let order = by_rowtime.then_some(&ranking.order);
        let Keyed { stream, keys, order } = self.keyed(input, &ranking.partition, order)?;
        let schema = stream.schema();
        let order = match order {
            Some(column) => TimeOrder::Rowtime(column),
            None => TimeOrder::ProcessingTime,
        };
        let (keep, changelog, output, word) = match ranking.keep {
            Keep::First => (operators::Keep::First, Changelog::InsertOnly, Arc::clone(&schema), "first"),
            Keep::Last => (operators::Keep::Last, Changelog::Updating, updating_schema(&schema), "last"),
        };
        let alias = self.next_alias();
        let factory = DeduplicateFactory::new(DeduplicateSpec {
            input: schema,
            keys: keys.clone(),
            keep,
            order,
            row_number: operators::RowNumber::Omit,
            output: Arc::clone(&output),
            state_ttl: self.settings.state_ttl,
            alias: alias.clone(),
        });
        let factory = factory.map_err(|error| self.scope.place(error, &[Spot::Function("ROW_NUMBER")]))?;
        let factory = NamedState::new(factory, alias);
        let time = if by_rowtime { "rowtime" } else { "proctime" };
        let kind = format!("deduplicate {word} by {time}");
        let lineages: Vec<String> = ranking.partition.iter().map(|key| key.lineage.clone()).collect();
        let names: Vec<&str> = ranking.partition.iter().map(|key| key.name.as_str()).collect();
        let step = Step {
            kind: &kind,
            keys: &lineages,
            lineage: Some(&stream.lineage),
            name: format!("Deduplicate(keep {word})"),
            details: vec![
                ("keys".to_owned(), names.join(", ")),
                ("order".to_owned(), format!("{} ({time})", ranking.order.name)),
            ],
            output,
            changelog,
            state: factory.describe(),
            parallelism: keys.is_empty().then_some(1),
        };
        let lineage = stream.lineage.step(&kind, &lineages);
        let head = self.graph.operator(step, self.target, Arc::new(factory), (stream.head, exchange(&keys)));
        let mut real = stream.columns.into_iter();
        let columns =
            columns.into_iter().map(|column| if is_made(&column) { real.next().unwrap_or(column) } else { column });
        Ok(Stream {
            head,
            changelog,
            columns: columns.collect(),
            lineage,
            filter: None,
            pending: None,
            attached: stream.attached,
        })
    }
}

/// How rows come to an operator with these keys.
pub(super) fn exchange(keys: &[usize]) -> Partitioning {
    if keys.is_empty() { Partitioning::Global } else { Partitioning::Hash(keys.to_vec()) }
}
