//! The marks of window table functions: calls that the parser writes and the planner replaces; nothing evaluates them.

use arrow::{
    array::ArrayRef,
    datatypes::{DataType, TimeUnit},
};
use datafusion::{
    common::{Result, plan_err},
    logical_expr::Expr,
};
use streamkeeper_types::Error;

use super::{
    call::Call,
    definition::{
        Definition,
        Param::{Any, Moment, Text},
        Types,
        returns::timestamp,
    },
    fault::external,
};
use crate::parse::WindowTvf;

const NOTE: &str = "A column of TUMBLE, HOP, CUMULATE and SESSION in FROM.";

pub(crate) static FUNCTIONS: [Definition; 3] = [
    Definition::new("__window_start", "window_start → TIMESTAMP(3)", &[Moment, Text, Any], border, unplanned)
        .required(2)
        .repeats()
        .volatile()
        .note(NOTE),
    Definition::new("__window_end", "window_end → TIMESTAMP(3)", &[Moment, Text, Any], border, unplanned)
        .required(2)
        .repeats()
        .volatile()
        .note(NOTE),
    Definition::new("__window_time", "window_time → type of the time column", &[Moment, Text, Any], time, unplanned)
        .required(2)
        .repeats()
        .volatile()
        .note("The window's end less 1 ms, a time attribute."),
];

/// Which column of a window a mark stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WindowColumn {
    Start,
    End,
    Time,
}

/// A mark in a plan.
#[derive(Debug, Clone, PartialEq)]
pub struct WindowMark<'e> {
    pub column: WindowColumn,
    pub window: WindowTvf,
    /// The time column that DESCRIPTOR names.
    pub time: &'e Expr,
    /// PARTITION BY of a SESSION.
    pub keys: &'e [Expr],
}

/// Reads a mark, through aliases; `None` for every other expression.
#[must_use]
pub fn window_mark(expr: &Expr) -> Option<WindowMark<'_>> {
    let call = match expr {
        Expr::Alias(alias) => return window_mark(&alias.expr),
        Expr::ScalarFunction(call) => call,
        _ => return None,
    };
    let column = match call.func.name() {
        "__window_start" => WindowColumn::Start,
        "__window_end" => WindowColumn::End,
        "__window_time" => WindowColumn::Time,
        _ => return None,
    };
    let [time, Expr::Literal(spec, _), keys @ ..] = call.args.as_slice() else { return None };
    let window = WindowTvf::parse(spec.try_as_str().flatten()?)?;
    Some(WindowMark { column, window, time, keys })
}

fn border(types: &Types) -> Result<DataType> {
    time(types).and_then(|_| timestamp(types))
}

fn time(types: &Types) -> Result<DataType> {
    match types.of(0) {
        DataType::Timestamp(TimeUnit::Second | TimeUnit::Millisecond, zone) => {
            Ok(DataType::Timestamp(TimeUnit::Millisecond, zone))
        }
        DataType::Timestamp(_, zone) => Ok(DataType::Timestamp(TimeUnit::Millisecond, zone)),
        other => {
            let name = crate::types::SqlType::name_of(&other);
            plan_err!(
                "the DESCRIPTOR of a window must name a time attribute (TIMESTAMP or TIMESTAMP_LTZ), but its column is {name}"
            )
        }
    }
}

fn unplanned(_: &Call) -> Result<ArrayRef> {
    Err(external(Error::internal("a window's mark was left in a plan")))
}
