//! Operator ids: a fingerprint of what an operator means, by which a changed job finds its state (decision 9).
//!
//! In it: the kind (with the sizes of windows), the keys, the lineage of the input, the target table, and an ordinal
//! among equals. Not in it: the place in the text, names of views and aliases, other columns, aggregates, the schema of
//! the state. So a new output column, another aggregate or another INSERT leaves the state alone. Filters are lineage:
//! state that counted other rows is no answer to the new query.

use std::collections::HashMap;

use datafusion::{
    common::{
        Column, DFSchema, Result,
        tree_node::{Transformed, TransformedResult, TreeNode},
    },
    logical_expr::Expr,
};
use streamkeeper_types::OperatorId;
use xxhash_rust::xxh3::xxh3_128;

/// Version of the text that is hashed. Another one means that no state is found.
const VERSION: &str = "operator 1";
/// Lineages longer than this many bytes are replaced by their hash.
const MAX_TEXT: usize = 1_000;

/// What the rows of a stream are made of: tables, filters and stateful steps, in one line of text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Lineage(String);

impl Lineage {
    /// Rows of a table.
    pub(crate) fn table(name: &str, connector: &str) -> Self {
        Self(format!("table({}, {})", quote(name), quote(connector)))
    }

    /// Those rows of this stream for which `predicate` holds.
    pub(crate) fn filter(&self, predicate: &str) -> Self {
        Self(bounded(format!("filter({predicate}, {})", self.0)))
    }

    /// What a stateful step with these keys makes of this stream.
    pub(crate) fn step(&self, kind: &str, keys: &[String]) -> Self {
        Self(bounded(format!("{kind}([{}], {})", keys.join(", "), self.0)))
    }

    /// All rows of all of these.
    pub(crate) fn union(parts: &[Self]) -> Self {
        let parts: Vec<&str> = parts.iter().map(|part| part.0.as_str()).collect();
        Self(bounded(format!("union({})", parts.join(", "))))
    }
}

/// Gives out ids; the same fingerprint a second time gets the next ordinal.
#[derive(Debug, Default)]
pub(crate) struct Ids {
    given: HashMap<String, u32>,
}

impl Ids {
    /// Id of an operator that serves `target`; a source serves all.
    pub(crate) fn next(
        &mut self,
        kind: &str,
        keys: &[String],
        input: Option<&Lineage>,
        target: Option<&str>,
    ) -> OperatorId {
        let lineage = input.map_or("-", |lineage| lineage.0.as_str());
        let target = target.map_or_else(|| "-".to_owned(), quote);
        let text = format!("{VERSION}\nkind {kind}\nkeys [{}]\ninput {lineage}\ntarget {target}", keys.join(", "));
        let ordinal = self.given.entry(text.clone()).and_modify(|ordinal| *ordinal += 1).or_insert(0);
        OperatorId(xxh3_128(format!("{text}\nordinal {ordinal}").as_bytes()))
    }
}

/// An expression in terms of what its columns are made of (`columns`, by position in `schema`), without aliases.
pub(crate) fn canonical(expr: &Expr, schema: &DFSchema, columns: &[&str]) -> Result<String> {
    Ok(bounded(with_columns(expr, schema, columns)?.schema_name().to_string()))
}

/// The expression with other names for its columns, without aliases.
pub(crate) fn with_columns(expr: &Expr, schema: &DFSchema, columns: &[&str]) -> Result<Expr> {
    expr.clone()
        .transform_up(|inner| match inner {
            Expr::Alias(alias) => Ok(Transformed::yes(*alias.expr)),
            Expr::Column(column) => {
                let name = columns[schema.index_of_column(&column)?];
                Ok(Transformed::yes(Expr::Column(Column::new_unqualified(name))))
            }
            other => Ok(Transformed::no(other)),
        })
        .data()
}

/// Long texts become their hash: views that use a column twice would double its text with each level.
pub(crate) fn bounded(text: String) -> String {
    if text.len() <= MAX_TEXT { text } else { format!("#{:032x}", xxh3_128(text.as_bytes())) }
}

/// A column of a table, as lineage has it.
pub(crate) fn table_column(table: &str, column: &str) -> String {
    format!("{}.{}", quote(table), quote(column))
}

fn quote(name: &str) -> String {
    format!("`{}`", name.replace('`', "``"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(keys: &[&str]) -> Vec<String> {
        keys.iter().map(|key| (*key).to_owned()).collect()
    }

    #[test]
    fn the_fingerprint_is_golden() {
        let bids = Lineage::table("bid", "nexmark").filter("`bid`.`price` > 100");
        let id = Ids::default().next("aggregate", &keys(&["`bid`.`auction`"]), Some(&bids), Some("out"));
        insta::assert_snapshot!(id, @"ae1c2c147a30ac061534f3d5172cc9fc");
    }

    #[test]
    fn equals_get_ordinals_and_everything_else_another_id() {
        let mut ids = Ids::default();
        let bids = Lineage::table("bid", "nexmark");
        let first = ids.next("aggregate", &keys(&["a"]), Some(&bids), Some("out"));
        assert_ne!(ids.next("aggregate", &keys(&["a"]), Some(&bids), Some("out")), first);
        assert_ne!(ids.next("aggregate", &keys(&["b"]), Some(&bids), Some("out")), first);
        assert_ne!(ids.next("aggregate", &keys(&["a"]), Some(&bids), Some("other")), first);
        assert_ne!(ids.next("dedup", &keys(&["a"]), Some(&bids), Some("out")), first);
        assert_ne!(ids.next("aggregate", &keys(&["a"]), Some(&bids.filter("x")), Some("out")), first);
        let again = Ids::default().next("aggregate", &keys(&["a"]), Some(&bids), Some("out"));
        assert_eq!(again, first);
    }
}
