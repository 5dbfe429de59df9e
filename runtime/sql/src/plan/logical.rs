//! From a query's syntax tree to an analysed, pruned logical plan, by DataFusion's planner with Flink's functions.
//!
//! Of DataFusion's optimizer only column pruning runs. Other rules assume that a table ends, move expressions over
//! stateful steps, or fold what Flink evaluates for each row; and each would make fingerprints depend on its version.

use std::{cell::RefCell, sync::Arc};

use arrow::datatypes::DataType;
use datafusion::{
    common::{
        DFSchema, DataFusionError,
        config::ConfigOptions,
        tree_node::{TreeNode, TreeNodeRecursion},
    },
    logical_expr::{
        EmptyRelation, Expr, LogicalPlan, Projection, Union, execution_props::ExecutionProps,
        physical_planning_context::PhysicalPlanningContext, utils::merge_schema,
    },
    optimizer::{Optimizer, OptimizerContext, optimize_projections::OptimizeProjections},
    physical_expr::{PhysicalExpr, create_physical_expr},
    sql::{
        planner::{ParserOptions, SqlToRel},
        sqlparser::{ast, tokenizer::Location},
    },
};
use streamkeeper_operators::ClockHook;
use streamkeeper_types::{Error, Result};

use super::{
    context::{Context, Tables},
    fault::{Scope, Spot},
    functions::Functions,
    refuse,
    settings::Settings,
    source::SourceTable,
    unique_names,
};
use crate::{
    catalog::{Catalog, Table},
    functions::{cast_to, clock, evaluable, fault::first_column, session_defaults},
    parse::Query,
    position::Locator,
    types::SqlType,
};

/// Plans and analyses expressions and queries over one catalogue.
pub(crate) struct Analyst {
    catalog: Arc<Catalog>,
    locator: Locator,
    config: Arc<ConfigOptions>,
    functions: Functions,
    tables: Tables,
}

impl Analyst {
    pub(crate) fn new(catalog: Arc<Catalog>, locator: Locator, settings: &Settings) -> Self {
        let config = session_defaults(Some(settings.zone.name()));
        Self { catalog, locator, config: Arc::new(config), functions: Functions::new(), tables: RefCell::default() }
    }

    pub(super) fn catalog(&self) -> &Catalog {
        &self.catalog
    }

    pub(super) fn locator(&self) -> &Locator {
        &self.locator
    }

    pub(super) fn functions(&self) -> &Functions {
        &self.functions
    }

    pub(super) fn parser_options(&self) -> ParserOptions {
        ParserOptions::from(&self.config.sql_parser)
    }

    pub(super) fn config(&self) -> &ConfigOptions {
        &self.config
    }

    /// A table with its expressions resolved, once.
    pub(super) fn table(&self, table: &Arc<Table>) -> Result<Arc<SourceTable>> {
        if let Some(known) = self.tables.borrow().get(&table.name) {
            return Ok(Arc::clone(known));
        }
        let scope = Scope::new(self.locator.clone(), table.extent.clone());
        let resolved = Arc::new(SourceTable::new(Arc::clone(table), self, &scope)?);
        self.tables.borrow_mut().insert(table.name.clone(), Arc::clone(&resolved));
        Ok(resolved)
    }

    /// A query's plan, analysed. `scope` learns which other texts the query reads.
    pub(super) fn query(&self, query: &Query, scope: &mut Scope) -> Result<LogicalPlan> {
        refuse::check(&query.ast, scope)?;
        let context = Context::new(self, scope.clone());
        let planner = SqlToRel::new_with_options(&context, self.parser_options());
        let plan = planner.sql_statement_to_plan(ast::Statement::Query(Box::new(unique_names::apply(&query.ast))));
        drop(planner);
        context.into_read().into_iter().for_each(|extent| scope.reads(extent));
        let plan = plan.map_err(|error| scope.datafusion(error, &[]))?;
        self.check_unions(&plan, scope)?;
        let unanalysed = plan.clone();
        self.functions
            .analyse(plan, &self.config)
            .map_err(|error| scope.datafusion(error, &self.at_fault(&unanalysed).unwrap_or_default()))
    }

    /// Where the lowest part of a plan stands that cannot be analysed: the first column of its expression, or its clause.
    fn at_fault(&self, plan: &LogicalPlan) -> Option<Vec<Spot<'static>>> {
        if let Some(found) = plan.inputs().into_iter().find_map(|input| self.at_fault(input)) {
            return Some(found);
        }
        self.functions.analyse(plan.clone(), &self.config).err()?;
        let schema = merge_schema(&plan.inputs());
        let exprs = plan.expressions();
        let fails = |expr: &&Expr| self.analyse(vec![(*expr).clone()], &schema).is_err();
        let column = exprs.iter().find(fails).and_then(first_column);
        let column = column.map(|span| Spot::At(Location { line: span.start.line, column: span.start.column }.into()));
        Some(column.into_iter().chain(clauses(plan).iter().copied()).collect())
    }

    /// Leaves out every column that nothing needs.
    pub(super) fn prune(&self, plan: LogicalPlan, scope: &Scope) -> Result<LogicalPlan> {
        let optimizer = Optimizer::with_rules(vec![Arc::new(OptimizeProjections::new())]);
        let context = OptimizerContext::new_with_config_options(Arc::clone(&self.config));
        let context = context.without_query_execution_start_time();
        optimizer.optimize(plan, &context, |_, _| {}).map_err(|error| scope.datafusion(error, &[]))
    }

    /// An expression of the DDL over a table's columns, analysed.
    pub(super) fn expression(
        &self,
        expr: &ast::Expr,
        schema: &DFSchema,
        scope: &Scope,
        spots: &[Spot],
    ) -> Result<Expr> {
        let context = Context::new(self, scope.clone());
        let planner = SqlToRel::new_with_options(&context, self.parser_options());
        let planned = planner.sql_to_expr(expr.clone(), schema, &mut Default::default());
        let planned = planned.map_err(|error| scope.datafusion(error, spots))?;
        let mut analysed = self.analyse(vec![planned], schema).map_err(|error| scope.datafusion(error, spots))?;
        analysed.pop().ok_or_else(|| Error::internal("an expression was lost in analysis"))
    }

    /// Applies Flink's types and functions to expressions over `schema`.
    pub(super) fn analyse(&self, exprs: Vec<Expr>, schema: &DFSchema) -> Result<Vec<Expr>, DataFusionError> {
        let input = EmptyRelation { produce_one_row: false, schema: Arc::new(schema.clone()) };
        // Names tell the expressions apart, whatever they are.
        let named = exprs
            .into_iter()
            .enumerate()
            .map(|(i, expr)| Ok(self.functions.with_meaning(expr, schema)?.alias(format!("__{i}"))))
            .collect::<Result<_, DataFusionError>>()?;
        let plan = LogicalPlan::Projection(Projection::try_new(named, Arc::new(LogicalPlan::EmptyRelation(input)))?);
        let LogicalPlan::Projection(plan) = self.functions.coerce(plan, &self.config)? else {
            return datafusion::common::internal_err!("analysis changed a projection into something else");
        };
        Ok(plan.expr.into_iter().map(Expr::unalias).collect())
    }

    /// `expr` as a SQL type, as CAST in the text.
    pub(super) fn cast(&self, expr: Expr, data_type: &SqlType) -> Expr {
        cast_to(expr, data_type)
    }

    /// An analysed expression as one that can be evaluated.
    pub(crate) fn physical(&self, expr: &Expr, schema: &DFSchema) -> Result<Arc<dyn PhysicalExpr>, DataFusionError> {
        let mut props = ExecutionProps::new();
        props.config_options = Some(Arc::clone(&self.config));
        let expr = evaluable(expr.clone(), schema)?;
        create_physical_expr(&expr, schema, &props, &PhysicalPlanningContext::default())
    }

    /// Tells functions of processing time what the task's clock shows.
    pub(crate) fn clock_hook(&self) -> ClockHook {
        Arc::new(clock::set_now)
    }

    /// Whether the expression is PROCTIME().
    pub(crate) fn is_proctime(&self, expr: &Expr) -> bool {
        match expr {
            Expr::ScalarFunction(call) => call.func.name() == "proctime",
            Expr::Alias(alias) => self.is_proctime(&alias.expr),
            _ => false,
        }
    }

    /// Columns of one place in a UNION ALL must be of one kind of type; the analyser would make texts of all others.
    fn check_unions(&self, plan: &LogicalPlan, scope: &Scope) -> Result<()> {
        let mut fault = None;
        let visited = plan.apply(|node| {
            if let LogicalPlan::Union(union) = node {
                fault = union_fault(union);
            }
            Ok(if fault.is_some() { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
        });
        visited.map_err(|error| scope.datafusion(error, &[]))?;
        match fault {
            None => Ok(()),
            Some(cause) => {
                let spots = [Spot::Clause(&["UNION", "ALL"]), Spot::Clause(&["UNION"])];
                Err(scope.invalid(&spots, cause, "cast the column in one of the queries"))
            }
        }
    }
}

/// The clause that became this node.
fn clauses(plan: &LogicalPlan) -> &'static [Spot<'static>] {
    match plan {
        LogicalPlan::Filter(filter) if matches!(*filter.input, LogicalPlan::Aggregate(_)) => {
            &[Spot::Clause(&["HAVING"])]
        }
        LogicalPlan::Filter(_) => &[Spot::Clause(&["WHERE"]), Spot::Clause(&["HAVING"])],
        LogicalPlan::Aggregate(_) => &[Spot::Clause(&["GROUP", "BY"]), Spot::Clause(&["SELECT"])],
        LogicalPlan::Window(_) => &[Spot::Clause(&["OVER"])],
        LogicalPlan::Union(_) => &[Spot::Clause(&["UNION", "ALL"])],
        _ => &[Spot::Clause(&["SELECT"])],
    }
}

/// What is wrong with the types of a UNION ALL.
fn union_fault(union: &Union) -> Option<String> {
    let first = union.inputs.first()?.schema();
    for other in &union.inputs[1..] {
        for (index, (a, b)) in first.fields().iter().zip(other.schema().fields()).enumerate() {
            if !is_same_kind(a.data_type(), b.data_type()) {
                let (a, b) = (SqlType::name_of(a.data_type()), SqlType::name_of(b.data_type()));
                return Some(format!("column {} of the UNION ALL is {a} in one query and {b} in another", index + 1));
            }
        }
    }
    None
}

/// Whether a common type exists without a change of meaning.
fn is_same_kind(a: &DataType, b: &DataType) -> bool {
    if a == b || *a == DataType::Null || *b == DataType::Null {
        return true;
    }
    match (SqlType::from_arrow(a), SqlType::from_arrow(b)) {
        (Some(a), Some(b)) => {
            let is_moment = |t: &SqlType| matches!(t, SqlType::Timestamp(_) | SqlType::Date);
            let is_instant = |t: &SqlType| matches!(t, SqlType::TimestampLtz(_));
            (a.is_numeric() && b.is_numeric())
                || (a.is_text() && b.is_text())
                || (is_moment(&a) && is_moment(&b))
                || (is_instant(&a) && is_instant(&b))
                || std::mem::discriminant(&a) == std::mem::discriminant(&b)
        }
        _ => false,
    }
}
