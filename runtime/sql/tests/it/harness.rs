//! Evaluates one expression the way a job does: parse, plan, rewrite, coerce, compute.

use std::sync::Arc;

use datafusion::{
    arrow::{
        array::RecordBatch,
        datatypes::{DataType, FieldRef, Schema},
        util::display::{ArrayFormatter, FormatOptions},
    },
    common::{DFSchema, DataFusionError, TableReference, plan_err},
    config::ConfigOptions,
    datasource::provider_as_source,
    execution::context::ExecutionProps,
    logical_expr::{
        AggregateUDF, Expr, HigherOrderUDF, LogicalPlan, ScalarUDF, TableSource, WindowUDF,
        physical_planning_context::PhysicalPlanningContext,
        planner::{ContextProvider, ExprPlanner},
    },
    optimizer::{Analyzer, AnalyzerRule, analyzer::type_coercion::TypeCoercion},
    physical_expr::create_physical_expr,
    sql::{
        planner::{ParserOptions, SqlToRel},
        sqlparser::ast::Statement,
    },
};
use streamkeeper_sql::{
    functions::{FlinkFunctions, evaluable, fault::to_error, flink_plan, session_defaults},
    parse::parse_script,
    types::SqlType,
};
use streamkeeper_types::{Code, Error};

pub struct Session {
    functions: FlinkFunctions,
    options: ConfigOptions,
    planners: Vec<Arc<dyn ExprPlanner>>,
    tables: Vec<(&'static str, RecordBatch)>,
}

impl Session {
    pub fn new(zone: &str) -> Self {
        Self {
            functions: FlinkFunctions::new(),
            options: session_defaults(Some(zone)),
            planners: FlinkFunctions::expr_planners(),
            tables: vec![],
        }
    }

    pub fn with_table(mut self, name: &'static str, batch: RecordBatch) -> Self {
        self.tables.push((name, batch));
        self
    }

    pub fn plan(&self, query: &str) -> Result<LogicalPlan, Error> {
        let script = parse_script(&format!("INSERT INTO t {query}"))?;
        let query = script.inserts().next().unwrap().query.ast.clone();
        let options = ParserOptions::from(&self.options.sql_parser);
        let to_rel = SqlToRel::new_with_options(self, options);
        let planned = to_rel.sql_statement_to_plan(Statement::Query(query)).and_then(flink_plan).and_then(|plan| {
            let rules: Vec<Arc<dyn AnalyzerRule + Send + Sync>> = vec![Arc::new(TypeCoercion::new())];
            Analyzer::with_rules(rules).execute_and_check(plan, &self.options, |_, _| {})
        });
        planned.map_err(|error| to_error(&error, Code::SqlInvalid))
    }

    /// Value and type of an expression over no columns; NULL as `NULL`.
    pub fn value_and_type(&self, expression: &str) -> Result<(String, String), Error> {
        let plan = self.plan(&format!("SELECT {expression}"))?;
        let LogicalPlan::Projection(projection) = plan else { panic!("{expression}: {plan}") };
        let (empty, row) = (
            DFSchema::empty(),
            RecordBatch::try_new_with_options(
                Arc::new(Schema::empty()),
                vec![],
                &datafusion::arrow::array::RecordBatchOptions::new().with_row_count(Some(1)),
            )
            .unwrap(),
        );
        self.evaluate(&projection.expr[0], &empty, &row)
    }

    /// Values of the first column of a query that only projects.
    pub fn evaluate(&self, expr: &Expr, schema: &DFSchema, batch: &RecordBatch) -> Result<(String, String), Error> {
        let mut props = ExecutionProps::new();
        props.config_options = Some(Arc::new(self.options.clone()));
        let run = || -> Result<(String, String), DataFusionError> {
            let expr = evaluable(expr.clone(), schema)?;
            let physical = create_physical_expr(&expr, schema, &props, &PhysicalPlanningContext::default())?;
            let array = physical.evaluate(batch)?.to_array(batch.num_rows())?;
            let options = FormatOptions::default().with_null("NULL");
            let formatter = ArrayFormatter::try_new(&array, &options)?;
            let values: Vec<String> = (0..array.len()).map(|row| formatter.value(row).to_string()).collect();
            Ok((values.join("|"), SqlType::name_of(array.data_type())))
        };
        run().map_err(|error| to_error(&error, Code::Evaluation))
    }
}

impl ContextProvider for Session {
    fn get_table_source(&self, name: TableReference) -> datafusion::common::Result<Arc<dyn TableSource>> {
        match self.tables.iter().find(|(known, _)| *known == name.table()) {
            Some((_, batch)) => {
                let table = datafusion::datasource::MemTable::try_new(batch.schema(), vec![vec![batch.clone()]])?;
                Ok(provider_as_source(Arc::new(table)))
            }
            None => plan_err!("no table {name}"),
        }
    }

    fn get_expr_planners(&self) -> &[Arc<dyn ExprPlanner>] {
        &self.planners
    }

    fn get_function_meta(&self, name: &str) -> Option<Arc<ScalarUDF>> {
        self.functions.scalar(name)
    }

    fn get_higher_order_meta(&self, _: &str) -> Option<Arc<HigherOrderUDF>> {
        None
    }

    fn get_aggregate_meta(&self, name: &str) -> Option<Arc<AggregateUDF>> {
        self.functions.aggregate(name)
    }

    fn get_window_meta(&self, name: &str) -> Option<Arc<WindowUDF>> {
        self.functions.window(name)
    }

    fn get_variable_type(&self, _: &[String]) -> Option<DataType> {
        None
    }

    fn get_variable_field(&self, _: &[String]) -> Option<FieldRef> {
        None
    }

    fn options(&self) -> &ConfigOptions {
        &self.options
    }

    fn udf_names(&self) -> Vec<String> {
        self.functions.names()[0].clone()
    }

    fn higher_order_function_names(&self) -> Vec<String> {
        vec![]
    }

    fn udaf_names(&self) -> Vec<String> {
        self.functions.names()[1].clone()
    }

    fn udwf_names(&self) -> Vec<String> {
        self.functions.names()[2].clone()
    }
}
