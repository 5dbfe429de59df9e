//! Operators between two values.

use std::sync::{Arc, LazyLock};

use arrow::datatypes::DataType;
use datafusion::{
    common::{DFSchema, Result, ScalarValue, tree_node::Transformed},
    logical_expr::{
        BinaryExpr, Expr, ExprSchemable, Operator, ScalarUDF, cast,
        expr::ScalarFunction,
        planner::{ExprPlanner, PlannerResult, RawBinaryExpr},
    },
    sql::sqlparser::ast::BinaryOperator,
};

use crate::{
    functions::{
        definition::{FlinkFunction, is_text},
        fault::{WITHOUT_FAILING, at_column, first_column, invalid},
        number::{ARITHMETIC, DecimalType},
    },
    types::SqlType,
};

/// Our arithmetic by name.
static UDFS: LazyLock<Vec<(&'static str, Arc<ScalarUDF>)>> = LazyLock::new(|| {
    ARITHMETIC.iter().map(|definition| (definition.name, Arc::new(FlinkFunction::udf(definition)))).collect()
});

fn call(name: &str, left: &Expr, right: &Expr) -> Option<Expr> {
    let (_, udf) = UDFS.iter().find(|(known, _)| *known == name)?;
    Some(Expr::ScalarFunction(ScalarFunction::new_udf(Arc::clone(udf), vec![left.clone(), right.clone()])))
}

pub(super) fn rewrite(operation: BinaryExpr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    // Operands without a type are DataFusion's to report.
    let (Ok(left), Ok(right)) = (operation.left.get_type(schema), operation.right.get_type(schema)) else {
        return Ok(Transformed::no(Expr::BinaryExpr(operation)));
    };
    use Operator::{
        Divide, Eq, Gt, GtEq, IsDistinctFrom, IsNotDistinctFrom, Lt, LtEq, Minus, Modulo, Multiply, NotEq, Plus,
    };
    match operation.op {
        Eq | NotEq | Lt | LtEq | Gt | GtEq | IsDistinctFrom | IsNotDistinctFrom => {
            check(&left, &right)?;
            Ok(Transformed::no(Expr::BinaryExpr(operation)))
        }
        Plus | Minus | Multiply | Divide | Modulo => {
            check_arithmetic(operation.op, &left, &right)?;
            check_divisor(&operation)?;
            match (DecimalType::of(&left), DecimalType::of(&right)) {
                (Some(a), Some(b)) => Ok(exact(operation, (left, a), (right, b))),
                _ => Ok(Transformed::no(Expr::BinaryExpr(operation))),
            }
        }
        _ => Ok(Transformed::no(Expr::BinaryExpr(operation))),
    }
}

/// Arithmetic of integers and decimals.
fn exact(operation: BinaryExpr, left: (DataType, DecimalType), right: (DataType, DecimalType)) -> Transformed<Expr> {
    let BinaryExpr { left: a, op, right: b } = operation;
    let integers = left.0.is_integer() && right.0.is_integer();
    let fits = match op {
        Operator::Multiply => left.1.precision + right.1.precision < 38,
        _ => {
            (left.1.precision - left.1.scale).max(right.1.precision - right.1.scale) + left.1.scale.max(right.1.scale)
                < 38
        }
    };
    let ours = match op {
        Operator::Divide => Some("__divide"),
        Operator::Modulo => Some("mod"),
        _ if integers || fits => None,
        Operator::Plus => Some("__decimal_add"),
        Operator::Minus => Some("__decimal_subtract"),
        _ => Some("__decimal_multiply"),
    };
    if let Some(call) = ours.and_then(|name| call(name, &a, &b)) {
        return Transformed::yes(call);
    }
    if integers {
        return Transformed::no(Expr::BinaryExpr(BinaryExpr { left: a, op, right: b }));
    }
    // DataFusion takes another precision for integers than Flink does.
    let as_decimal = |expr: Box<Expr>, (data_type, decimal): (DataType, DecimalType)| {
        if data_type.is_integer() { Box::new(cast(*expr, decimal.arrow())) } else { expr }
    };
    let (left, right) = (as_decimal(a, left), as_decimal(b, right));
    Transformed::yes(Expr::BinaryExpr(BinaryExpr { left, op, right }))
}

/// A literal divided by a literal zero fails while it is planned, as in Flink, which computes it then.
fn check_divisor(operation: &BinaryExpr) -> Result<()> {
    let BinaryExpr { left, op: Operator::Divide | Operator::Modulo, right } = operation else { return Ok(()) };
    let number = |expr: &Expr| match expr {
        Expr::Literal(value, _) if DecimalType::of(&value.data_type()).is_some() && !value.is_null() => {
            value.cast_to(&DataType::Float64).ok()
        }
        _ => None,
    };
    match (number(left), number(right)) {
        (Some(_), Some(ScalarValue::Float64(Some(0.0)))) => Err(invalid("division by zero", WITHOUT_FAILING)),
        _ => Ok(()),
    }
}

/// Refuses arithmetic that has no meaning while DataFusion builds it, which would refuse it later and without a place.
#[derive(Debug)]
pub(crate) struct OperandCheck;

impl ExprPlanner for OperandCheck {
    fn plan_binary_op(&self, expr: RawBinaryExpr, schema: &DFSchema) -> Result<PlannerResult<RawBinaryExpr>> {
        let op = match expr.op {
            BinaryOperator::Plus => Operator::Plus,
            BinaryOperator::Minus => Operator::Minus,
            BinaryOperator::Multiply => Operator::Multiply,
            BinaryOperator::Divide => Operator::Divide,
            BinaryOperator::Modulo => Operator::Modulo,
            _ => return Ok(PlannerResult::Original(expr)),
        };
        // Whole numbers are INT where they fit.
        let type_of = |side: &Expr| match side {
            Expr::Literal(ScalarValue::Int64(Some(number)), _) if i32::try_from(*number).is_ok() => Ok(DataType::Int32),
            other => other.get_type(schema),
        };
        if let (Ok(left), Ok(right)) = (type_of(&expr.left), type_of(&expr.right)) {
            let span = first_column(&expr.left).or_else(|| first_column(&expr.right));
            check_arithmetic(op, &left, &right).map_err(|error| at_column(error, span))?;
        }
        Ok(PlannerResult::Original(expr))
    }
}

fn is_temporal(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Timestamp(..) | DataType::Date32 | DataType::Time32(_) | DataType::Time64(_))
}

fn check_arithmetic(op: Operator, left: &DataType, right: &DataType) -> Result<()> {
    let names = || (SqlType::name_of(left), SqlType::name_of(right));
    if is_temporal(left) && is_temporal(right) {
        let way_out = "TIMESTAMPDIFF(SECOND, from, to) gives the time between two";
        return Err(invalid(format!("{} {op} {} has no meaning", names().0, names().1), way_out));
    }
    if (is_temporal(left) && right.is_numeric()) || (left.is_numeric() && is_temporal(right)) {
        let way_out = "add an interval, as in ts + INTERVAL '1' DAY, or use TIMESTAMPADD(DAY, n, ts)";
        return Err(invalid(format!("{} {op} {} has no meaning", names().0, names().1), way_out));
    }
    if is_text(left) || is_text(right) || *left == DataType::Boolean || *right == DataType::Boolean {
        let way_out = "CAST it to a number; texts are joined with || or CONCAT";
        return Err(invalid(format!("{} {op} {} has no meaning", names().0, names().1), way_out));
    }
    Ok(())
}

/// Refuses to compare types that Flink does not compare.
pub(super) fn check_comparable(left: &Expr, right: &Expr, schema: &DFSchema) -> Result<()> {
    match (left.get_type(schema), right.get_type(schema)) {
        (Ok(left), Ok(right)) => check(&left, &right),
        _ => Ok(()),
    }
}

/// Refuses branches of one CASE, IF or COALESCE that have no common type.
pub(super) fn check_mixable(left: &Expr, right: &Expr, schema: &DFSchema) -> Result<()> {
    match (left.get_type(schema), right.get_type(schema)) {
        (Ok(left), Ok(right)) if differ(&left, &right) => {
            let cause = format!("{} and {} have no common type", SqlType::name_of(&left), SqlType::name_of(&right));
            Err(invalid(cause, "CAST one of the branches to the other's type"))
        }
        _ => Ok(()),
    }
}

fn check(left: &DataType, right: &DataType) -> Result<()> {
    if !differ(left, right) {
        return Ok(());
    }
    let cause = format!("{} and {} cannot be compared", SqlType::name_of(left), SqlType::name_of(right));
    Err(invalid(cause, "CAST one of them to the other's type"))
}

/// Whether the types are of kinds that Flink does not mix by itself.
fn differ(left: &DataType, right: &DataType) -> bool {
    let plain = |data_type: &DataType| data_type.is_numeric() || *data_type == DataType::Boolean;
    (is_text(left) && plain(right))
        || (plain(left) && is_text(right))
        || (left.is_numeric() && *right == DataType::Boolean)
        || (*left == DataType::Boolean && right.is_numeric())
        || (is_temporal(left) && plain(right))
        || (plain(left) && is_temporal(right))
}
