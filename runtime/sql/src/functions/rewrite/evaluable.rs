//! What an analysed expression becomes just before it is evaluated. Plans, names and fingerprints show it as it was.
//!
//! - comparisons of DOUBLE and FLOAT, in all their forms, become functions with Java's meaning;
//! - a CAST of a TIMESTAMP to STRING is told how many digits its type has, since Arrow's unit may hold more.

use std::sync::{Arc, LazyLock};

use arrow::datatypes::DataType;
use datafusion::{
    common::{
        DFSchema, Result, ScalarValue,
        tree_node::{Transformed, TransformedResult, TreeNode},
    },
    logical_expr::{
        Between, BinaryExpr, Case, Expr, ExprSchemable, Operator, ScalarUDF, and,
        expr::{InList, ScalarFunction},
        lit, not,
    },
};

use crate::{
    functions::{
        definition::FlinkFunction,
        number::{COMPARISONS, IN, MEMBERSHIP, comparison},
    },
    types::precision_of,
};

static UDFS: LazyLock<Vec<(&'static str, Arc<ScalarUDF>)>> = LazyLock::new(|| {
    let all = COMPARISONS.iter().chain(&MEMBERSHIP);
    all.map(|definition| (definition.name, Arc::new(FlinkFunction::udf(definition)))).collect()
});

/// `expr`, whose types are those of `schema` and agree, as it is evaluated.
///
/// # Errors
/// Those of DataFusion for an expression without a type.
pub fn evaluable(expr: Expr, schema: &DFSchema) -> Result<Expr> {
    expr.transform_up(|expr| rewrite(expr, schema)).data()
}

fn rewrite(expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    match expr {
        Expr::BinaryExpr(BinaryExpr { left, op, right }) if comparison(op).is_some() && is_float(&left, schema) => {
            Ok(Transformed::yes(compare(*left, op, *right)))
        }
        Expr::Between(Between { expr, negated, low, high }) if is_float(&expr, schema) => {
            let within = and(compare((*expr).clone(), Operator::GtEq, *low), compare(*expr, Operator::LtEq, *high));
            Ok(Transformed::yes(negated_if(negated, within)))
        }
        Expr::InList(InList { expr, list, negated }) if is_float(&expr, schema) => {
            let args = std::iter::once(*expr).chain(list).collect();
            Ok(Transformed::yes(negated_if(negated, call(IN, args))))
        }
        Expr::Case(Case { expr: Some(subject), when_then_expr, else_expr }) if is_float(&subject, schema) => {
            let when = |value: Expr| Box::new(compare((*subject).clone(), Operator::Eq, value));
            let when_then_expr = when_then_expr.into_iter().map(|(value, then)| (when(*value), then)).collect();
            Ok(Transformed::yes(Expr::Case(Case { expr: None, when_then_expr, else_expr })))
        }
        Expr::ScalarFunction(call) => function(call, schema),
        other => Ok(Transformed::no(other)),
    }
}

fn function(mut call: ScalarFunction, schema: &DFSchema) -> Result<Transformed<Expr>> {
    match (call.func.name(), call.args.as_slice()) {
        ("nullif", [x, y]) if is_float(x, schema) => {
            let null = ScalarValue::try_from(&x.get_type(schema)?)?;
            let equal = (Box::new(compare(x.clone(), Operator::Eq, y.clone())), Box::new(lit(null)));
            let case = Case { expr: None, when_then_expr: vec![equal], else_expr: Some(Box::new(x.clone())) };
            Ok(Transformed::yes(Expr::Case(case)))
        }
        ("__cast" | "__try_cast", [time, _]) => {
            let Some(digits) = precision_of(&time.to_field(schema)?.1) else {
                return Ok(Transformed::no(Expr::ScalarFunction(call)));
            };
            call.args.push(lit(i32::from(digits)));
            Ok(Transformed::yes(Expr::ScalarFunction(call)))
        }
        _ => Ok(Transformed::no(Expr::ScalarFunction(call))),
    }
}

fn is_float(expr: &Expr, schema: &DFSchema) -> bool {
    matches!(expr.get_type(schema), Ok(DataType::Float32 | DataType::Float64))
}

fn compare(left: Expr, op: Operator, right: Expr) -> Expr {
    match comparison(op) {
        Some(name) => call(name, vec![left, right]),
        None => Expr::BinaryExpr(BinaryExpr::new(Box::new(left), op, Box::new(right))),
    }
}

fn call(name: &str, args: Vec<Expr>) -> Expr {
    let known = UDFS.iter().find(|(known, _)| *known == name);
    let (_, udf) = known.expect("every comparison is in the table");
    Expr::ScalarFunction(ScalarFunction::new_udf(Arc::clone(udf), args))
}

fn negated_if(negated: bool, expr: Expr) -> Expr {
    if negated { not(expr) } else { expr }
}
