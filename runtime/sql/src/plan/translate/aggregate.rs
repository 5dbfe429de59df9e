//! GROUP BY and DISTINCT: over windows if the group has both borders of one, else updating.

use std::sync::Arc;

use arrow::datatypes::{Field, FieldRef, Schema};
use datafusion::{
    common::DFSchema,
    logical_expr::{Aggregate, Expr, ExprSchemable, LogicalPlan, expr::AggregateFunction as Call},
    physical_expr::expressions::CastExpr,
    scalar::ScalarValue,
};
use streamkeeper_engine::Changelog;
use streamkeeper_operators::{AggregateFunction, AggregateSpec, GroupAggregateFactory, GroupAggregateSpec};
use streamkeeper_types::{Error, Result};

use super::{
    Translator,
    calc::{is_boolean, plain_column},
    deduplicate::exchange,
    keyed::place,
};
use crate::plan::{
    fault::Spot,
    graph::Step,
    named_state::NamedState,
    stream::{Column, Role, Stream, Value, WindowPart},
    wording::name_in_sql,
};

/// A GROUP BY with its columns found in the input.
pub(super) struct Grouping {
    /// In the order of the logical plan, each with its place among the keys; parts of a window have none.
    pub(super) groups: Vec<(Column, Option<usize>)>,
    /// What keyed steps take: keys, then arguments and filters.
    pub(super) made: Vec<Column>,
    /// Number of keys, the first columns of `made`.
    pub(super) keys: usize,
    /// Over `made`.
    pub(super) aggregates: Vec<AggregateSpec>,
}

impl Translator<'_> {
    pub(super) fn aggregate(&mut self, aggregate: &Aggregate) -> Result<Stream> {
        let input = self.relation(&aggregate.input)?;
        self.group(input, &aggregate.group_expr, &aggregate.aggr_expr, aggregate.input.schema(), &aggregate.schema)
    }

    /// SELECT DISTINCT groups by all columns and aggregates nothing.
    pub(super) fn distinct(&mut self, plan: &LogicalPlan) -> Result<Stream> {
        let input = self.relation(plan)?;
        let columns: Vec<Expr> = plan.schema().columns().into_iter().map(Expr::Column).collect();
        self.group(input, &columns, &[], plan.schema(), plan.schema())
    }

    fn group(
        &mut self,
        input: Stream,
        group_by: &[Expr],
        aggregates: &[Expr],
        schema: &DFSchema,
        output: &DFSchema,
    ) -> Result<Stream> {
        let calls = aggregates.iter().map(call).collect::<Result<Vec<_>>>()?;
        let over_window = has_both_borders(group_by, schema, &input);
        // Without both borders the rows of a window table function are grouped like any others.
        let input = if over_window { self.no_ranking(input)? } else { self.flush_pending(input)? };
        let read: Vec<Expr> = group_by.iter().cloned().chain(calls.iter().flat_map(|call| arguments(call))).collect();
        let input = self.prepare(input, &read, schema)?;
        let groups = self.key_columns(group_by, schema, &input)?;
        let grouping = self.grouping(&input, groups, &calls, schema, over_window)?;
        let results = &output.fields()[grouping.groups.len()..];
        if over_window {
            return self.window_aggregate(input, grouping, results);
        }
        self.group_aggregate(input, grouping, results)
    }

    /// The columns that a grouping needs.
    fn grouping(
        &self,
        input: &Stream,
        groups: Vec<Column>,
        calls: &[&Call],
        schema: &DFSchema,
        over_window: bool,
    ) -> Result<Grouping> {
        let mut made = Vec::new();
        let groups: Vec<(Column, Option<usize>)> = groups
            .into_iter()
            .map(|group| {
                let is_window = over_window && matches!(group.role, Role::Window(_));
                let key = (!is_window).then(|| place(&mut made, &group));
                (group, key)
            })
            .collect();
        let keys = made.len();
        let mut aggregates = Vec::with_capacity(calls.len());
        for call in calls {
            let spec = self.aggregate_spec(call, schema, input, &mut made, &aggregates)?;
            aggregates.push(spec);
        }
        Ok(Grouping { groups, made, keys, aggregates })
    }

    fn group_aggregate(&mut self, input: Stream, grouping: Grouping, results: &[FieldRef]) -> Result<Stream> {
        let Grouping { groups, made, keys, aggregates } = grouping;
        let lineages: Vec<String> = made[..keys].iter().map(|key| key.lineage.clone()).collect();
        let mut output: Vec<Column> = (0..keys).map(|index| key_column(index, &made[index])).collect();
        let input = self.flush(Stream { columns: made, pending: None, ..input })?;
        let input_schema = Arc::clone(&self.graph.graph.nodes[input.head].output);
        let fields = result_fields(&aggregates, &input_schema, results)
            .map_err(|error| self.scope.place(error, &aggregate_spots(&aggregates)))?;
        output.extend(result_columns(keys, &fields, &aggregates));
        let lineage = input.lineage.step("aggregate", &lineages);
        let schema = Stream::of_node(0, Changelog::Updating, output.clone(), lineage.clone()).schema();
        let alias = self.next_alias();
        let keys: Vec<usize> = (0..keys).collect();
        let factory = GroupAggregateFactory::new(GroupAggregateSpec {
            input: input_schema,
            keys: keys.clone(),
            aggregates: aggregates.clone(),
            output: Arc::clone(&schema),
            state_ttl: self.settings.state_ttl,
            alias: alias.clone(),
        });
        let factory = factory.map_err(|error| self.scope.place(error, &aggregate_spots(&aggregates)))?;
        let factory = NamedState::new(factory, alias);
        let step = Step {
            kind: "aggregate",
            keys: &lineages,
            lineage: Some(&input.lineage),
            name: if aggregates.is_empty() { "Distinct".to_owned() } else { "GroupAggregate".to_owned() },
            details: grouping_details(&output[..keys.len()], &aggregates),
            output: schema,
            changelog: Changelog::Updating,
            state: factory.describe(),
            parallelism: keys.is_empty().then_some(1),
        };
        let head = self.graph.operator(step, self.target, Arc::new(factory), (input.head, exchange(&keys)));
        let of_group = |(group, key): (Column, Option<usize>)| match key {
            Some(key) => Ok(Column { name: group.name, role: Role::Plain, ..output[key].clone() }),
            None => Err(Error::internal(format!("group column `{}` has no key", group.name))),
        };
        let mut columns = groups.into_iter().map(of_group).collect::<Result<Vec<_>>>()?;
        for (column, planned) in output[keys.len()..].iter().zip(results) {
            columns.push(as_planned(column, planned)?);
        }
        Ok(Stream::of_node(head, Changelog::Updating, columns, lineage))
    }

    fn aggregate_spec(
        &self,
        call: &Call,
        schema: &DFSchema,
        input: &Stream,
        made: &mut Vec<Column>,
        others: &[AggregateSpec],
    ) -> Result<AggregateSpec> {
        let shown = call.func.name().to_uppercase();
        let spots = [Spot::Function(&shown)];
        let refuse = |cause: String, way_out: &str| Err(self.scope.unsupported(&spots, cause, way_out));
        let function = match shown.as_str() {
            "COUNT" => AggregateFunction::Count,
            "SUM" => AggregateFunction::Sum,
            "MIN" => AggregateFunction::Min,
            "MAX" => AggregateFunction::Max,
            "AVG" => AggregateFunction::Avg,
            _ => {
                let way_out = "aggregates are COUNT, SUM, MIN, MAX and AVG, with DISTINCT and FILTER";
                return refuse(format!("the aggregate {shown} is not supported yet"), way_out);
            }
        };
        let params = &call.params;
        if !params.order_by.is_empty() || params.null_treatment.is_some() {
            return refuse(format!("{shown} with ORDER BY or IGNORE NULLS is not supported yet"), "leave it out");
        }
        let argument = match params.args.as_slice() {
            [argument] if function == AggregateFunction::Count && !params.distinct && is_never_null(argument) => None,
            [argument] => Some(self.argument(argument, schema, input, made)?),
            [] if function == AggregateFunction::Count => None,
            _ => return refuse(format!("{shown} of several arguments is not supported yet"), "concatenate them"),
        };
        let filter = match &params.filter {
            Some(filter) => Some(self.argument(filter, schema, input, made)?),
            None => None,
        };
        if filter.is_some_and(|filter| !is_boolean(&made[filter])) {
            let cause = format!("the FILTER of {shown} is not BOOLEAN");
            return Err(self.scope.invalid(&[Spot::Clause(&["FILTER"])], cause, "write a condition"));
        }
        let name = self.aggregate_name(&shown, params, schema, input, others)?;
        Ok(AggregateSpec { function, argument, filter, distinct: params.distinct, name })
    }

    fn argument(&self, expr: &Expr, schema: &DFSchema, input: &Stream, made: &mut Vec<Column>) -> Result<usize> {
        let field = expr.to_field(schema).map_err(|error| self.scope.datafusion(error, &[]))?.1;
        let mut column = self.column(expr, &field, schema, input)?;
        if plain_column(expr).is_none() {
            column.name = format!("arg_{}", made.len());
        }
        Ok(place(made, &column))
    }

    /// As in `SUM(DISTINCT amount) FILTER (amount > 3)`: names the state, so it is made of what tables say, not of
    /// aliases.
    fn aggregate_name(
        &self,
        function: &str,
        params: &datafusion::logical_expr::expr::AggregateFunctionParams,
        schema: &DFSchema,
        input: &Stream,
        others: &[AggregateSpec],
    ) -> Result<String> {
        let distinct = if params.distinct { "DISTINCT " } else { "" };
        let argument = match params.args.as_slice() {
            [argument] if !is_never_null(argument) => self.named_by_lineage(argument, schema, input)?,
            _ => "*".to_owned(),
        };
        let filter = match &params.filter {
            Some(filter) => format!(" FILTER ({})", self.named_by_lineage(filter, schema, input)?),
            None => String::new(),
        };
        let name = format!("{function}({distinct}{argument}){filter}").replace('`', "");
        let repeated =
            others.iter().filter(|other| other.name == name || other.name.starts_with(&format!("{name} #"))).count();
        Ok(if repeated == 0 { name } else { format!("{name} #{}", repeated + 1) })
    }
}

/// The aggregate function, aliases aside.
fn call(expr: &Expr) -> Result<&Call> {
    match expr {
        Expr::AggregateFunction(function) => Ok(function),
        Expr::Alias(alias) => call(&alias.expr),
        other => Err(Error::internal(format!("{other} is no aggregate"))),
    }
}

/// What an aggregate reads.
fn arguments(call: &Call) -> impl Iterator<Item = Expr> {
    call.params.args.iter().cloned().chain(call.params.filter.as_deref().cloned())
}

/// Whether both borders of a window are among the group columns.
fn has_both_borders(group_by: &[Expr], schema: &DFSchema, input: &Stream) -> bool {
    let has = |part: WindowPart| {
        group_by.iter().filter_map(plain_column).any(|column| {
            schema.index_of_column(column).is_ok_and(|index| input.columns[index].role == Role::Window(part))
        })
    };
    has(WindowPart::Start) && has(WindowPart::End)
}

/// A key column as keyed steps put it out.
pub(super) fn key_column(index: usize, key: &Column) -> Column {
    let field = Field::new(&key.name, key.data_type.clone(), key.nullable);
    Column::of_node(index, &field, Role::Plain, key.lineage.clone())
}

/// `COUNT(*)` reaches us as COUNT of a literal.
fn is_never_null(expr: &Expr) -> bool {
    matches!(expr, Expr::Literal(value, _) if *value != ScalarValue::Null && !value.is_null())
}

/// Fields of the aggregates' results as the operator puts them out, named as the plan has them, in SQL.
pub(super) fn result_fields(
    aggregates: &[AggregateSpec],
    input: &Schema,
    planned: &[FieldRef],
) -> Result<Vec<FieldRef>> {
    let field = |(aggregate, planned): (&AggregateSpec, &FieldRef)| {
        let data_type = aggregate.result_type(input)?;
        let nullable = aggregate.function != AggregateFunction::Count;
        Ok(Arc::new(Field::new(name_in_sql(planned.name()), data_type, nullable)))
    };
    aggregates.iter().zip(planned).map(field).collect()
}

/// Columns with the aggregates' results, from position `first` on.
pub(super) fn result_columns(first: usize, results: &[FieldRef], aggregates: &[AggregateSpec]) -> Vec<Column> {
    results
        .iter()
        .zip(aggregates)
        .enumerate()
        .map(|(index, (field, aggregate))| {
            let column = Column::of_node(first + index, field, Role::Plain, aggregate.name.clone());
            Column { text: aggregate.name.clone(), ..column }
        })
        .collect()
}

/// A result as the type that the logical plan goes on with.
pub(super) fn as_planned(column: &Column, planned: &FieldRef) -> Result<Column> {
    let mut column = Column { name: name_in_sql(planned.name()), ..column.clone() };
    if column.data_type == *planned.data_type() {
        return Ok(column);
    }
    if let Value::Expr(value) = &column.value {
        column.value = Value::Expr(Arc::new(CastExpr::new(Arc::clone(value), planned.data_type().clone(), None)));
    }
    column.data_type = planned.data_type().clone();
    Ok(column)
}

pub(super) fn grouping_details(groups: &[Column], aggregates: &[AggregateSpec]) -> Vec<(String, String)> {
    let join = |names: Vec<&str>| names.join(", ");
    let mut details = Vec::new();
    if !groups.is_empty() {
        details.push(("keys".to_owned(), join(groups.iter().map(|group| group.name.as_str()).collect())));
    }
    if !aggregates.is_empty() {
        details.push(("aggregates".to_owned(), join(aggregates.iter().map(|a| a.name.as_str()).collect())));
    }
    details
}

/// Where an error of the aggregates is looked for.
pub(super) fn aggregate_spots(aggregates: &[AggregateSpec]) -> Vec<Spot<'static>> {
    let name = |function: AggregateFunction| match function {
        AggregateFunction::Count => "COUNT",
        AggregateFunction::Sum => "SUM",
        AggregateFunction::Min => "MIN",
        AggregateFunction::Max => "MAX",
        AggregateFunction::Avg => "AVG",
    };
    let functions = aggregates.iter().map(|aggregate| Spot::Function(name(aggregate.function)));
    functions.chain([Spot::Clause(&["GROUP", "BY"])]).collect()
}
