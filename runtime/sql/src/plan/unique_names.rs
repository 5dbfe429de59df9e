//! Gives the columns of each SELECT different names, as Flink does: `SELECT a, a` has the columns `a` and `a0`.
//!
//! DataFusion refuses such a list. Only names that the text shows are seen; those that `*` brings are not.

use std::{collections::HashSet, ops::ControlFlow};

use datafusion::sql::sqlparser::ast::{Expr, Ident, Query, Select, SelectItem, VisitMut, VisitorMut};

/// The query with different names.
pub(super) fn apply(query: &Query) -> Query {
    let mut query = query.clone();
    // The visitor never breaks.
    let _ = query.visit(&mut Renamer);
    query
}

struct Renamer;

impl VisitorMut for Renamer {
    type Break = ();

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<()> {
        let mut taken: HashSet<String> = select.projection.iter().filter_map(alias).map(str::to_owned).collect();
        let mut seen = HashSet::new();
        for item in &mut select.projection {
            let SelectItem::UnnamedExpr(expr) = item else { continue };
            let name = name_of(expr);
            if seen.insert(name.clone()) && !taken.contains(&name) {
                if let Expr::CompoundIdentifier(_) = expr {
                    // `row.field` is called `field`, which DataFusion calls `row[field]`.
                    *item = SelectItem::ExprWithAlias { expr: expr.clone(), alias: Ident::with_quote('`', name) };
                }
                continue;
            }
            let mut number = 0;
            let unique = loop {
                let candidate = format!("{name}{number}");
                if !seen.contains(&candidate) && taken.insert(candidate.clone()) {
                    break candidate;
                }
                number += 1;
            };
            *item = SelectItem::ExprWithAlias { expr: expr.clone(), alias: Ident::with_quote('`', unique) };
        }
        ControlFlow::Continue(())
    }
}

fn alias(item: &SelectItem) -> Option<&str> {
    match item {
        SelectItem::ExprWithAlias { alias, .. } => Some(&alias.value),
        _ => None,
    }
}

/// The name that the column gets by itself.
fn name_of(expr: &Expr) -> String {
    match expr {
        Expr::Identifier(name) => name.value.clone(),
        Expr::CompoundIdentifier(parts) => parts.last().map_or_else(String::new, |name| name.value.clone()),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::parse::parse_script;

    #[test]
    fn names_that_repeat_get_numbers() {
        let check = |query: &str, expected: &str| {
            let script = parse_script(&format!("INSERT INTO t {query}")).unwrap();
            let ast = &script.inserts().next().unwrap().query.ast;
            assert_eq!(apply(ast).to_string(), expected);
        };
        check("SELECT a, b FROM t", "SELECT a, b FROM t");
        check("SELECT t.r.a FROM t", "SELECT t.r.a AS `a` FROM t");
        check("SELECT a, t.a, a FROM t", "SELECT a, t.a AS `a0`, a AS `a1` FROM t");
        check("SELECT a, b AS a0, a FROM t", "SELECT a, b AS a0, a AS `a1` FROM t");
        check("SELECT COUNT(*), COUNT(*) FROM t", "SELECT COUNT(*), COUNT(*) AS `COUNT(*)0` FROM t");
    }
}
