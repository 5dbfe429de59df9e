//! SELECT lists and WHERE: gathered as expressions, fused into one `project` node where that costs nothing twice.

use std::{collections::HashMap, sync::Arc};

use arrow::datatypes::{DataType, Field};
use datafusion::{
    common::{
        DFSchema,
        tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion},
    },
    logical_expr::{
        Expr, Filter, Operator, Projection,
        utils::{conjunction, split_conjunction},
    },
    physical_expr::{
        PhysicalExpr, ScalarFunctionExpr,
        expressions::{BinaryExpr, CastExpr, Column as ColumnExpr, IsNotNullExpr, IsNullExpr, Literal, NotExpr},
    },
};
use streamkeeper_engine::Partitioning;
use streamkeeper_operators::{Expression, ProjectFactory};
use streamkeeper_types::{Error, Result};

use super::Translator;
use crate::{
    functions::is_comparison,
    plan::{
        fingerprint::{bounded, canonical, with_columns},
        graph::Step,
        shown::{shown, whole},
        stream::{Column, Pending, Role, Stream, Value},
        wording::name_in_sql,
    },
};

impl Translator<'_> {
    pub(super) fn projection(&mut self, projection: &Projection) -> Result<Stream> {
        let mut input = self.relation(&projection.input)?;
        let schema = projection.input.schema();
        if let Some(windows) = self.window_markers(projection)? {
            return self.window_table(input, projection, windows);
        }
        input = self.prepare(input, &projection.expr, schema)?;
        let columns = projection
            .expr
            .iter()
            .zip(projection.schema.fields())
            .map(|(expr, field)| self.column(expr, field, schema, &input))
            .collect::<Result<Vec<_>>>()?;
        Ok(Stream { columns, ..input })
    }

    pub(super) fn filter(&mut self, filter: &Filter) -> Result<Stream> {
        let input = self.relation(&filter.input)?;
        let schema = filter.input.schema();
        if let Some(Pending::RowNumber(_)) = &input.pending {
            return self.first_row(input, filter);
        }
        self.keep(input, split_conjunction(&filter.predicate), schema)
    }

    /// Keeps the rows for which all of `conditions` hold. Those that cannot fail come first, each of the others is
    /// evaluated only for the rows that passed so far: `x <> 0 AND 10 / x > 1` must not divide by zero.
    pub(super) fn keep(&mut self, input: Stream, conditions: Vec<&Expr>, schema: &DFSchema) -> Result<Stream> {
        let Some(whole) = conjunction(conditions.iter().copied().cloned()) else { return Ok(input) };
        let text = self.canonical(&whole, schema, &input)?;
        let lineage = input.lineage.filter(&text);
        let (safe, risky): (Vec<&Expr>, Vec<&Expr>) = {
            let mut parts = (Vec::new(), Vec::new());
            for condition in conditions {
                if cannot_fail(&self.physical(condition, schema)?) { &mut parts.0 } else { &mut parts.1 }
                    .push(condition);
            }
            parts
        };
        let mut stream = input;
        let steps = conjunction(safe.into_iter().cloned()).into_iter().chain(risky.into_iter().cloned());
        for step in steps {
            stream = self.one_filter(stream, &step, schema)?;
        }
        stream.lineage = lineage;
        Ok(stream)
    }

    fn one_filter(&mut self, input: Stream, condition: &Expr, schema: &DFSchema) -> Result<Stream> {
        let mut input = self.prepare(input, std::slice::from_ref(condition), schema)?;
        let computed = |column: &Column| !column.is_trivial();
        if input.filter.is_some() || columns_of(condition, schema)?.keys().any(|&i| computed(&input.columns[i])) {
            input = self.flush(input)?;
        }
        let text = self.shown(condition, schema, &input)?;
        let expr = substitute(self.physical(condition, schema)?, &input.columns)?;
        input.filter = Some(Expression { expr, text });
        Ok(input)
    }

    /// Makes real whatever `exprs` compute with and could not yet, or would compute twice.
    pub(super) fn prepare(&mut self, input: Stream, exprs: &[Expr], schema: &DFSchema) -> Result<Stream> {
        let mut uses: HashMap<usize, usize> = HashMap::new();
        let mut needs_pending = false;
        for expr in exprs {
            let is_plain = plain_column(expr).is_some();
            for (index, count) in columns_of(expr, schema)? {
                *uses.entry(index).or_default() += count;
                needs_pending |= !is_plain && matches!(input.columns[index].value, Value::Pending);
            }
        }
        // Expressions whose lineage became a hash are long; they would grow without end if they went on unevaluated.
        let is_heavy = |column: &Column| column.lineage.starts_with('#');
        let twice = uses.iter().any(|(&index, &count)| {
            let column = &input.columns[index];
            !column.is_trivial() && (count > 1 || is_heavy(column))
        });
        if !needs_pending && !twice {
            return Ok(input);
        }
        if twice && input.pending.is_some() && !needs_pending {
            return self.flush_below_pending(input);
        }
        self.flush(input)
    }

    /// One column of a SELECT list.
    pub(super) fn column(&self, expr: &Expr, field: &Field, schema: &DFSchema, input: &Stream) -> Result<Column> {
        if let Some(column) = plain_column(expr) {
            let index = schema.index_of_column(column).map_err(|error| self.scope.datafusion(error, &[]))?;
            let column = input.columns[index].clone();
            // What has no name in the text keeps the one it has.
            let is_named = name_in_sql(field.name()) != column.name;
            return Ok(if is_named { Column { name: field.name().clone(), ..column } } else { column });
        }
        let value = substitute(self.physical(expr, schema)?, &input.columns)?;
        Ok(Column {
            name: field.name().clone(),
            data_type: field.data_type().clone(),
            nullable: field.is_nullable(),
            value: Value::Expr(value),
            role: if self.analyst.is_proctime(expr) { Role::Proctime } else { Role::Plain },
            text: self.shown(expr, schema, input)?,
            lineage: self.canonical(expr, schema, input)?,
        })
    }

    fn shown(&self, expr: &Expr, schema: &DFSchema, input: &Stream) -> Result<String> {
        let named = with_columns(expr, schema, &input.texts());
        named.map(|named| shown(&named)).map_err(|error| self.scope.datafusion(error, &[]))
    }

    pub(super) fn canonical(&self, expr: &Expr, schema: &DFSchema, input: &Stream) -> Result<String> {
        canonical(expr, schema, &input.lineages()).map_err(|error| self.scope.datafusion(error, &[]))
    }

    /// As SQL has it, in terms of what tables say, for names of state.
    pub(super) fn named_by_lineage(&self, expr: &Expr, schema: &DFSchema, input: &Stream) -> Result<String> {
        let named = with_columns(expr, schema, &input.lineages());
        named.map(|named| bounded(whole(&named))).map_err(|error| self.scope.datafusion(error, &[]))
    }

    /// A stream whose columns are exactly those of its head, in order.
    pub(crate) fn flush(&mut self, mut stream: Stream) -> Result<Stream> {
        if stream.pending.is_some() {
            return self.flush_pending(stream);
        }
        let head = &self.graph.graph.nodes[stream.head];
        let width =
            head.output.fields().len() - usize::from(stream.changelog == streamkeeper_engine::Changelog::Updating);
        let is_identity = stream.filter.is_none()
            && stream.columns.len() == width
            && stream.columns.iter().enumerate().all(|(index, column)| {
                reads_column(column) == Some(index) && head.output.field(index).name() == &column.name
            });
        if is_identity {
            return Ok(stream);
        }
        let projection = stream.columns.iter().map(expression).collect::<Result<Vec<_>>>()?;
        let output = stream.schema();
        let mut factory = ProjectFactory::new(output.clone(), projection);
        let mut details = vec![("columns".to_owned(), columns_text(&stream.columns))];
        if let Some(filter) = stream.filter.take() {
            details.push(("filter".to_owned(), filter.text.clone()));
            factory = factory.filter(filter);
        }
        factory = factory.clock(self.analyst.clock_hook());
        let step = Step {
            kind: "project",
            keys: &[],
            lineage: Some(&stream.lineage),
            name: "Project".to_owned(),
            details,
            output,
            changelog: stream.changelog,
            state: Vec::new(),
            parallelism: self.graph.graph.nodes[stream.head].parallelism,
        };
        let head = self.graph.operator(step, self.target, Arc::new(factory), (stream.head, Partitioning::Forward));
        let columns = stream.columns.into_iter().enumerate().map(|(index, column)| Column {
            value: Value::Expr(Arc::new(ColumnExpr::new(&column.name, index))),
            text: column.name.clone(),
            ..column
        });
        Ok(Stream { columns: columns.collect(), head, ..stream })
    }
}

/// The column that an expression merely hands on, aliases aside.
pub(super) fn plain_column(expr: &Expr) -> Option<&datafusion::common::Column> {
    match expr {
        Expr::Column(column) => Some(column),
        Expr::Alias(alias) => plain_column(&alias.expr),
        _ => None,
    }
}

/// The expression below casts.
pub(super) fn uncast(expr: &Expr) -> &Expr {
    match expr {
        Expr::Cast(cast) => uncast(&cast.expr),
        Expr::TryCast(cast) => uncast(&cast.expr),
        other => other,
    }
}

/// How often each input column stands in the expression.
fn columns_of(expr: &Expr, schema: &DFSchema) -> Result<HashMap<usize, usize>> {
    let mut counts = HashMap::new();
    expr.apply(|inner| {
        if let Expr::Column(column) = inner {
            *counts.entry(schema.index_of_column(column)?).or_default() += 1;
        }
        Ok(TreeNodeRecursion::Continue)
    })
    .map_err(|error| Error::internal(error.strip_backtrace()))?;
    Ok(counts)
}

/// `expr` over the stream's columns as one over its head.
pub(super) fn substitute(expr: Arc<dyn PhysicalExpr>, columns: &[Column]) -> Result<Arc<dyn PhysicalExpr>> {
    expr.transform_up(|inner| {
        let Some(column) = inner.downcast_ref::<ColumnExpr>() else { return Ok(Transformed::no(inner)) };
        match &columns[column.index()].value {
            Value::Expr(value) => Ok(Transformed::yes(Arc::clone(value))),
            Value::Pending => datafusion::common::internal_err!("`{}` is not made yet", column.name()),
        }
    })
    .data()
    .map_err(|error| Error::internal(error.strip_backtrace()))
}

/// A column as `project` takes it.
fn expression(column: &Column) -> Result<Expression> {
    match &column.value {
        Value::Expr(expr) => Ok(Expression { expr: Arc::clone(expr), text: column.text.clone() }),
        Value::Pending => Err(Error::internal(format!("column `{}` is not made yet", column.name))),
    }
}

/// Index of the head's column that this one is.
pub(super) fn reads_column(column: &Column) -> Option<usize> {
    match &column.value {
        Value::Expr(expr) => expr.downcast_ref::<ColumnExpr>().map(ColumnExpr::index),
        Value::Pending => None,
    }
}

/// As in `path, hits = __cast(…)`.
fn columns_text(columns: &[Column]) -> String {
    let text = |column: &Column| match reads_column(column) {
        Some(_) => column.name.clone(),
        None => format!("{} = {}", column.name, column.text),
    };
    columns.iter().map(text).collect::<Vec<_>>().join(", ")
}

/// Whether no row can make the expression fail.
fn cannot_fail(expr: &Arc<dyn PhysicalExpr>) -> bool {
    use Operator::{And, Eq, Gt, GtEq, IsDistinctFrom, IsNotDistinctFrom, Lt, LtEq, NotEq, Or};
    let itself = if let Some(binary) = expr.downcast_ref::<BinaryExpr>() {
        matches!(binary.op(), Eq | NotEq | Lt | LtEq | Gt | GtEq | IsDistinctFrom | IsNotDistinctFrom | And | Or)
    } else if let Some(cast) = expr.downcast_ref::<CastExpr>() {
        // CAST in the text is a function of ours; this is what brings two numbers to one type.
        cast.cast_type().is_numeric()
    } else if let Some(call) = expr.downcast_ref::<ScalarFunctionExpr>() {
        is_comparison(call.name())
    } else {
        expr.is::<ColumnExpr>()
            || expr.is::<Literal>()
            || expr.is::<IsNullExpr>()
            || expr.is::<IsNotNullExpr>()
            || expr.is::<NotExpr>()
    };
    itself && expr.children().into_iter().all(cannot_fail)
}

/// BOOLEAN columns are what FILTER (WHERE …) and WHERE take.
pub(super) fn is_boolean(column: &Column) -> bool {
    column.data_type == DataType::Boolean
}
