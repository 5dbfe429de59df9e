//! What DataFusion's SQL planner asks of us: tables, views, functions.

use std::{
    borrow::Cow,
    cell::RefCell,
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use arrow::datatypes::{DataType, SchemaRef};
use datafusion::{
    common::{DataFusionError, Result as PlanResult, TableReference, config::ConfigOptions},
    logical_expr::{
        AggregateUDF, Expr, HigherOrderUDF, LogicalPlan, LogicalPlanBuilder, ScalarUDF, TableSource, WindowUDF,
        planner::{ContextProvider, ExprPlanner, TypePlanner},
    },
    sql::{planner::SqlToRel, sqlparser::ast::Statement},
};
use streamkeeper_types::{Code, Error};

use super::{fault::Scope, logical::Analyst, refuse, source::SourceTable, unique_names};
use crate::{
    catalog::{Relation, View},
    position::Extent,
};

/// How often one statement may read tables and views, those within views counted each time: views that double each
/// other would otherwise grow beyond all memory.
const MAX_RELATIONS: usize = 2_000;

/// How deep views may be nested.
const MAX_VIEW_DEPTH: usize = 64;

/// The planner's view of the catalogue while one statement is planned.
pub(super) struct Context<'a> {
    analyst: &'a Analyst,
    /// For errors within views.
    scope: RefCell<Scope>,
    /// Texts of the views and tables that were read.
    read: RefCell<Vec<Extent>>,
    /// Views being planned, outermost first.
    open: RefCell<BTreeSet<String>>,
    relations: RefCell<usize>,
}

impl<'a> Context<'a> {
    pub(super) fn new(analyst: &'a Analyst, scope: Scope) -> Self {
        Self {
            analyst,
            scope: RefCell::new(scope),
            read: RefCell::default(),
            open: RefCell::default(),
            relations: RefCell::default(),
        }
    }

    /// Texts of everything that was read.
    pub(super) fn into_read(self) -> Vec<Extent> {
        self.read.into_inner()
    }

    fn view(&self, view: &View) -> Result<LogicalPlan, DataFusionError> {
        if self.open.borrow().len() >= MAX_VIEW_DEPTH {
            let cause = format!("views read each other more than {MAX_VIEW_DEPTH} deep");
            let error = view.position.error(Code::SqlUnsupported, cause);
            return Err(external(error.way_out("let some of them read tables directly")));
        }
        if !self.open.borrow_mut().insert(view.name.clone()) {
            let error = view.position.error(Code::SqlInvalid, format!("view `{}` reads itself", view.name));
            return Err(external(error.way_out("let it read a table")));
        }
        let scope = Scope::new(self.analyst.locator().clone(), view.query.extent.clone());
        refuse::check(&view.query.ast, &scope).map_err(external)?;
        let planner = SqlToRel::new_with_options(self, self.analyst.parser_options());
        let plan = planner.sql_statement_to_plan(Statement::Query(Box::new(unique_names::apply(&view.query.ast))));
        let plan = plan.map_err(|error| external(scope.datafusion(error, &[])))?;
        self.open.borrow_mut().remove(&view.name);
        renamed(plan, view, &scope)
    }
}

/// Gives the view's columns the names that CREATE VIEW lists.
fn renamed(plan: LogicalPlan, view: &View, scope: &Scope) -> Result<LogicalPlan, DataFusionError> {
    let Some(names) = &view.columns else { return Ok(plan) };
    let columns = plan.schema().columns();
    if names.len() != columns.len() {
        let cause = format!("view `{}` names {} columns, its query has {}", view.name, names.len(), columns.len());
        return Err(external(scope.invalid(&[], cause, "name each column once")));
    }
    let aliased = columns.into_iter().zip(names).map(|(column, name)| Expr::Column(column).alias(name));
    LogicalPlanBuilder::from(plan).project(aliased.collect::<Vec<_>>())?.build()
}

fn external(error: Error) -> DataFusionError {
    DataFusionError::External(Box::new(error))
}

impl ContextProvider for Context<'_> {
    fn get_table_source(&self, name: TableReference) -> PlanResult<Arc<dyn TableSource>> {
        let mut relations = self.relations.borrow_mut();
        *relations += 1;
        if *relations > MAX_RELATIONS {
            let error =
                Error::new(Code::SqlUnsupported, format!("the statement reads more than {MAX_RELATIONS} tables"));
            return Err(external(error.way_out("split it into several INSERT INTO")));
        }
        drop(relations);
        let catalog = self.analyst.catalog();
        match catalog.get(name.table()) {
            Some(Relation::Table(table)) => {
                self.read.borrow_mut().push(table.extent.clone());
                let table = self.analyst.table(table).map_err(external)?;
                Ok(table)
            }
            Some(Relation::View(view)) => {
                self.read.borrow_mut().push(view.query.extent.clone());
                let plan = self.view(view)?;
                Ok(Arc::new(ViewSource { schema: Arc::clone(plan.schema().inner()), plan }))
            }
            None => {
                let position = self.scope.borrow().locate(&[super::fault::Spot::Name(name.table())]);
                Err(external(catalog.not_found(name.table(), Some(position))))
            }
        }
    }

    fn get_expr_planners(&self) -> &[Arc<dyn ExprPlanner>] {
        self.analyst.functions().expr_planners()
    }

    fn get_type_planner(&self) -> Option<Arc<dyn TypePlanner>> {
        None
    }

    fn get_function_meta(&self, name: &str) -> Option<Arc<ScalarUDF>> {
        self.analyst.functions().scalar(name)
    }

    fn get_higher_order_meta(&self, _name: &str) -> Option<Arc<HigherOrderUDF>> {
        None
    }

    fn get_aggregate_meta(&self, name: &str) -> Option<Arc<AggregateUDF>> {
        self.analyst.functions().aggregate(name)
    }

    fn get_window_meta(&self, name: &str) -> Option<Arc<WindowUDF>> {
        self.analyst.functions().window(name)
    }

    fn get_variable_type(&self, _names: &[String]) -> Option<DataType> {
        None
    }

    fn options(&self) -> &ConfigOptions {
        self.analyst.config()
    }

    fn udf_names(&self) -> Vec<String> {
        let [scalars, _, _] = self.analyst.functions().names();
        scalars
    }

    fn higher_order_function_names(&self) -> Vec<String> {
        Vec::new()
    }

    fn udaf_names(&self) -> Vec<String> {
        let [_, aggregates, _] = self.analyst.functions().names();
        aggregates
    }

    fn udwf_names(&self) -> Vec<String> {
        let [_, _, windows] = self.analyst.functions().names();
        windows
    }
}

/// A view; DataFusion puts its plan in place of the scan.
struct ViewSource {
    schema: SchemaRef,
    plan: LogicalPlan,
}

impl TableSource for ViewSource {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn get_logical_plan(&self) -> Option<Cow<'_, LogicalPlan>> {
        Some(Cow::Borrowed(&self.plan))
    }
}

/// Tables resolved so far, by name.
pub(super) type Tables = RefCell<BTreeMap<String, Arc<SourceTable>>>;
