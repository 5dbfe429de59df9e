//! Window table functions: the frame of an aggregate above, or attached to each row.
//!
//! The parser makes of `TABLE(TUMBLE(TABLE t, DESCRIPTOR(ts), …))` a projection with calls of `__window_start` and its
//! like; here they become columns that are still to be made. An aggregate by both borders works on the rows as they
//! are; anything else that computes with the columns has the window attached to each row first.

use std::{sync::Arc, time::Duration};

use arrow::datatypes::{DataType, Field, FieldRef, Schema, TimeUnit};
use datafusion::{
    common::{
        DFSchema,
        tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion},
    },
    logical_expr::{Expr, Projection},
};
use streamkeeper_engine::{Changelog, Partitioning};
use streamkeeper_operators::{
    WindowAggregateFactory, WindowAggregateSpec, WindowAssignFactory, WindowAssignSpec, WindowSpec, WindowTime,
};
use streamkeeper_types::{Error, Result, duration};

use super::{
    Translator,
    aggregate::{Grouping, aggregate_spots, grouping_details, key_column, result_columns, result_fields},
    calc::plain_column,
    deduplicate::exchange,
    keyed::place,
};
use crate::{
    functions::window_mark,
    parse::{WindowKind, WindowTvf},
    plan::{
        fault::Spot,
        graph::Step,
        length::Length,
        named_state::NamedState,
        stream::{Attached, Column, Pending, PendingWindow, Role, Stream, TimeKind, Value, WindowPart},
    },
    types::SqlType,
};

/// The calls that mark a window table function, the column that each stands for, and its name.
const MARKERS: [(&str, WindowPart, &str); 3] = [
    ("__window_start", WindowPart::Start, "window_start"),
    ("__window_end", WindowPart::End, "window_end"),
    ("__window_time", WindowPart::Time, "window_time"),
];

/// A window table function as the parser marked it.
pub(super) struct Marked {
    tvf: WindowTvf,
    /// The DESCRIPTOR column.
    time: Expr,
}

impl Translator<'_> {
    /// The window table function that a projection stands for.
    pub(super) fn window_markers(&self, projection: &Projection) -> Result<Option<Marked>> {
        let mut marked: Option<Marked> = None;
        for expr in &projection.expr {
            let found = expr.apply(|inner| {
                if let Some(mark) = window_mark(inner) {
                    marked = Some(Marked { tvf: mark.window, time: mark.time.clone() });
                }
                Ok(TreeNodeRecursion::Continue)
            });
            found.map_err(|error| Error::internal(error.strip_backtrace()))?;
        }
        Ok(marked)
    }

    /// A projection with markers.
    pub(super) fn window_table(&mut self, input: Stream, projection: &Projection, marked: Marked) -> Result<Stream> {
        let input = self.flush_pending(input)?;
        let schema = projection.input.schema();
        let window = self.pending_window(&input, schema, &marked)?;
        let stream = with_window_columns(input, window);
        let appended = MARKERS.map(|(marker, part, _)| {
            let column = stream.columns.iter().find(|column| column.role == Role::Window(part));
            Field::new(marker, column.map_or(DataType::Null, |column| column.data_type.clone()), false)
        });
        let fault = |error| self.scope.datafusion(error, &[]);
        let appended = DFSchema::try_from(Schema::new(appended.to_vec())).map_err(fault)?;
        let extended = schema.join(&appended).map_err(fault)?;
        let exprs = projection.expr.iter().map(|expr| unmarked(expr.clone())).collect::<Result<Vec<_>>>()?;
        let stream = self.prepare(stream, &exprs, &extended)?;
        let columns = exprs
            .iter()
            .zip(projection.schema.fields())
            .map(|(expr, field)| self.column(expr, field, &extended, &stream))
            .collect::<Result<Vec<_>>>()?;
        Ok(Stream { columns, ..stream })
    }

    fn pending_window(&self, input: &Stream, schema: &DFSchema, marked: &Marked) -> Result<PendingWindow> {
        let name = function_name(marked.tvf.kind);
        let spots = [Spot::Function(name)];
        if matches!(marked.tvf.kind, WindowKind::Cumulate { .. } | WindowKind::Session { .. }) {
            let way_out = "use TUMBLE or HOP";
            return Err(self.scope.unsupported(&spots, format!("{name} is not supported yet"), way_out));
        }
        if input.changelog == Changelog::Updating {
            let way_out = "put the window below the aggregation or deduplication that updates";
            let cause = format!("{name} over rows that are updated later is not supported");
            return Err(self.scope.unsupported(&spots, cause, way_out));
        }
        let Some(column) = plain_column(&marked.time) else {
            let way_out = "aggregate between the two windows, or give the inner query a name in a view";
            return Err(self.scope.unsupported(&spots, format!("{name} over the rows of another window"), way_out));
        };
        let index = schema.index_of_column(column).map_err(|error| self.scope.datafusion(error, &spots))?;
        let column = &input.columns[index];
        let time = match column.role {
            Role::Proctime => TimeKind::Processing,
            role if role.is_rowtime() => TimeKind::Rowtime,
            _ => {
                let cause = format!(
                    "{name} over `{}` of type {}, which is no time attribute",
                    column.name,
                    SqlType::name_of(&column.data_type)
                );
                let way_out = format!(
                    "declare it: WATERMARK FOR {0} AS {0} - INTERVAL '5' SECOND in CREATE TABLE, and hand it on \
                     unchanged; or use a column AS PROCTIME()",
                    column.name
                );
                return Err(self.scope.invalid(&spots, cause, way_out));
            }
        };
        let spec = spec(marked.tvf).map_err(|error| self.scope.place(error, &spots))?;
        Ok(PendingWindow { tvf: marked.tvf, spec, time, column: column.clone() })
    }

    /// Attaches the window to each row.
    pub(super) fn attach_window(&mut self, input: Stream, window: PendingWindow) -> Result<Stream> {
        let mut made: Vec<Column> =
            input.columns.iter().filter(|column| matches!(column.value, Value::Expr(_))).cloned().collect();
        let time = frame_time(&window, &mut made);
        let columns = input.columns.clone();
        let stream = self.flush(Stream { columns: made, pending: None, ..input })?;
        let first = stream.columns.len();
        let mut output = stream.columns.clone();
        for (index, (_, part, name)) in MARKERS.into_iter().enumerate() {
            output.push(window_column(first + index, name, part, &window));
        }
        let schema = Stream::of_node(0, stream.changelog, output.clone(), stream.lineage.clone()).schema();
        let factory = WindowAssignFactory::new(WindowAssignSpec {
            window: window.spec,
            time,
            zone: self.zone(&window.attached()),
            output: Arc::clone(&schema),
        });
        let factory =
            factory.map_err(|error| self.scope.place(error, &[Spot::Function(function_name(window.tvf.kind))]))?;
        let kind = format!("attach {}", window.kind());
        let step = Step {
            kind: &kind,
            keys: &[],
            lineage: Some(&stream.lineage),
            name: format!("WindowAssign({})", shown(window.tvf)),
            details: vec![("time".to_owned(), window.column.name.clone())],
            output: schema,
            changelog: stream.changelog,
            state: Vec::new(),
            parallelism: None,
        };
        let lineage = stream.lineage.step(&kind, &[]);
        let head = self.graph.operator(step, self.target, Arc::new(factory), (stream.head, Partitioning::Forward));
        let mut real = output[..first].iter();
        let columns = columns
            .into_iter()
            .map(|column| match (&column.value, column.role) {
                (Value::Expr(_), _) => Column { name: column.name.clone(), ..real.next().unwrap_or(&column).clone() },
                (Value::Pending, Role::Window(part)) => {
                    Column { name: column.name, ..output[first + part as usize].clone() }
                }
                (Value::Pending, _) => column,
            })
            .collect();
        Ok(Stream { head, columns, lineage, attached: Some(window.attached()), ..stream })
    }

    /// GROUP BY both borders of a window and further keys.
    pub(super) fn window_aggregate(
        &mut self,
        input: Stream,
        grouping: Grouping,
        results: &[FieldRef],
    ) -> Result<Stream> {
        let Grouping { groups, mut made, keys, aggregates } = grouping;
        let (time, attached, spec, kind) = self.frame(&input, &groups, &mut made)?;
        let lineages: Vec<String> = made[..keys].iter().map(|key| key.lineage.clone()).collect();
        let mut output: Vec<Column> = (0..keys).map(|index| key_column(index, &made[index])).collect();
        let input = self.flush(Stream { columns: made, pending: None, ..input })?;
        let input_schema = Arc::clone(&self.graph.graph.nodes[input.head].output);
        let fields = result_fields(&aggregates, &input_schema, results)
            .map_err(|error| self.scope.place(error, &aggregate_spots(&aggregates)))?;
        output.extend(result_columns(keys, &fields, &aggregates));
        let first = output.len();
        for (index, (_, part, name)) in MARKERS.into_iter().enumerate() {
            output.push(attached_column(first + index, name, part, attached));
        }
        let lineage = input.lineage.step(&kind, &lineages);
        let (changelog, lateness) = match (attached.time, self.settings.allowed_lateness) {
            (TimeKind::Processing, _) | (_, Duration::ZERO) => (Changelog::InsertOnly, Duration::ZERO),
            (TimeKind::Rowtime, lateness) => (Changelog::Updating, lateness),
        };
        if changelog == Changelog::Updating {
            // Rows that are taken back have no place in further windows: what is behind sees plain timestamps.
            output[first..].iter_mut().for_each(|column| column.role = Role::Plain);
        }
        let schema = Stream::of_node(0, changelog, output.clone(), lineage.clone()).schema();
        let alias = self.next_alias();
        let keys: Vec<usize> = (0..keys).collect();
        let factory = WindowAggregateFactory::new(WindowAggregateSpec {
            input: input_schema,
            window: spec,
            time,
            zone: self.zone(&attached),
            keys: keys.clone(),
            aggregates: aggregates.clone(),
            lateness,
            output: Arc::clone(&schema),
            alias: alias.clone(),
        });
        let factory = factory.map_err(|error| self.scope.place(error, &aggregate_spots(&aggregates)))?;
        let factory = NamedState::new(factory, alias);
        let mut details = grouping_details(&output[..keys.len()], &aggregates);
        details.push(("window".to_owned(), shown(attached.tvf)));
        if changelog == Changelog::Updating {
            details.push(("allowed lateness".to_owned(), duration::format(lateness)));
        }
        let step = Step {
            kind: &kind,
            keys: &lineages,
            lineage: Some(&input.lineage),
            name: format!("WindowAggregate({})", shown(attached.tvf)),
            details,
            output: schema,
            changelog,
            state: factory.describe(),
            parallelism: keys.is_empty().then_some(1),
        };
        let head = self.graph.operator(step, self.target, Arc::new(factory), (input.head, exchange(&keys)));
        let of_group = |(group, key): (Column, Option<usize>)| {
            let index = match (key, group.role) {
                (Some(key), _) => key,
                (None, Role::Window(part)) => first + part as usize,
                (None, _) => return Err(Error::internal(format!("group column `{}` has no key", group.name))),
            };
            Ok(Column { name: group.name, ..output[index].clone() })
        };
        let mut columns = groups.into_iter().map(of_group).collect::<Result<Vec<_>>>()?;
        for (column, wanted) in output[keys.len()..first].iter().zip(results) {
            columns.push(super::aggregate::as_planned(column, wanted)?);
        }
        let attached = (changelog == Changelog::InsertOnly).then_some(attached);
        Ok(Stream { attached, ..Stream::of_node(head, changelog, columns, lineage) })
    }

    /// How the aggregate finds a row's window.
    fn frame(
        &self,
        input: &Stream,
        groups: &[(Column, Option<usize>)],
        made: &mut Vec<Column>,
    ) -> Result<(WindowTime, Attached, WindowSpec, String)> {
        if let Some(Pending::Window(window)) = &input.pending {
            let time = frame_time(window, made);
            return Ok((time, window.attached(), window.spec, format!("window {}", window.kind())));
        }
        let end = groups.iter().map(|(group, _)| group).find(|group| group.role == Role::Window(WindowPart::End));
        let (Some(attached), Some(end)) = (input.attached, end) else {
            return Err(Error::internal("a window aggregate without a window"));
        };
        let spots = [Spot::Clause(&["GROUP", "BY"])];
        if attached.time == TimeKind::Processing {
            let cause = "a second aggregate over windows of processing time is not supported";
            return Err(self.scope.unsupported(&spots, cause, "use a rowtime for the windows"));
        }
        let spec = spec(attached.tvf).map_err(|error| self.scope.place(error, &spots))?;
        let end = place(made, end);
        Ok((WindowTime::Attached(end), attached, spec, format!("window again {}", attached.tvf)))
    }

    /// The zone by which windows are cut.
    fn zone(&self, attached: &Attached) -> Option<chrono_tz::Tz> {
        attached.wall_clock_differs().then_some(self.settings.zone)
    }
}

/// `stream` with the three columns of the window behind its own, still to be made. Its rowtime becomes a plain column.
fn with_window_columns(stream: Stream, window: PendingWindow) -> Stream {
    let mut columns = stream.columns.clone();
    for column in &mut columns {
        let is_time = match window.time {
            TimeKind::Rowtime => column.role.is_rowtime(),
            TimeKind::Processing => false,
        };
        if is_time || matches!(column.role, Role::Window(_)) {
            column.role = Role::Plain;
        }
    }
    for (_, part, name) in MARKERS {
        let column = window_column(0, name, part, &window);
        columns.push(Column { value: Value::Pending, role: Role::Window(part), ..column });
    }
    Stream { columns, pending: Some(Pending::Window(window)), attached: None, ..stream }
}

fn window_column(index: usize, name: &str, part: WindowPart, window: &PendingWindow) -> Column {
    attached_column(index, name, part, window.attached())
}

fn attached_column(index: usize, name: &str, part: WindowPart, attached: Attached) -> Column {
    let zone = match part {
        WindowPart::Time if attached.wall_clock_differs() => Some("UTC".into()),
        _ => None,
    };
    let field = Field::new(name, DataType::Timestamp(TimeUnit::Millisecond, zone), false);
    let role = match (part, attached.time) {
        (WindowPart::Time, TimeKind::Processing) => Role::Plain,
        _ => Role::Window(part),
    };
    Column::of_node(index, &field, role, format!("{name}({})", attached.tvf))
}

/// The time by which rows are assigned; a rowtime becomes one of the columns that are `made`.
fn frame_time(window: &PendingWindow, made: &mut Vec<Column>) -> WindowTime {
    match window.time {
        TimeKind::Rowtime => WindowTime::Rowtime(place(made, &window.column)),
        TimeKind::Processing => WindowTime::ProcessingTime,
    }
}

/// The expression with columns in place of markers.
fn unmarked(expr: Expr) -> Result<Expr> {
    let unmarked = expr.transform_down(|inner| match window_mark(&inner).map(|mark| mark.column) {
        Some(part) => {
            let name = MARKERS[part as usize].0;
            Ok(Transformed::yes(Expr::Column(datafusion::common::Column::new_unqualified(name))))
        }
        None => Ok(Transformed::no(inner)),
    });
    unmarked.data().map_err(|error| Error::internal(error.strip_backtrace()))
}

fn spec(tvf: WindowTvf) -> Result<WindowSpec> {
    match tvf.kind {
        WindowKind::Tumble { size } => WindowSpec::tumble(size, tvf.offset),
        WindowKind::Hop { slide, size } => WindowSpec::hop(size, slide, tvf.offset),
        kind => Err(Error::internal(format!("{kind:?} has no slices"))),
    }
}

fn function_name(kind: WindowKind) -> &'static str {
    match kind {
        WindowKind::Tumble { .. } => "TUMBLE",
        WindowKind::Hop { .. } => "HOP",
        WindowKind::Cumulate { .. } => "CUMULATE",
        WindowKind::Session { .. } => "SESSION",
    }
}

/// As in `TUMBLE 1m` or `HOP 10s every 2s`.
fn shown(tvf: WindowTvf) -> String {
    let window = match tvf.kind {
        WindowKind::Tumble { size } => format!("TUMBLE {}", Length(size)),
        WindowKind::Hop { slide, size } => format!("HOP {} every {}", Length(size), Length(slide)),
        WindowKind::Cumulate { step, size } => format!("CUMULATE {} by {}", Length(size), Length(step)),
        WindowKind::Session { gap } => format!("SESSION {}", Length(gap)),
    };
    match tvf.offset {
        0 => window,
        offset => format!("{window} offset {}", Length(offset)),
    }
}
