//! The end of an INSERT: columns matched to the target's, implicit casts, NOT NULL, and the sink's node.

use std::sync::Arc;

use arrow::datatypes::{DataType, Field, Schema};
use datafusion::{
    common::ScalarValue,
    logical_expr::{Expr, LogicalPlan, Projection},
    physical_expr::expressions::{IsNotNullExpr, Literal},
};
use streamkeeper_connectors::SinkInput;
use streamkeeper_engine::{Changelog, NodeFactory, Partitioning};
use streamkeeper_operators::{Expression, changelog::updating_schema};
use streamkeeper_types::{Code, Error, Result};

use super::{
    PlanOptions,
    assignable::is_assignable,
    fault::{Scope, Spot, nearest},
    graph::Step,
    logical::Analyst,
    not_null::NotNullFactory,
    settings::NotNull,
    source::{connector_of, definition},
    stream::{Column, Role, Stream, Value},
    translate::Translator,
};
use crate::{
    catalog::{ColumnKind, Table},
    parse::Insert,
    types::SqlType,
};

/// A physical column of the target and where its values come from.
struct Target<'a> {
    name: &'a str,
    data_type: &'a SqlType,
    nullable: bool,
    /// Position in the query's columns; `None` is NULL.
    from: Option<usize>,
}

/// Matches the query's columns to the target's and casts them: the plan's columns are then the target's, in order,
/// those without a value left out.
pub(super) fn fit(
    plan: LogicalPlan,
    insert: &Insert,
    table: &Table,
    analyst: &Analyst,
    scope: &Scope,
) -> Result<LogicalPlan> {
    let targets = targets(insert, table, plan.schema().fields().len(), scope)?;
    let mut exprs = Vec::with_capacity(targets.len());
    for target in &targets {
        let Some(from) = target.from else { continue };
        let (qualifier, field) = plan.schema().qualified_field(from);
        let column = Expr::Column(datafusion::common::Column::from((qualifier, field)));
        let expr = converted(column, field, target, analyst, scope, table)?;
        exprs.push(expr.alias(target.name));
    }
    let place = [Spot::At(insert.target_position)];
    let exprs = analyst.analyse(exprs, plan.schema()).map_err(|error| scope.datafusion(error, &place))?;
    let projection = Projection::try_new(exprs, Arc::new(plan));
    projection.map(LogicalPlan::Projection).map_err(|error| scope.datafusion(error, &[]))
}

fn targets<'a>(insert: &'a Insert, table: &'a Table, given: usize, scope: &Scope) -> Result<Vec<Target<'a>>> {
    let place = [Spot::At(insert.target_position)];
    let mut targets: Vec<Target> = table
        .columns
        .iter()
        .filter_map(|column| match &column.kind {
            ColumnKind::Physical { data_type, nullable } => {
                Some(Target { name: &column.name, data_type, nullable: *nullable, from: None })
            }
            ColumnKind::Computed(_) => None,
        })
        .collect();
    let names: Vec<&str> = match &insert.columns {
        Some(names) => names.iter().map(String::as_str).collect(),
        None => targets.iter().map(|target| target.name).collect(),
    };
    if names.len() != given {
        let cause = format!("the query has {given} columns, `{}` takes {}", table.name, names.len());
        return Err(scope.invalid(&place, cause, format!("select {}", names.join(", "))));
    }
    for (position, name) in names.iter().enumerate() {
        let Some(target) = targets.iter_mut().find(|target| target.name == *name) else {
            return Err(no_target(name, table, scope));
        };
        if target.from.replace(position).is_some() {
            let spots = [Spot::Name(name), place[0]];
            return Err(scope.invalid(&spots, format!("column `{name}` is named twice"), "name it once"));
        }
    }
    if let Some(missing) = targets.iter().find(|target| target.from.is_none() && !target.nullable) {
        let cause = format!("column `{}` of `{}` is NOT NULL and gets no value", missing.name, table.name);
        return Err(scope.invalid(&place, cause, "add it to the list of columns"));
    }
    Ok(targets)
}

fn no_target(name: &str, table: &Table, scope: &Scope) -> Error {
    let spots = [Spot::Name(name)];
    if table.column(name).is_some() {
        let cause = format!("column `{name}` of `{}` is computed, nothing can be inserted into it", table.name);
        return scope.invalid(&spots, cause, "leave it out");
    }
    let way_out = match nearest(name, table.columns.iter().map(|column| column.name.as_str())) {
        Some(near) => format!("did you mean `{near}`?"),
        None => "name columns of the table".to_owned(),
    };
    scope.invalid(&spots, format!("`{}` has no column `{name}`", table.name), way_out)
}

/// The column as the target's type.
fn converted(
    column: Expr,
    field: &Field,
    target: &Target,
    analyst: &Analyst,
    scope: &Scope,
    table: &Table,
) -> Result<Expr> {
    let wanted = target.data_type.arrow();
    if *field.data_type() == wanted {
        return Ok(column);
    }
    if *field.data_type() == DataType::Null {
        return Ok(analyst.cast(column, target.data_type));
    }
    let from = SqlType::from_arrow(field.data_type());
    match from {
        Some(from) if is_assignable(&from, target.data_type) => Ok(analyst.cast(column, target.data_type)),
        from => {
            let from = from.map_or_else(|| field.data_type().to_string(), |from| from.to_string());
            let cause = format!(
                "column `{}` of `{}` is {}, the query's `{}` is {from}",
                target.name,
                table.name,
                target.data_type,
                field.name()
            );
            let way_out = format!("write CAST({} AS {})", field.name(), target.data_type);
            Err(scope.invalid(&[Spot::Name(field.name())], cause, way_out))
        }
    }
}

impl Translator<'_> {
    /// Adds the sink behind the query's stream, whose columns are as [`fit`] made them.
    pub(super) fn sink(&mut self, input: Stream, insert: &Insert, table: &Table, options: &PlanOptions) -> Result<()> {
        let place = [Spot::At(insert.target_position)];
        let input = self.all_columns(input, insert, table)?;
        let input = self.enforce_not_null(input, table)?;
        let connector = connector_of(table)?;
        let changelog = input.changelog;
        let physical = Schema::new(input.columns.iter().map(field).collect::<Vec<_>>());
        let schema = match changelog {
            Changelog::InsertOnly => Arc::new(physical),
            Changelog::Updating => updating_schema(&physical),
        };
        let name = format!("Sink({})", table.name);
        let step = Step {
            kind: "sink",
            keys: &[],
            lineage: Some(&input.lineage),
            name: name.clone(),
            details: details(table),
            output: Arc::clone(&schema),
            changelog,
            state: Vec::new(),
            parallelism: None,
        };
        let id = self.graph.id(&step, Some(self.target));
        let primary_key = table.primary_key.iter().filter_map(|key| schema.index_of(key).ok()).collect();
        let sink_input = SinkInput { schema, changelog, primary_key, operator: id, name };
        let factory = connector.sink(&definition(table, options), &sink_input).map_err(|error| {
            let error = self.explain_updates(error, changelog, table);
            self.scope.place(error, &place)
        })?;
        self.graph.add(step, id, NodeFactory::Operator(factory), &[(input.head, Partitioning::Forward)]);
        Ok(())
    }

    /// The target's physical columns in order, with NULL for those that the INSERT does not name.
    fn all_columns(&mut self, input: Stream, insert: &Insert, table: &Table) -> Result<Stream> {
        let input = self.flush_pending(input)?;
        let mut given = input.columns.iter().cloned();
        let mut columns = Vec::new();
        for column in &table.columns {
            let ColumnKind::Physical { data_type, nullable } = &column.kind else { continue };
            let named = insert.columns.as_ref().is_none_or(|names| names.contains(&column.name));
            let next = if named { given.next() } else { Some(null_column(&column.name, &data_type.arrow())?) };
            let next = next.ok_or_else(|| Error::internal(format!("no value for column `{}`", column.name)))?;
            columns.push(Column { name: column.name.clone(), nullable: next.nullable || *nullable, ..next });
        }
        let input = Stream { columns, ..input };
        self.flush(input)
    }

    fn enforce_not_null(&mut self, mut input: Stream, table: &Table) -> Result<Stream> {
        let is_guarded = |name: &str| {
            table.column(name).is_some_and(|column| matches!(column.kind, ColumnKind::Physical { nullable: false, .. }))
        };
        let guarded: Vec<(usize, String)> = input
            .columns
            .iter()
            .enumerate()
            .filter(|(_, column)| column.nullable && is_guarded(&column.name))
            .map(|(index, column)| (index, column.name.clone()))
            .collect();
        if guarded.is_empty() {
            return Ok(input);
        }
        if self.settings.not_null == NotNull::Drop {
            for (index, name) in &guarded {
                let Value::Expr(value) = &input.columns[*index].value else { continue };
                let expr = Arc::new(IsNotNullExpr::new(Arc::clone(value)));
                input.filter = Some(Expression { expr, text: format!("{name} IS NOT NULL") });
                input = self.flush(input)?;
            }
            return Ok(input);
        }
        let names: Vec<&str> = guarded.iter().map(|(_, name)| name.as_str()).collect();
        let step = Step {
            kind: "not-null",
            keys: &[],
            lineage: Some(&input.lineage),
            name: "NotNull".to_owned(),
            details: vec![("columns".to_owned(), names.join(", "))],
            output: input.schema(),
            changelog: input.changelog,
            state: Vec::new(),
            parallelism: self.graph.graph.nodes[input.head].parallelism,
        };
        let factory = NotNullFactory { table: table.name.clone(), columns: guarded };
        let head = self.graph.operator(step, self.target, Arc::new(factory), (input.head, Partitioning::Forward));
        Ok(Stream { head, ..input })
    }

    /// An append-only sink names the rule; the query's author wants to know which step updates.
    fn explain_updates(&self, error: Error, changelog: Changelog, table: &Table) -> Error {
        if changelog == Changelog::InsertOnly || error.code == Code::OptionInvalid {
            return error;
        }
        let updating = self
            .graph
            .graph
            .nodes
            .iter()
            .rev()
            .find(|node| node.changelog == Changelog::Updating && !node.state.is_empty());
        let step = updating.map_or("the query", |node| node.name.as_str());
        let cause = format!("`{}` takes new rows only, and {step} updates rows that it has put out", table.name);
        if step.starts_with("WindowAggregate") {
            return Error { cause, ..error }.way_out(
                "set 'window.allowed-lateness' to '0s', or write to a table that takes updates, as 'print' does",
            );
        }
        Error { cause, ..error }.way_out(
            "group by window_start and window_end of a window table function, keep the first row instead of the last, \
             or write to a table that takes updates, as 'print' does",
        )
    }
}

fn field(column: &Column) -> Field {
    Field::new(&column.name, column.data_type.clone(), column.nullable)
}

fn null_column(name: &str, data_type: &DataType) -> Result<Column> {
    let null = ScalarValue::try_from(data_type).map_err(|error| Error::internal(error.strip_backtrace()))?;
    Ok(Column {
        name: name.to_owned(),
        data_type: data_type.clone(),
        nullable: true,
        value: Value::Expr(Arc::new(Literal::new(null))),
        role: Role::Plain,
        text: "NULL".to_owned(),
        lineage: "NULL".to_owned(),
    })
}

fn details(table: &Table) -> Vec<(String, String)> {
    let mut details: Vec<(String, String)> = ["connector", "path", "format"]
        .into_iter()
        .filter_map(|key| Some((key.to_owned(), table.option(key)?.to_owned())))
        .collect();
    if !table.partitioned_by.is_empty() {
        details.push(("partitioned by".to_owned(), table.partitioned_by.join(", ")));
    }
    details
}
