//! Flink's meaning imposed on DataFusion's expressions, between `SqlToRel` and the analyser:
//!
//! - whole-number literals are INT where they fit, not BIGINT;
//! - `/` and `%` of exact numbers, and decimals with more than 38 digits, become functions of ours;
//! - LIKE has no escape character unless ESCAPE names one;
//! - comparisons and arithmetic between types that Flink does not mix are refused;
//! - a bare NULL as an argument and a condition that is no BOOLEAN are refused;
//! - IF, COALESCE and IFNULL become CASE, which evaluates only the branch that it takes.

mod binary;
mod evaluable;
mod like;

pub(crate) use binary::OperandCheck;
pub use evaluable::evaluable;

use arrow::datatypes::DataType;
use datafusion::{
    common::{
        DFSchema, DataFusionError, Result, ScalarValue,
        tree_node::{Transformed, TreeNode},
    },
    logical_expr::{
        Case, Expr, ExprSchemable, LogicalPlan, LogicalPlanBuilder, Union, Values,
        expr::{AggregateFunction, ScalarFunction},
        expr_rewriter::NamePreserver,
        utils::merge_schema,
    },
};

use super::fault::{at_column, first_column, in_call, invalid};
use crate::types::SqlType;

/// Rewrites one expression over the columns of `schema`. Names of columns may change; [`flink_plan`] keeps them.
///
/// # Errors
/// Our `Error` of code SQL_INVALID, inside DataFusion's, for what Flink refuses.
pub fn flink_semantics(expr: Expr, schema: &DFSchema) -> Result<Expr> {
    expr.transform_up(|expr| rewrite(expr, schema)).map(|rewritten| rewritten.data)
}

/// Rewrites every expression of a plan as `SqlToRel` makes it, subqueries included, and keeps all names.
///
/// # Errors
/// As [`flink_semantics`].
pub fn flink_plan(plan: LogicalPlan) -> Result<LogicalPlan> {
    plan.transform_up_with_subqueries(rewrite_node).map(|rewritten| rewritten.data)
}

fn rewrite_node(node: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
    let schema = match &node {
        // Numbers of rows are BIGINT to DataFusion.
        LogicalPlan::Limit(_) => return Ok(Transformed::no(node)),
        LogicalPlan::Values(Values { values, .. }) => return rewrite_values(values),
        // It would keep the types that its inputs had before.
        LogicalPlan::Union(union) => {
            let union = Union::try_new_with_loose_types(union.inputs.clone())?;
            return Ok(Transformed::yes(LogicalPlan::Union(union)));
        }
        _ => merge_schema(&node.inputs()),
    };
    let names = NamePreserver::new(&node);
    let rewritten = node.map_expressions(|expr| {
        let name = names.save(&expr);
        let rewritten = expr.transform_up(|expr| rewrite(expr, &schema))?;
        Ok(rewritten.update_data(|expr| name.restore(expr)))
    })?;
    // Types below may have changed even where no expression did.
    Ok(Transformed::yes(rewritten.data.recompute_schema()?))
}

fn rewrite_values(values: &[Vec<Expr>]) -> Result<Transformed<LogicalPlan>> {
    let empty = DFSchema::empty();
    let rewrite_row = |row: &Vec<Expr>| row.iter().map(|expr| flink_semantics(expr.clone(), &empty)).collect();
    let rows = values.iter().map(rewrite_row).collect::<Result<Vec<Vec<Expr>>>>()?;
    LogicalPlanBuilder::values(rows)?.build().map(Transformed::yes)
}

fn rewrite(expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    if matches!(expr, Expr::Column(_)) {
        return Ok(Transformed::no(expr));
    }
    let span = first_column(&expr);
    meant(expr, schema).map_err(|error| at_column(error, span))
}

fn meant(expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    match expr {
        Expr::Literal(ScalarValue::Int64(Some(number)), metadata) => Ok(match i32::try_from(number) {
            Ok(number) => Transformed::yes(Expr::Literal(ScalarValue::Int32(Some(number)), metadata)),
            Err(_) => Transformed::no(Expr::Literal(ScalarValue::Int64(Some(number)), metadata)),
        }),
        Expr::AggregateFunction(call) if call.params.args.iter().any(is_bare_null) => Err(bare_null(call.func.name())),
        Expr::AggregateFunction(call) => Ok(Transformed::yes(Expr::AggregateFunction(star_as_it_was(call)))),
        Expr::BinaryExpr(operation) => binary::rewrite(operation, schema),
        Expr::Between(between) => {
            binary::check_comparable(&between.expr, &between.low, schema)?;
            binary::check_comparable(&between.expr, &between.high, schema)?;
            Ok(Transformed::no(Expr::Between(between)))
        }
        Expr::InList(list) => {
            for item in &list.list {
                binary::check_comparable(&list.expr, item, schema)?;
            }
            Ok(Transformed::no(Expr::InList(list)))
        }
        Expr::Like(pattern) => like::rewrite(pattern, schema),
        Expr::ScalarFunction(call) if call.args.iter().any(is_bare_null) && !takes_null(call.func.name()) => {
            Err(bare_null(call.func.name()))
        }
        Expr::ScalarFunction(call) if call.func.name() == "if" => match <[Expr; 3]>::try_from(call.args) {
            Ok([condition, then, otherwise]) => {
                let when_then_expr = vec![(Box::new(condition), Box::new(then))];
                checked(Case { expr: None, when_then_expr, else_expr: Some(Box::new(otherwise)) }, schema)
            }
            Err(_) => Err(invalid("IF takes three arguments", "write IF(condition, then, else)")),
        },
        Expr::ScalarFunction(call) if matches!(call.func.name(), "coalesce" | "ifnull") => match first_not_null(call) {
            Expr::Case(case) => checked(case, schema),
            other => Ok(Transformed::yes(other)),
        },
        Expr::Case(case) => checked(case, schema),
        other => Ok(Transformed::no(other)),
    }
}

/// Refuses branches whose types Flink does not bring together.
fn checked(case: Case, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let mut branches = case.when_then_expr.iter().map(|(_, then)| then.as_ref()).chain(case.else_expr.as_deref());
    if let Some(first) = branches.next() {
        for other in branches {
            binary::check_mixable(first, other, schema)?;
        }
    }
    for (when, _) in &case.when_then_expr {
        match &case.expr {
            Some(subject) => binary::check_comparable(subject, when, schema)?,
            None => check_condition(when, schema)?,
        }
    }
    Ok(Transformed::yes(Expr::Case(case)))
}

fn check_condition(condition: &Expr, schema: &DFSchema) -> Result<()> {
    match condition.get_type(schema) {
        Ok(DataType::Boolean | DataType::Null) | Err(_) => Ok(()),
        Ok(other) => {
            let cause = format!("a condition must be BOOLEAN, but is {}", SqlType::name_of(&other));
            Err(invalid(cause, "compare it with a value: x <> 0"))
        }
    }
}

fn is_bare_null(expr: &Expr) -> bool {
    matches!(expr, Expr::Literal(ScalarValue::Null, _))
}

/// Whether a function finds the type of a bare NULL from its other arguments, or needs none.
fn takes_null(function: &str) -> bool {
    const THOSE: [&str; 16] = [
        "if",
        "coalesce",
        "ifnull",
        "nullif",
        "greatest",
        "least",
        "__cast",
        "__try_cast",
        "__json_value",
        "make_array",
        "map",
        "row",
        "array_append",
        "array_has",
        "array_position",
        "array_prepend",
    ];
    THOSE.contains(&function)
}

fn bare_null(function: &str) -> DataFusionError {
    let name = function.trim_start_matches('_').to_ascii_uppercase();
    let error = invalid(format!("{name} of a bare NULL: it has no type"), "give it one: CAST(NULL AS STRING)");
    in_call(error, &name)
}

/// `CASE WHEN x IS NOT NULL THEN x … ELSE z END`.
fn first_not_null(mut call: ScalarFunction) -> Expr {
    let Some(last) = call.args.pop() else { return Expr::ScalarFunction(call) };
    if call.args.is_empty() {
        return last;
    }
    let when = |x: Expr| (Box::new(x.clone().is_not_null()), Box::new(x));
    let when_then_expr = call.args.into_iter().map(when).collect();
    Expr::Case(Case { expr: None, when_then_expr, else_expr: Some(Box::new(last)) })
}

/// `COUNT(*)` is `count` of the BIGINT literal 1, by which DataFusion knows it.
fn star_as_it_was(mut call: AggregateFunction) -> AggregateFunction {
    if call.func.name() == "count" {
        for argument in &mut call.params.args {
            if let Expr::Literal(value @ ScalarValue::Int32(Some(1)), _) = argument {
                *value = ScalarValue::Int64(Some(1));
            }
        }
    }
    call
}
