//! What Flink runs and this version does not, found in the syntax tree, where places are exact.
//!
//! Each construct has its own function, to be replaced by a module of its own when the construct is built. What can
//! only be seen with types and time attributes at hand is refused in [`super::translate`].

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::{
    ast::{
        Distinct, Expr, GroupByExpr, JoinOperator, Query, Select, SetExpr, SetOperator, SetQuantifier, Spanned,
        TableFactor, TableWithJoins, Visit, Visitor,
    },
    tokenizer::Span,
};
use streamkeeper_types::{Error, Result};

use super::fault::{Scope, Spot};

/// Checks a query, those within it included.
///
/// # Errors
/// SQL_UNSUPPORTED with the place and what to write instead.
pub(super) fn check(query: &Query, scope: &Scope) -> Result<()> {
    match query.visit(&mut Refusals { scope }) {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(error) => Err(error),
    }
}

struct Refusals<'a> {
    scope: &'a Scope,
}

type Verdict = ControlFlow<Error>;

impl Visitor for Refusals<'_> {
    type Break = Error;

    fn pre_visit_query(&mut self, query: &Query) -> Verdict {
        self.order_and_limit(query)?;
        if query.with.as_ref().is_some_and(|with| with.recursive) {
            let way_out = "compute the levels outside, or join a fixed number of times";
            return self.refuse(&[Spot::Clause(&["WITH", "RECURSIVE"])], "WITH RECURSIVE is not supported", way_out);
        }
        self.set_expr(&query.body)
    }

    fn pre_visit_select(&mut self, select: &Select) -> Verdict {
        self.grouping(select)?;
        if let Some(Distinct::On(_)) = select.distinct {
            let way_out = "use ROW_NUMBER() OVER (PARTITION BY … ORDER BY …) AS n in a subquery, and WHERE n = 1";
            return self.refuse(&[Spot::Clause(&["DISTINCT", "ON"])], "DISTINCT ON is not Flink SQL", way_out);
        }
        if select.from.is_empty() {
            return self.no_from(&[Spot::Clause(&["SELECT"])]);
        }
        self.joins(&select.from)
    }

    fn pre_visit_table_factor(&mut self, factor: &TableFactor) -> Verdict {
        self.table_factor(factor)
    }

    fn pre_visit_expr(&mut self, expr: &Expr) -> Verdict {
        match expr {
            Expr::Exists { .. } => {
                let spots = [at(expr.span()), Some(Spot::Clause(&["EXISTS"]))];
                self.subquery(&spots.into_iter().flatten().collect::<Vec<_>>(), "EXISTS")
            }
            Expr::InSubquery { expr, .. } => {
                self.subquery(&at(expr.span()).into_iter().collect::<Vec<_>>(), "IN with a subquery")
            }
            Expr::Subquery(query) => {
                self.subquery(&at(query.span()).into_iter().collect::<Vec<_>>(), "a subquery as a value")
            }
            _ => ControlFlow::Continue(()),
        }
    }
}

impl Refusals<'_> {
    fn refuse(&self, spots: &[Spot], cause: impl Into<String>, way_out: impl Into<String>) -> Verdict {
        ControlFlow::Break(self.scope.unsupported(spots, cause, way_out))
    }

    fn order_and_limit(&self, query: &Query) -> Verdict {
        if query.limit_clause.is_some() || query.fetch.is_some() {
            let spots = [Spot::Clause(&["LIMIT"]), Spot::Clause(&["OFFSET"]), Spot::Clause(&["FETCH"])];
            let way_out = "for a bounded output use a bounded source; for the first row of each key use \
                           ROW_NUMBER() … WHERE n = 1";
            return self.refuse(&spots, "LIMIT, OFFSET and FETCH are not supported yet", way_out);
        }
        if let Some(order_by) = &query.order_by {
            let spots: Vec<Spot> = at(order_by.span()).into_iter().chain([Spot::Clause(&["ORDER", "BY"])]).collect();
            let way_out = "an unbounded result has no last row: sort where the result is read";
            return self.refuse(&spots, "ORDER BY of a whole query is not supported", way_out);
        }
        ControlFlow::Continue(())
    }

    fn set_expr(&self, body: &SetExpr) -> Verdict {
        match body {
            SetExpr::Select(_) | SetExpr::Query(_) => ControlFlow::Continue(()),
            SetExpr::SetOperation { op: SetOperator::Union, set_quantifier: SetQuantifier::All, left, right } => {
                self.set_expr(left)?;
                self.set_expr(right)
            }
            SetExpr::SetOperation { op: SetOperator::Union, .. } => {
                let way_out = "write SELECT DISTINCT * FROM (… UNION ALL …)";
                self.refuse(&[Spot::Clause(&["UNION"])], "UNION without ALL is not supported yet", way_out)
            }
            SetExpr::SetOperation { op, .. } => {
                let word = op.to_string();
                let way_out = "filter on a column that tells the two sides apart, after UNION ALL and GROUP BY";
                self.refuse(&[Spot::Clause(&[word.as_str()])], format!("{word} is not supported yet"), way_out)
            }
            SetExpr::Values(_) => self.no_from(&[Spot::Clause(&["VALUES"])]),
            other => {
                let way_out = "write INSERT INTO t SELECT …";
                let spots: Vec<Spot> = at(other.span()).into_iter().collect();
                self.refuse(&spots, "this kind of query is not supported", way_out)
            }
        }
    }

    fn no_from(&self, spots: &[Spot]) -> Verdict {
        let way_out = "read the rows from a file with 'connector' = 'filesystem', or make them with 'datagen'";
        self.refuse(spots, "rows without a table are not supported", way_out)
    }

    fn grouping(&self, select: &Select) -> Verdict {
        let (exprs, modifiers) = match &select.group_by {
            GroupByExpr::Expressions(exprs, modifiers) => (exprs.as_slice(), modifiers),
            GroupByExpr::All(_) => {
                let spots = [Spot::Clause(&["GROUP", "BY", "ALL"]), Spot::Clause(&["GROUP", "BY"])];
                return self.refuse(&spots, "GROUP BY ALL is not Flink SQL", "name the columns");
            }
        };
        let sets = |expr: &Expr| matches!(expr, Expr::GroupingSets(_) | Expr::Cube(_) | Expr::Rollup(_));
        if modifiers.is_empty() && !exprs.iter().any(sets) {
            return ControlFlow::Continue(());
        }
        let spots = [
            Spot::Clause(&["GROUPING", "SETS"]),
            Spot::Clause(&["ROLLUP"]),
            Spot::Clause(&["CUBE"]),
            Spot::Clause(&["GROUP", "BY"]),
        ];
        let way_out = "write one query with GROUP BY for each set, and join them by UNION ALL";
        self.refuse(&spots, "GROUPING SETS, ROLLUP and CUBE are not supported yet", way_out)
    }

    fn joins(&self, from: &[TableWithJoins]) -> Verdict {
        let way_out = "for two streams of the same shape use UNION ALL; to compare with an earlier row use LAG; \
                       to enrich, let the source carry the column";
        if let Some(second) = from.get(1) {
            let spots: Vec<Spot> = at(second.span()).into_iter().chain([Spot::Clause(&["FROM"])]).collect();
            return self.refuse(&spots, "joins are not supported yet", way_out);
        }
        let Some(join) = from.iter().flat_map(|table| &table.joins).next() else { return ControlFlow::Continue(()) };
        let kind = match &join.join_operator {
            JoinOperator::CrossJoin(_) => "CROSS JOIN is not supported yet",
            _ => "joins are not supported yet",
        };
        let word = [Spot::Clause(&["JOIN"])];
        let spots: Vec<Spot> = word.into_iter().chain(at(join.span())).collect();
        self.refuse(&spots, kind, way_out)
    }

    fn table_factor(&self, factor: &TableFactor) -> Verdict {
        let spots: Vec<Spot> = at(factor.span()).into_iter().collect();
        match factor {
            TableFactor::Table { version: Some(_), .. } => {
                let spots = [Spot::Clause(&["FOR", "SYSTEM_TIME"])];
                let way_out = "let the source carry the column that you look up";
                self.refuse(&spots, "FOR SYSTEM_TIME AS OF is not supported yet", way_out)
            }
            TableFactor::Table { args: Some(_), name, .. } => {
                let way_out = "TUMBLE and HOP are the functions for FROM TABLE(…)";
                self.refuse(&spots, format!("the table function {name} is not supported"), way_out)
            }
            TableFactor::Table { sample: Some(_), .. } => {
                self.refuse(&spots, "TABLESAMPLE is not supported", "filter by RAND() < 0.1")
            }
            TableFactor::Derived { lateral: true, .. } | TableFactor::Function { lateral: true, .. } => {
                let spots = [Spot::Clause(&["LATERAL"])];
                let way_out = "compute the columns in the SELECT list";
                self.refuse(&spots, "LATERAL is not supported yet", way_out)
            }
            TableFactor::Table { .. } | TableFactor::Derived { .. } => ControlFlow::Continue(()),
            TableFactor::UNNEST { .. } => {
                let spots = [Spot::Function("UNNEST")];
                let way_out = "take elements by index, as in items[1]";
                self.refuse(&spots, "UNNEST is not supported yet", way_out)
            }
            TableFactor::MatchRecognize { .. } => {
                let spots = [Spot::Clause(&["MATCH_RECOGNIZE"])];
                let way_out = "compare with the previous row by LAG(…) OVER (PARTITION BY … ORDER BY ts)";
                self.refuse(&spots, "MATCH_RECOGNIZE is not supported yet", way_out)
            }
            TableFactor::NestedJoin { table_with_joins, .. } => self.joins(std::slice::from_ref(table_with_joins)),
            _ => {
                let way_out = "FROM takes tables, views, subqueries and TABLE(TUMBLE(…)) or TABLE(HOP(…))";
                self.refuse(&spots, "this kind of table is not supported", way_out)
            }
        }
    }

    fn subquery(&self, spots: &[Spot], what: &str) -> Verdict {
        let way_out = "filter before, in a view, or write the values as a list: x IN (1, 2)";
        self.refuse(spots, format!("{what} is not supported yet"), way_out)
    }
}

/// A span as a place; none for nodes that the parser did not place.
fn at(span: Span) -> Option<Spot<'static>> {
    (span.start.line > 0).then(|| Spot::At(span.start.into()))
}
