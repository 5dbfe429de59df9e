//! `LAG(x [, 1 [, default]]) OVER (PARTITION BY … ORDER BY t)`: a value of the row before, under the same key.

use std::sync::Arc;

use datafusion::{
    common::{DFSchema, ScalarValue},
    logical_expr::{Expr, ExprSchemable, Window, expr::WindowFunction},
};
use streamkeeper_engine::Changelog;
use streamkeeper_operators::{LagColumn, LagFactory, LagSpec, TimeOrder};
use streamkeeper_types::Result;

use super::{
    Translator,
    calc::uncast,
    deduplicate::exchange,
    keyed::{is_made, place},
};
use crate::plan::{
    fault::Spot,
    graph::Step,
    named_state::NamedState,
    stream::{Column, Role, Stream, Value},
};

const SPOT: &[Spot] = &[Spot::Function("LAG")];

impl Translator<'_> {
    pub(super) fn lag(
        &mut self,
        input: Stream,
        functions: &[&WindowFunction],
        schema: &DFSchema,
        window: &Window,
    ) -> Result<Stream> {
        let input = self.flush_pending(input)?;
        if input.changelog == Changelog::Updating {
            let way_out = "take LAG of rows before they are aggregated, or of the results of a window aggregate";
            let cause = "LAG over rows that are updated later is not supported";
            return Err(self.scope.unsupported(SPOT, cause, way_out));
        }
        let params = &functions[0].params;
        if functions
            .iter()
            .any(|f| f.params.partition_by != params.partition_by || f.params.order_by != params.order_by)
        {
            let way_out = "take each in a subquery of its own";
            return Err(self.scope.unsupported(SPOT, "LAGs with several OVER clauses are not supported yet", way_out));
        }
        let read: Vec<Expr> =
            params.partition_by.iter().cloned().chain(functions.iter().flat_map(|f| f.params.args.clone())).collect();
        let input = self.prepare(input, &read, schema)?;
        let (order, ascending) = self.time_order(&params.order_by, schema, &input, "LAG")?;
        if !ascending {
            return Err(self.scope.unsupported(
                SPOT,
                "LAG in descending order is not supported",
                "write ORDER BY … ASC",
            ));
        }
        let partition = self.key_columns(&params.partition_by, schema, &input)?;
        let width = input.columns.len();
        let columns = input.columns.clone();
        let mut made: Vec<Column> = columns.iter().filter(|column| is_made(column)).cloned().collect();
        let keys: Vec<usize> = partition.iter().map(|key| place(&mut made, key)).collect();
        let by_rowtime = order.role.is_rowtime();
        let order_name = order.name.clone();
        let order = match by_rowtime {
            true => TimeOrder::Rowtime(place(&mut made, &order)),
            false => TimeOrder::ProcessingTime,
        };
        let mut lags = Vec::with_capacity(functions.len());
        for function in functions {
            lags.push(self.lag_column(function, schema, &input, &mut made, &lags)?);
        }
        let stream = self.flush(Stream { columns: made, ..input })?;
        let first = stream.columns.len();
        let mut output = stream.columns.clone();
        for (index, lag) in lags.iter().enumerate() {
            let planned = window.schema.field(width + index);
            let argument = &stream.columns[lag.argument];
            let nullable = lag.default.is_none_or(|default| stream.columns[default].nullable) || argument.nullable;
            let field = planned.as_ref().clone().with_data_type(argument.data_type.clone()).with_nullable(nullable);
            let column = Column::of_node(first + index, &field, Role::Plain, lag.name.clone());
            output.push(Column { text: lag.name.clone(), ..column });
        }
        let kind = if by_rowtime { "lag by rowtime" } else { "lag by proctime" };
        let lineages: Vec<String> = partition.iter().map(|key| key.lineage.clone()).collect();
        let lineage = stream.lineage.step(kind, &lineages);
        let schema = Stream::of_node(0, Changelog::InsertOnly, output.clone(), lineage.clone()).schema();
        let alias = self.next_alias();
        let factory = LagFactory::new(LagSpec {
            input: Arc::clone(&self.graph.graph.nodes[stream.head].output),
            keys: keys.clone(),
            order,
            lags: lags.clone(),
            output: Arc::clone(&schema),
            state_ttl: self.settings.state_ttl,
            alias: alias.clone(),
        });
        let factory = factory.map_err(|error| self.scope.place(error, SPOT))?;
        let factory = NamedState::new(factory, alias);
        let names = |columns: &[Column]| columns.iter().map(|c| c.name.as_str()).collect::<Vec<_>>().join(", ");
        let step = Step {
            kind,
            keys: &lineages,
            lineage: Some(&stream.lineage),
            name: "Lag".to_owned(),
            details: vec![
                ("keys".to_owned(), names(&partition)),
                ("order".to_owned(), format!("{order_name} ({})", if by_rowtime { "rowtime" } else { "proctime" })),
                ("columns".to_owned(), lags.iter().map(|lag| lag.name.as_str()).collect::<Vec<_>>().join(", ")),
            ],
            output: schema,
            changelog: Changelog::InsertOnly,
            state: factory.describe(),
            parallelism: keys.is_empty().then_some(1),
        };
        let head = self.graph.operator(step, self.target, Arc::new(factory), (stream.head, exchange(&keys)));
        let mut real = output[..first].iter().cloned();
        let mut columns: Vec<Column> = columns
            .into_iter()
            .map(|column| if is_made(&column) { real.next().unwrap_or(column) } else { column })
            .collect();
        columns.extend_from_slice(&output[first..]);
        Ok(Stream { head, columns, lineage, ..stream })
    }

    fn lag_column(
        &self,
        function: &WindowFunction,
        schema: &DFSchema,
        input: &Stream,
        made: &mut Vec<Column>,
        others: &[LagColumn],
    ) -> Result<LagColumn> {
        let params = &function.params;
        let (argument, default) = match params.args.as_slice() {
            [argument] => (argument, None),
            [argument, offset] if is_one(offset) => (argument, None),
            [argument, offset, default] if is_one(offset) => (argument, Some(default)),
            _ => {
                let way_out = "take LAG(x) of LAG(x) in an outer query for the row before that";
                return Err(self.scope.unsupported(SPOT, "LAG over more than one row is not supported yet", way_out));
            }
        };
        if params.null_treatment.is_some() || params.filter.is_some() || params.distinct {
            let cause = "LAG with IGNORE NULLS, FILTER or DISTINCT is not supported yet";
            return Err(self.scope.unsupported(SPOT, cause, "filter the rows before, in a subquery"));
        }
        let column = |expr: &Expr, name: &str| {
            let field = expr.to_field(schema).map_err(|error| self.scope.datafusion(error, SPOT))?.1;
            let column = self.column(expr, &field, schema, input)?;
            Ok::<_, streamkeeper_types::Error>(match super::calc::plain_column(expr) {
                Some(_) => column,
                None => Column { name: name.to_owned(), ..column },
            })
        };
        let argument_column = column(argument, &format!("lag_{}", others.len()))?;
        let data_type = argument_column.data_type.clone();
        let default = match default {
            None => None,
            Some(Expr::Literal(value, metadata)) if !value.is_null() => {
                let value: ScalarValue =
                    value.cast_to(&data_type).map_err(|error| self.scope.datafusion(error, SPOT))?;
                Some(column(&Expr::Literal(value, metadata.clone()), &format!("default_{}", others.len()))?)
            }
            Some(Expr::Literal(..)) => None,
            Some(expr) => Some(column(expr, &format!("default_{}", others.len()))?),
        };
        if let Some(default) = &default
            && default.data_type != data_type
        {
            let cause = "the default of LAG has another type than its argument";
            return Err(self.scope.invalid(SPOT, cause, "cast it to the argument's type"));
        }
        let base = format!("LAG({})", self.named_by_lineage(argument, schema, input)?).replace('`', "");
        let repeated =
            others.iter().filter(|other| other.name == base || other.name.starts_with(&format!("{base} #"))).count();
        let name = if repeated == 0 { base } else { format!("{base} #{}", repeated + 1) };
        let argument = place(made, &argument_column);
        let default =
            default.filter(|default| matches!(default.value, Value::Expr(_))).map(|default| place(made, &default));
        Ok(LagColumn { argument, default, name })
    }
}

fn is_one(expr: &Expr) -> bool {
    matches!(uncast(expr), Expr::Literal(value, _)
        if value.cast_to(&arrow::datatypes::DataType::Int64).is_ok_and(|value| value == ScalarValue::Int64(Some(1))))
}
