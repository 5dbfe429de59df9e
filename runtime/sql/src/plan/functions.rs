//! Functions by name for DataFusion's planner, and analysis with Flink's meaning.

use std::sync::Arc;

use arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::{
    common::{DFSchema, DataFusionError, Result, config::ConfigOptions, not_impl_err},
    functions::core::planner::CoreFunctionPlanner,
    functions_aggregate::planner::AggregateFunctionPlanner,
    functions_window::planner::WindowFunctionPlanner,
    logical_expr::{
        AggregateUDF, Expr, LogicalPlan, PartitionEvaluator, ScalarUDF, Signature, Volatility, WindowUDF,
        WindowUDFImpl,
        function::{PartitionEvaluatorArgs, WindowUDFFieldArgs},
        planner::ExprPlanner,
    },
    optimizer::{Analyzer, AnalyzerRule, analyzer::type_coercion::TypeCoercion},
};

use crate::functions::{FlinkFunctions, flink_plan, flink_semantics};

pub(super) struct Functions {
    flink: FlinkFunctions,
    planners: Vec<Arc<dyn ExprPlanner>>,
    row_number: Arc<WindowUDF>,
    analyzer: Analyzer,
}

impl Functions {
    pub(super) fn new() -> Self {
        let mut planners = FlinkFunctions::expr_planners();
        // `row.field` where the row is a column of a table.
        planners.push(Arc::new(CoreFunctionPlanner::default()));
        // COUNT(*), with and without OVER.
        planners.push(Arc::new(AggregateFunctionPlanner));
        planners.push(Arc::new(WindowFunctionPlanner));
        let rules: Vec<Arc<dyn AnalyzerRule + Send + Sync>> = vec![Arc::new(TypeCoercion::new())];
        Self {
            flink: FlinkFunctions::new(),
            planners,
            row_number: Arc::new(WindowUDF::new_from_impl(RowNumber {
                signature: Signature::nullary(Volatility::Immutable),
            })),
            analyzer: Analyzer::with_rules(rules),
        }
    }

    pub(super) fn expr_planners(&self) -> &[Arc<dyn ExprPlanner>] {
        &self.planners
    }

    pub(super) fn scalar(&self, name: &str) -> Option<Arc<ScalarUDF>> {
        self.flink.scalar(name)
    }

    pub(super) fn aggregate(&self, name: &str) -> Option<Arc<AggregateUDF>> {
        self.flink.aggregate(name)
    }

    pub(super) fn window(&self, name: &str) -> Option<Arc<WindowUDF>> {
        if name.eq_ignore_ascii_case("row_number") {
            return Some(Arc::clone(&self.row_number));
        }
        self.flink.window(name)
    }

    /// Names of scalar functions, aggregates and window functions.
    pub(super) fn names(&self) -> [Vec<String>; 3] {
        self.flink.names()
    }

    /// A plan as `SqlToRel` makes it, with Flink's meaning and the types that follow from it.
    pub(super) fn analyse(&self, plan: LogicalPlan, config: &ConfigOptions) -> Result<LogicalPlan, DataFusionError> {
        self.analyzer.execute_and_check(flink_plan(plan)?, config, |_, _| {})
    }

    /// Types of a plan whose expressions have Flink's meaning already.
    pub(super) fn coerce(&self, plan: LogicalPlan, config: &ConfigOptions) -> Result<LogicalPlan, DataFusionError> {
        self.analyzer.execute_and_check(plan, config, |_, _| {})
    }

    /// An expression with Flink's meaning; [`Functions::coerce`] has yet to bring its types together.
    pub(super) fn with_meaning(&self, expr: Expr, schema: &DFSchema) -> Result<Expr, DataFusionError> {
        flink_semantics(expr, schema)
    }
}

/// ROW_NUMBER as BIGINT, which DataFusion's own is not.
#[derive(Debug, PartialEq, Eq, Hash)]
struct RowNumber {
    signature: Signature,
}

impl WindowUDFImpl for RowNumber {
    fn name(&self) -> &'static str {
        "row_number"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn partition_evaluator(&self, _: PartitionEvaluatorArgs) -> Result<Box<dyn PartitionEvaluator>> {
        not_impl_err!("ROW_NUMBER runs as an operator of ours")
    }

    fn field(&self, args: WindowUDFFieldArgs) -> Result<FieldRef> {
        Ok(Arc::new(Field::new(args.name(), DataType::Int64, false)))
    }
}
