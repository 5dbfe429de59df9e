//! From the analysed logical plan to nodes of the stream graph, one module a relational construct.
//!
//! [`Translator::relation`] goes from the sources up. What a construct is may show only by what stands above it, as a
//! window table function under an aggregate; until then it is [`super::stream::Pending`].

mod aggregate;
mod calc;
mod deduplicate;
mod keyed;
mod lag;
mod pending;
mod rank;
mod scan;
mod union;
mod window;

use std::{collections::BTreeMap, sync::Arc};

use datafusion::{
    common::{
        DFSchema,
        tree_node::{TreeNode, TreeNodeRecursion},
    },
    logical_expr::{Distinct, Expr, LogicalPlan},
    physical_expr::PhysicalExpr,
};
use streamkeeper_types::Result;

use super::{
    fault::{Scope, Spot},
    graph::GraphBuilder,
    logical::Analyst,
    settings::Settings,
    source::SourceNode,
    stream::Stream,
};

/// Translates the query of one INSERT.
pub(crate) struct Translator<'a> {
    pub(crate) graph: &'a mut GraphBuilder,
    /// Nodes of the tables that are read, by name.
    pub(crate) sources: &'a BTreeMap<String, SourceNode>,
    pub(crate) analyst: &'a Analyst,
    pub(crate) scope: &'a Scope,
    pub(crate) settings: &'a Settings,
    /// The table that the query is inserted into.
    pub(crate) target: &'a str,
    /// Steps with state that are still to come.
    states_left: usize,
}

impl<'a> Translator<'a> {
    pub(crate) fn new(
        graph: &'a mut GraphBuilder,
        sources: &'a BTreeMap<String, SourceNode>,
        analyst: &'a Analyst,
        scope: &'a Scope,
        settings: &'a Settings,
        target: &'a str,
        plan: &LogicalPlan,
    ) -> Result<Self> {
        let mut states_left = 0;
        let counted = plan.apply(|node| {
            let has_state =
                matches!(node, LogicalPlan::Aggregate(_) | LogicalPlan::Distinct(_) | LogicalPlan::Window(_));
            states_left += usize::from(has_state);
            Ok(TreeNodeRecursion::Continue)
        });
        counted.map_err(|error| scope.datafusion(error, &[]))?;
        Ok(Self { graph, sources, analyst, scope, settings, target, states_left })
    }

    /// What `state query` calls the next step's state: the one nearest to the sink has the target's name, others a
    /// number behind it.
    fn next_alias(&mut self) -> String {
        let number = self.states_left;
        self.states_left = number.saturating_sub(1);
        if number <= 1 {
            return self.graph.alias(self.target);
        }
        let wanted = format!("{}_{number}", self.target);
        self.graph.alias(&wanted)
    }

    /// Translates a plan and everything below it.
    pub(crate) fn relation(&mut self, plan: &LogicalPlan) -> Result<Stream> {
        match plan {
            LogicalPlan::TableScan(scan) => self.scan(scan),
            LogicalPlan::SubqueryAlias(alias) => self.relation(&alias.input),
            LogicalPlan::Projection(projection) => self.projection(projection),
            LogicalPlan::Filter(filter) => self.filter(filter),
            LogicalPlan::Union(union) => self.union(union),
            LogicalPlan::Aggregate(aggregate) => self.aggregate(aggregate),
            LogicalPlan::Distinct(Distinct::All(input)) => self.distinct(input),
            LogicalPlan::Window(window) => self.window_function(window),
            other => Err(self.unsupported_plan(other)),
        }
    }

    /// What [`super::refuse`] lets through and nothing here knows.
    fn unsupported_plan(&self, plan: &LogicalPlan) -> streamkeeper_types::Error {
        let (spots, what): (&[Spot], &str) = match plan {
            LogicalPlan::Join(_) => (&[Spot::Clause(&["JOIN"]), Spot::Clause(&["FROM"])], "a join"),
            LogicalPlan::Sort(_) => (&[Spot::Clause(&["ORDER", "BY"])], "sorting"),
            LogicalPlan::Limit(_) => (&[Spot::Clause(&["LIMIT"])], "LIMIT"),
            LogicalPlan::Values(_) | LogicalPlan::EmptyRelation(_) => {
                (&[Spot::Clause(&["VALUES"]), Spot::Clause(&["SELECT"])], "a query without a table")
            }
            LogicalPlan::Unnest(_) => (&[Spot::Function("UNNEST")], "UNNEST"),
            _ => (&[], "this query"),
        };
        self.scope.unsupported(
            spots,
            format!("{what} is not supported yet"),
            "use SELECT, WHERE, GROUP BY, UNION ALL, window table functions, ROW_NUMBER and LAG",
        )
    }

    /// A logical expression over `schema` as one that can be evaluated.
    pub(crate) fn physical(&self, expr: &Expr, schema: &DFSchema) -> Result<Arc<dyn PhysicalExpr>> {
        self.analyst.physical(expr, schema).map_err(|error| self.scope.datafusion(error, &[]))
    }
}
