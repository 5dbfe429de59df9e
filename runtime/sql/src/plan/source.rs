//! A table as queries read it: physical and computed columns, watermark, and its node in the graph.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use arrow::{
    array::{Array, AsArray, Int64Array, RecordBatch, RecordBatchOptions},
    compute::cast,
    datatypes::{DataType, Field, Schema, SchemaRef, TimeUnit, TimestampMillisecondType},
};
use datafusion::{
    common::DFSchema,
    logical_expr::{Expr, TableSource},
    physical_expr::PhysicalExpr,
};
use streamkeeper_connectors::{TableDefinition, connector, unknown_connector};
use streamkeeper_engine::{Changelog, NodeFactory, UnreadSplits, WatermarkStrategy};
use streamkeeper_types::{Code, Error, Result, ResultExt, duration};

use super::{
    PlanOptions,
    fault::{Scope, Spot},
    fingerprint::{Lineage, table_column},
    graph::{GraphBuilder, Step},
    logical::Analyst,
    settings::Settings,
    stream::{Column, Role, Value, is_time_type},
};
use crate::{
    catalog::{ColumnKind, Table},
    functions::fault::to_error,
    types::{SqlType, with_precision, without_precision},
};

/// How long a source sleeps while no row comes.
const IDLE_WAIT: Duration = Duration::from_millis(10);

/// A table with its expressions resolved.
#[derive(Debug)]
pub(crate) struct SourceTable {
    pub(crate) table: Arc<Table>,
    /// All columns, in the order of the text.
    pub(crate) schema: SchemaRef,
    physical: DFSchema,
    /// One for each column, over the physical ones.
    expressions: Vec<Expr>,
    rowtime: Option<usize>,
    /// Over all columns.
    watermark: Option<Expr>,
    proctime: BTreeSet<usize>,
}

impl TableSource for SourceTable {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }
}

/// A table's node.
pub(crate) struct SourceNode {
    pub(crate) node: usize,
    /// The columns that the node yields, by position in the table.
    pub(crate) columns: BTreeMap<usize, Column>,
    pub(crate) lineage: Lineage,
}

impl SourceTable {
    /// Resolves computed columns and the watermark.
    pub(crate) fn new(table: Arc<Table>, analyst: &Analyst, scope: &Scope) -> Result<Self> {
        let physical = qualified(&table.name, &table.physical_schema())?;
        let mut expressions = Vec::with_capacity(table.columns.len());
        let mut fields = Vec::with_capacity(table.columns.len());
        let mut proctime = BTreeSet::new();
        for (index, column) in table.columns.iter().enumerate() {
            let spots = [Spot::At(column.position)];
            match &column.kind {
                ColumnKind::Physical { data_type, nullable } => {
                    expressions
                        .push(Expr::Column(datafusion::common::Column::new(Some(table.name.as_str()), &column.name)));
                    let field = Field::new(&column.name, data_type.arrow(), *nullable);
                    fields.push(with_precision(field, data_type));
                }
                ColumnKind::Computed(expression) => {
                    let spots = [Spot::At(expression.position)];
                    let expr = analyst.expression(&expression.ast, &physical, scope, &spots)?;
                    let (data_type, nullable) = typed(&expr, &physical, scope, &spots)?;
                    if analyst.is_proctime(&expr) {
                        proctime.insert(index);
                    }
                    expressions.push(expr);
                    fields.push(Field::new(&column.name, data_type, nullable));
                }
            }
            if SqlType::from_arrow(fields[index].data_type()).is_none() {
                let cause = format!("column `{}` has no type of SQL", column.name);
                return Err(scope.invalid(&spots, cause, "cast it: CAST(… AS STRING)"));
            }
        }
        let schema = Arc::new(Schema::new(fields));
        let mut source = Self { table, schema, physical, expressions, rowtime: None, watermark: None, proctime };
        source.resolve_watermark(analyst, scope)?;
        Ok(source)
    }

    fn resolve_watermark(&mut self, analyst: &Analyst, scope: &Scope) -> Result<()> {
        let table = Arc::clone(&self.table);
        let Some(watermark) = &table.watermark else { return Ok(()) };
        let spots = [Spot::At(watermark.position)];
        let name = &watermark.column;
        let Ok(rowtime) = self.schema.index_of(name) else {
            let known = self.schema.fields().iter().map(|field| field.name().as_str()).collect::<Vec<_>>().join(", ");
            let cause = format!("WATERMARK FOR names `{name}`, which is no column");
            return Err(scope.invalid(&spots, cause, format!("columns are {known}")));
        };
        let data_type = self.schema.field(rowtime).data_type();
        if !is_time_type(data_type) {
            let cause = format!("WATERMARK FOR `{name}` of type {}", SqlType::name_of(data_type));
            let way_out = "a rowtime column is TIMESTAMP(3) or TIMESTAMP_LTZ(3): cast it, or read it by TO_TIMESTAMP";
            return Err(scope.invalid(&spots, cause, way_out));
        }
        let all = qualified(&table.name, &self.schema)?;
        let spots = [Spot::At(watermark.expr.position)];
        let expr = analyst.expression(&watermark.expr.ast, &all, scope, &spots)?;
        let (data_type, _) = typed(&expr, &all, scope, &spots)?;
        if !matches!(data_type, DataType::Timestamp(..)) {
            let cause = format!("the watermark is of type {}", SqlType::name_of(&data_type));
            let way_out = format!("write WATERMARK FOR {name} AS {name} - INTERVAL '5' SECOND");
            return Err(scope.invalid(&spots, cause, way_out));
        }
        self.rowtime = Some(rowtime);
        self.watermark = Some(expr);
        Ok(())
    }

    /// Adds the table's node, which yields the columns `used` and what the watermark needs. Columns with processing time
    /// are computed by the steps that follow, which know the task's clock.
    pub(crate) fn add(
        &self,
        wanted: &BTreeSet<usize>,
        graph: &mut GraphBuilder,
        analyst: &Analyst,
        scope: &Scope,
        settings: &Settings,
        options: &PlanOptions,
    ) -> Result<SourceNode> {
        let mut used: BTreeSet<usize> = wanted.difference(&self.proctime).copied().collect();
        used.extend(self.rowtime);
        used.extend(self.watermark_columns());
        if used.is_empty() {
            // A batch without columns would lose its rows: COUNT(*) alone needs any column.
            used.extend((0..self.expressions.len()).find(|index| !self.proctime.contains(index)));
        }
        let used: Vec<usize> = used.into_iter().collect();
        let fields: Vec<Field> = used.iter().map(|&index| without_precision(self.schema.field(index))).collect();
        let output = Arc::new(Schema::new(fields));
        let connector = connector_of(&self.table)?;
        let definition = definition(&self.table, options);
        let place = [Spot::At(self.table.position)];
        let source = connector.source(&definition).map_err(|error| scope.place(error, &place))?;
        let prelude = self.prelude(&used, &source.schema(), &output, analyst, scope)?;
        let watermark = self.watermark_strategy(&used, &output, analyst, scope, settings)?;
        let lineage = Lineage::table(&self.table.name, connector.name());
        let step = Step {
            kind: "source",
            keys: &[],
            lineage: Some(&lineage),
            name: format!("Source({})", self.table.name),
            details: self.details(&output),
            output: Arc::clone(&output),
            changelog: Changelog::InsertOnly,
            state: Vec::new(),
            parallelism: None,
        };
        let id = graph.id(&step, None);
        let rate_limit = self.table.option("scan.rate-limit").and_then(|rate| rate.trim().parse().ok());
        let factory = NodeFactory::Source { source, prelude, watermark, rate_limit, idle_wait: IDLE_WAIT };
        let node = graph.add(step, id, factory, &[]);
        let mut columns: BTreeMap<usize, Column> = used
            .iter()
            .enumerate()
            .map(|(place, &index)| {
                let lineage = table_column(&self.table.name, output.field(place).name());
                let role = if self.rowtime == Some(index) { Role::Rowtime } else { Role::Plain };
                (index, Column::of_node(place, output.field(place), role, lineage))
            })
            .collect();
        for &index in wanted.intersection(&self.proctime) {
            let value = analyst.physical(&self.expressions[index], &self.physical);
            let value = value.map_err(|error| scope.datafusion(error, &place))?;
            let field = self.schema.field(index);
            let lineage = table_column(&self.table.name, field.name());
            let column = Column::of_node(index, field, Role::Proctime, lineage);
            columns.insert(index, Column { value: Value::Expr(value), ..column });
        }
        Ok(SourceNode { node, columns, lineage })
    }

    fn details(&self, output: &Schema) -> Vec<(String, String)> {
        let columns = output.fields().iter().map(|field| field.name().as_str()).collect::<Vec<_>>().join(", ");
        let mut details: Vec<(String, String)> = ["connector", "path", "format"]
            .into_iter()
            .filter_map(|key| Some((key.to_owned(), self.table.option(key)?.to_owned())))
            .collect();
        details.push(("columns".to_owned(), columns));
        if let Some(watermark) = &self.table.watermark {
            details.push(("watermark".to_owned(), format!("{} AS {}", watermark.column, watermark.expr.text)));
        }
        details
    }

    /// Computes the columns `used` from what the reader yields; `None` if that is what they are.
    #[expect(clippy::type_complexity, reason = "the engine's type for one closure")]
    fn prelude(
        &self,
        used: &[usize],
        read: &SchemaRef,
        output: &SchemaRef,
        analyst: &Analyst,
        scope: &Scope,
    ) -> Result<Option<Arc<dyn Fn(RecordBatch) -> Result<RecordBatch> + Send + Sync>>> {
        if read.fields() == output.fields() {
            return Ok(None);
        }
        let spots = [Spot::At(self.table.position)];
        let mut columns: Vec<(Arc<dyn PhysicalExpr>, String)> = Vec::with_capacity(used.len());
        for &index in used {
            let physical = analyst.physical(&self.expressions[index], &self.physical);
            let physical = physical.map_err(|error| scope.datafusion(error, &spots))?;
            columns.push((physical, format!("{}.{}", self.table.name, self.schema.field(index).name())));
        }
        let output = Arc::clone(output);
        Ok(Some(Arc::new(move |batch: RecordBatch| {
            let mut arrays = Vec::with_capacity(columns.len());
            for (expr, name) in &columns {
                let value = expr.evaluate(&batch).and_then(|value| value.into_array(batch.num_rows()));
                arrays.push(value.map_err(|error| to_error(&error, Code::Evaluation).at(format!("column {name}")))?);
            }
            let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
            RecordBatch::try_new_with_options(Arc::clone(&output), arrays, &options)
                .or_code(Code::Internal, || "computed columns against their plan".to_owned())
        })))
    }

    fn watermark_strategy(
        &self,
        used: &[usize],
        output: &Schema,
        analyst: &Analyst,
        scope: &Scope,
        settings: &Settings,
    ) -> Result<Option<WatermarkStrategy>> {
        let (Some(rowtime), Some(watermark)) = (self.rowtime, &self.watermark) else { return Ok(None) };
        let spots = [Spot::At(self.table.position)];
        let yielded = qualified(&self.table.name, output)?;
        let expr = analyst.physical(watermark, &yielded).map_err(|error| scope.datafusion(error, &spots))?;
        let name = self.table.name.clone();
        let place = used.iter().position(|&index| index == rowtime);
        Ok(Some(WatermarkStrategy {
            rowtime_column: place.ok_or_else(|| Error::internal("the rowtime is not yielded"))?,
            expression: Arc::new(move |batch| watermark_values(&expr, batch, &name)),
            idle_timeout: self.duration("scan.watermark.idle-timeout")?.or(settings.idle_timeout),
            min_gap: self.duration("scan.watermark.min-gap")?.unwrap_or(Duration::from_millis(10)),
            unread_splits: match self.table.option("scan.watermark.unread-splits") {
                Some("ignore") => UnreadSplits::Ignore,
                _ => UnreadSplits::Hold,
            },
        }))
    }

    /// Columns that the watermark is computed from.
    fn watermark_columns(&self) -> Vec<usize> {
        let Some(watermark) = &self.watermark else { return Vec::new() };
        watermark.column_refs().iter().filter_map(|column| self.schema.index_of(&column.name).ok()).collect()
    }

    fn duration(&self, key: &str) -> Result<Option<Duration>> {
        let Some(option) = self.table.options.get(key) else { return Ok(None) };
        duration::parse(&option.value)
            .map(Some)
            .map_err(|why| option.value_position.error(Code::OptionInvalid, format!("option '{key}': {why}")))
    }
}

/// Values of the WATERMARK expression in milliseconds.
fn watermark_values(expr: &Arc<dyn PhysicalExpr>, batch: &RecordBatch, table: &str) -> Result<Int64Array> {
    let value = expr.evaluate(batch).and_then(|value| value.into_array(batch.num_rows()));
    let value = value.map_err(|error| to_error(&error, Code::Evaluation).at(format!("watermark of table {table}")))?;
    let millis = cast(&value, &DataType::Timestamp(TimeUnit::Millisecond, None))
        .or_code(Code::Internal, || format!("watermark of table {table}"))?;
    let millis = millis.as_primitive::<TimestampMillisecondType>();
    Ok(Int64Array::new(millis.values().clone(), millis.nulls().cloned()))
}

fn qualified(table: &str, schema: &Schema) -> Result<DFSchema> {
    DFSchema::try_from_qualified_schema(table, schema).or_code(Code::SqlInvalid, || format!("table {table}"))
}

fn typed(expr: &Expr, schema: &DFSchema, scope: &Scope, spots: &[Spot]) -> Result<(DataType, bool)> {
    use datafusion::logical_expr::ExprSchemable;
    let (_, field) = expr.to_field(schema).map_err(|error| scope.datafusion(error, spots))?;
    Ok((field.data_type().clone(), field.is_nullable()))
}

/// The connector that the WITH clause names.
pub(crate) fn connector_of(table: &Table) -> Result<&'static dyn streamkeeper_connectors::Connector> {
    let Some(option) = table.options.get("connector") else {
        return Err(table
            .position
            .error(Code::OptionInvalid, format!("table `{}` has no option 'connector'", table.name))
            .way_out("add WITH ('connector' = 'filesystem', …)"));
    };
    connector(&option.value).ok_or_else(|| unknown_connector(&option.value).at(option.value_position.to_string()))
}

/// What the connector is told.
pub(crate) fn definition(table: &Table, options: &PlanOptions) -> TableDefinition {
    TableDefinition {
        name: table.name.clone(),
        job: options.job.clone(),
        schema: table.physical_schema(),
        options: table.plain_options(),
        partitioned_by: table.partitioned_by.clone(),
        primary_key: table.primary_key.clone(),
        base_dir: options.base_dir.clone(),
        has_watermark: table.watermark.is_some(),
    }
}
