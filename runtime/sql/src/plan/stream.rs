//! A relation under translation: a node of the graph, and what is still to be done to its rows.
//!
//! Filters and projections are not nodes at once. They gather here as expressions over the head's batches, and become
//! one `project` node when something needs real columns.

use std::sync::Arc;

use arrow::datatypes::{DataType, Field, Schema, SchemaRef, TimeUnit};
use datafusion::physical_expr::{
    PhysicalExpr,
    expressions::{Column as ColumnExpr, Literal},
};
use streamkeeper_engine::Changelog;
use streamkeeper_operators::{Expression, WindowSpec, changelog::updating_schema};

use super::fingerprint::Lineage;
pub(crate) use crate::functions::WindowColumn as WindowPart;
use crate::parse::WindowTvf;

/// Rows of `head`, filtered and projected.
#[derive(Clone)]
pub(crate) struct Stream {
    /// Index of the node that yields the rows.
    pub(crate) head: usize,
    pub(crate) changelog: Changelog,
    /// Kept rows; over the head's columns.
    pub(crate) filter: Option<Expression>,
    /// The columns of the logical plan, in its order.
    pub(crate) columns: Vec<Column>,
    pub(crate) pending: Option<Pending>,
    /// Windows that the columns with [`Role::Window`] speak of.
    pub(crate) attached: Option<Attached>,
    pub(crate) lineage: Lineage,
}

/// One column of a [`Stream`].
#[derive(Clone)]
pub(crate) struct Column {
    pub(crate) name: String,
    pub(crate) data_type: DataType,
    pub(crate) nullable: bool,
    pub(crate) value: Value,
    pub(crate) role: Role,
    /// As plans and errors show it.
    pub(crate) text: String,
    /// What it is made of, in terms of tables and steps; for fingerprints.
    pub(crate) lineage: String,
}

/// Where a column's values come from.
#[derive(Clone)]
pub(crate) enum Value {
    /// Over the head's columns.
    Expr(Arc<dyn PhysicalExpr>),
    /// The pending step will make it; until then it cannot be computed with.
    Pending,
}

/// What a column means for time. Kept by plain projection and renaming, lost by any expression.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    Plain,
    /// The watermark speaks about it.
    Rowtime,
    /// PROCTIME().
    Proctime,
    /// A part of the window that the row is in.
    Window(WindowPart),
    /// ROW_NUMBER() of the pending ranking.
    RowNumber,
}

/// A step that the plan named, and that shows its kind only by what stands above it.
#[derive(Clone)]
pub(crate) enum Pending {
    /// A window table function: the frame of an aggregate, or attached to each row.
    Window(PendingWindow),
    /// ROW_NUMBER(): deduplication, if a filter keeps the first row only.
    RowNumber(RowNumber),
}

#[derive(Clone)]
pub(crate) struct PendingWindow {
    pub(crate) tvf: WindowTvf,
    pub(crate) spec: WindowSpec,
    pub(crate) time: TimeKind,
    /// The DESCRIPTOR column, over the head's columns.
    pub(crate) column: Column,
}

/// The windows that a stream's rows are in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Attached {
    pub(crate) tvf: WindowTvf,
    pub(crate) time: TimeKind,
    /// Whether the time column is an instant (TIMESTAMP_LTZ).
    pub(crate) instant: bool,
}

/// By what windows fire.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TimeKind {
    Rowtime,
    Processing,
}

impl Attached {
    /// Whether the windows' borders are wall-clock times of the session's zone.
    pub(crate) fn wall_clock_differs(self) -> bool {
        self.instant || self.time == TimeKind::Processing
    }
}

impl PendingWindow {
    pub(crate) fn attached(&self) -> Attached {
        let instant = matches!(self.column.data_type, DataType::Timestamp(_, Some(_)));
        Attached { tvf: self.tvf, time: self.time, instant }
    }

    /// As fingerprints have it.
    pub(crate) fn kind(&self) -> String {
        match self.time {
            TimeKind::Rowtime => format!("{} on {}", self.tvf, self.column.lineage),
            TimeKind::Processing => format!("{} on processing time", self.tvf),
        }
    }
}

#[derive(Clone)]
pub(crate) struct RowNumber {
    /// Positions in the stream's columns at the time of the window function, as expressions over the head.
    pub(crate) partition: Vec<Column>,
    pub(crate) order: Column,
    pub(crate) keep: Keep,
}

/// Which row of each key ROW_NUMBER() numbers 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Keep {
    First,
    Last,
}

impl Stream {
    /// All rows and columns of a node whose columns are `columns`, the row kind not counted.
    pub(crate) fn of_node(head: usize, changelog: Changelog, columns: Vec<Column>, lineage: Lineage) -> Self {
        Self { head, changelog, filter: None, columns, pending: None, attached: None, lineage }
    }

    /// Schema of the columns, with the row kind if the stream is updating.
    pub(crate) fn schema(&self) -> SchemaRef {
        let fields: Vec<Field> =
            self.columns.iter().map(|c| Field::new(&c.name, c.data_type.clone(), c.nullable)).collect();
        let schema = Schema::new(fields);
        match self.changelog {
            Changelog::InsertOnly => Arc::new(schema),
            Changelog::Updating => updating_schema(&schema),
        }
    }

    /// Texts of the columns, by position.
    pub(crate) fn texts(&self) -> Vec<&str> {
        self.columns.iter().map(|column| column.text.as_str()).collect()
    }

    /// Lineages of the columns, by position.
    pub(crate) fn lineages(&self) -> Vec<&str> {
        self.columns.iter().map(|column| column.lineage.as_str()).collect()
    }
}

impl Column {
    /// Column `index` of a node.
    pub(crate) fn of_node(index: usize, field: &Field, role: Role, lineage: String) -> Self {
        Self {
            name: field.name().clone(),
            data_type: field.data_type().clone(),
            nullable: field.is_nullable(),
            value: Value::Expr(Arc::new(ColumnExpr::new(field.name(), index))),
            role,
            text: field.name().clone(),
            lineage,
        }
    }

    /// Whether it is PROCTIME() still to be evaluated, over whatever node: the later, the truer.
    pub(crate) fn is_clock(&self) -> bool {
        matches!(&self.value, Value::Expr(expr) if self.role == Role::Proctime && !expr.is::<ColumnExpr>())
    }

    /// Whether reading it costs nothing, so that it may be read twice.
    pub(crate) fn is_trivial(&self) -> bool {
        match &self.value {
            Value::Expr(expr) => expr.is::<ColumnExpr>() || expr.is::<Literal>(),
            Value::Pending => true,
        }
    }
}

impl Role {
    /// Whether event-time steps may work by it.
    pub(crate) fn is_rowtime(self) -> bool {
        matches!(self, Self::Rowtime | Self::Window(WindowPart::Time))
    }
}

/// Whether a column of this type can be a time attribute: three fractional digits.
pub(crate) fn is_time_type(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Timestamp(TimeUnit::Millisecond, _))
}
