//! After a query is parsed: `TABLE(…)` in FROM becomes the subquery that [`super::window`] made of its content.

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::{
    ast::{Expr, Query, TableFactor, VisitMut, VisitorMut},
    parser::ParserError,
    tokenizer::Location,
};

use super::fault::{malformed, refused};

/// Replaces every `TABLE(…)`; `at` is the place of errors, the query's first word.
pub(super) fn resolve(query: &mut Query, at: Location) -> Result<(), ParserError> {
    match query.visit(&mut Resolver { at }) {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(error) => Err(error),
    }
}

/// Refuses window table functions outside of FROM, as in a computed column.
pub(super) fn refuse_in(expr: &Expr, at: Location) -> Result<(), ParserError> {
    let found = datafusion::sql::sqlparser::ast::visit_expressions(expr, |inner| match inner {
        Expr::Subquery(_) | Expr::Exists { .. } | Expr::InSubquery { .. } => ControlFlow::Break(()),
        _ => ControlFlow::Continue(()),
    });
    match found {
        ControlFlow::Break(()) => {
            Err(malformed(at, "a query cannot stand in this expression", "use columns and functions only"))
        }
        ControlFlow::Continue(()) => Ok(()),
    }
}

struct Resolver {
    at: Location,
}

impl VisitorMut for Resolver {
    type Break = ParserError;

    fn post_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<ParserError> {
        let TableFactor::TableFunction { expr, alias } = factor else { return ControlFlow::Continue(()) };
        let Expr::Subquery(query) = expr else {
            let cause = format!("TABLE({expr}) is not supported");
            let way_out = "TABLE(…) takes the window functions TUMBLE, HOP, CUMULATE and SESSION";
            return ControlFlow::Break(refused(self.at, cause, way_out));
        };
        *factor = TableFactor::Derived { lateral: false, subquery: query.clone(), alias: alias.take(), sample: None };
        ControlFlow::Continue(())
    }
}
