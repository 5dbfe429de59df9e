//! `ROW_NUMBER() OVER (PARTITION BY … ORDER BY t)` with a filter on 1: deduplication.
//!
//! Other functions OVER a window go to [`super::lag`] or are refused here.

use std::sync::Arc;

use datafusion::{
    common::{DFSchema, ScalarValue},
    logical_expr::{
        Expr, Filter, Operator, Window,
        expr::{Sort, WindowFunction},
        utils::split_conjunction,
    },
    physical_expr::expressions::Literal,
};
use streamkeeper_types::{Error, Result};

use super::Translator;
use crate::plan::{
    fault::Spot,
    stream::{Column, Keep, Pending, Role, RowNumber, Stream, Value},
    wording::name_in_sql,
};

/// OVER clauses, wherever they stand.
const OVER: &[Spot] = &[Spot::Clause(&["OVER"])];

impl Translator<'_> {
    pub(super) fn window_function(&mut self, window: &Window) -> Result<Stream> {
        let input = self.relation(&window.input)?;
        let schema = window.input.schema();
        let functions: Vec<&WindowFunction> = window.window_expr.iter().filter_map(over).collect();
        match functions.as_slice() {
            [only] if only.fun.name().eq_ignore_ascii_case("row_number") => self.row_number(input, only, window),
            all if !all.is_empty() && all.iter().all(|f| f.fun.name().eq_ignore_ascii_case("lag")) => {
                self.lag(input, all, schema, window)
            }
            all => {
                let name = all.iter().map(|f| f.fun.name()).find(|name| !name.eq_ignore_ascii_case("row_number"));
                let name = name.unwrap_or("ROW_NUMBER").to_uppercase();
                let spots = [Spot::Function(&name), OVER[0]];
                let way_out = "functions over a window are ROW_NUMBER with WHERE n = 1, and LAG; for sums and counts \
                               use a window table function with GROUP BY";
                Err(self.scope.unsupported(&spots, format!("{name} … OVER is not supported yet"), way_out))
            }
        }
    }

    fn row_number(&mut self, input: Stream, function: &WindowFunction, window: &Window) -> Result<Stream> {
        let schema = window.input.schema();
        let params = &function.params;
        let input = self.flush_pending(input)?;
        let input = self.prepare(input, &params.partition_by, schema)?;
        let (order, ascending) = self.time_order(&params.order_by, schema, &input, "ROW_NUMBER")?;
        let partition = self.key_columns(&params.partition_by, schema, &input)?;
        let keep = if ascending { Keep::First } else { Keep::Last };
        let mut columns = input.columns.clone();
        let field = window.schema.field(columns.len());
        columns.push(Column {
            name: field.name().clone(),
            data_type: field.data_type().clone(),
            nullable: false,
            value: Value::Pending,
            role: Role::RowNumber,
            text: field.name().clone(),
            lineage: "1".to_owned(),
        });
        Ok(Stream { columns, pending: Some(Pending::RowNumber(RowNumber { partition, order, keep })), ..input })
    }

    /// The column that an OVER clause orders by, and whether ascending.
    pub(super) fn time_order(
        &self,
        order_by: &[Sort],
        schema: &DFSchema,
        input: &Stream,
        function: &str,
    ) -> Result<(Column, bool)> {
        let spots = [Spot::Function(function), OVER[0]];
        let way_out = "order by the column that WATERMARK FOR names, or by a computed column AS PROCTIME()";
        let [sort] = order_by else {
            let cause = format!("{function} wants one column to order by, not {}", order_by.len());
            return Err(self.scope.unsupported(&spots, cause, way_out));
        };
        let column = match super::calc::plain_column(&sort.expr) {
            Some(column) => {
                let index = schema.index_of_column(column).map_err(|error| self.scope.datafusion(error, &spots))?;
                Some(input.columns[index].clone())
            }
            None if self.analyst.is_proctime(&sort.expr) => {
                let field = arrow::datatypes::Field::new("proctime", arrow::datatypes::DataType::Null, false);
                Some(self.column(&sort.expr, &field, schema, input)?)
            }
            None => None,
        };
        match column {
            Some(column) if column.role.is_rowtime() || column.role == Role::Proctime => Ok((column, sort.asc)),
            other => {
                let name = other.map_or_else(|| sort.expr.to_string(), |column| column.name);
                let cause = format!("{function} ordered by `{name}`, which is no time attribute, is not supported yet");
                Err(self.scope.unsupported(&spots, cause, way_out))
            }
        }
    }

    /// PARTITION BY and GROUP BY columns.
    pub(super) fn key_columns(&self, keys: &[Expr], schema: &DFSchema, input: &Stream) -> Result<Vec<Column>> {
        use datafusion::logical_expr::ExprSchemable;
        let key = |expr: &Expr| {
            let field = expr.to_field(schema).map_err(|error| self.scope.datafusion(error, &[]))?.1;
            let column = self.column(expr, &field, schema, input)?;
            Ok(match super::calc::plain_column(expr) {
                Some(_) => column,
                None => Column { name: name_in_sql(&column.name), ..column },
            })
        };
        keys.iter().map(key).collect()
    }

    /// A filter right above ROW_NUMBER().
    pub(super) fn first_row(&mut self, mut input: Stream, filter: &Filter) -> Result<Stream> {
        let schema = filter.input.schema();
        let Some(Pending::RowNumber(ranking)) = input.pending.take() else {
            return Err(Error::internal("no ranking under a filter on its number"));
        };
        let (mut limits, mut others) = (Vec::new(), Vec::new());
        for condition in split_conjunction(&filter.predicate) {
            match bound(condition, schema, &input) {
                Some(bound) => limits.push(bound),
                None => others.push(condition),
            }
        }
        match limits.as_slice() {
            [1] => {}
            [] => return Err(self.row_number_alone()),
            _ => {
                let way_out = "keep the first row only: WHERE n = 1";
                return Err(self.scope.unsupported(
                    &[Spot::Function("ROW_NUMBER")],
                    "Top-N is not supported yet",
                    way_out,
                ));
            }
        }
        let mut stream = self.deduplicate(input, ranking)?;
        for column in stream.columns.iter_mut().filter(|column| column.role == Role::RowNumber) {
            let one = ScalarValue::Int64(Some(1)).cast_to(&column.data_type);
            let one = one.map_err(|error| Error::internal(error.strip_backtrace()))?;
            column.value = Value::Expr(Arc::new(Literal::new(one)));
            column.role = Role::Plain;
            column.text = "1".to_owned();
        }
        self.keep(stream, others, schema)
    }

    /// ROW_NUMBER() without the filter that makes it a deduplication.
    pub(super) fn row_number_alone(&self) -> Error {
        let way_out = "put it into a subquery and keep the first row: SELECT … FROM (SELECT *, ROW_NUMBER() OVER (…) AS n \
                       FROM t) WHERE n = 1";
        let cause = "ROW_NUMBER without a filter on 1 is not supported yet";
        self.scope.unsupported(&[Spot::Function("ROW_NUMBER")], cause, way_out)
    }
}

/// A window function, aliases aside.
fn over(expr: &Expr) -> Option<&WindowFunction> {
    match expr {
        Expr::WindowFunction(function) => Some(function),
        Expr::Alias(alias) => over(&alias.expr),
        _ => None,
    }
}

/// The greatest row number that a condition lets through, if it is about nothing else; numbers start at 1.
fn bound(condition: &Expr, schema: &DFSchema, input: &Stream) -> Option<i64> {
    let Expr::BinaryExpr(binary) = condition else { return None };
    let is_number = |expr: &Expr| {
        super::calc::plain_column(super::calc::uncast(expr))
            .and_then(|column| schema.index_of_column(column).ok())
            .is_some_and(|index| input.columns[index].role == Role::RowNumber)
    };
    let (operator, limit) = if is_number(&binary.left) {
        (binary.op, whole(&binary.right)?)
    } else if is_number(&binary.right) {
        (binary.op.swap()?, whole(&binary.left)?)
    } else {
        return None;
    };
    match operator {
        // `n = 3` is a Top-3 of which one row shows.
        Operator::Eq | Operator::LtEq => Some(limit),
        Operator::Lt => limit.checked_sub(1),
        _ => None,
    }
}

fn whole(expr: &Expr) -> Option<i64> {
    match super::calc::uncast(expr) {
        Expr::Literal(value, _) => match value.cast_to(&arrow::datatypes::DataType::Int64) {
            Ok(ScalarValue::Int64(number)) => number,
            _ => None,
        },
        _ => None,
    }
}
