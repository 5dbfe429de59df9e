//! Filter and projection in one pass.
//!
//! Must not know: SQL text beyond what it shows in errors, state, time.

use std::{collections::HashSet, sync::Arc};

use arrow::{
    array::{Array, ArrayRef, AsArray, BooleanArray, Int8Array, RecordBatch, RecordBatchOptions},
    compute::{FilterBuilder, prep_null_mask_filter},
    datatypes::SchemaRef,
};
use datafusion::physical_expr::{PhysicalExpr, utils::collect_columns};
use streamkeeper_engine::{Operator, OperatorContext, OperatorFactory, Output, SubtaskInfo};
use streamkeeper_types::{Code, Error, Millis, Result, ResultExt, RowKind};

use crate::changelog;

/// Told the processing time before each batch is evaluated, on the thread that evaluates it; what `PROCTIME` and the
/// like read.
pub type ClockHook = Arc<dyn Fn(Millis) + Send + Sync>;

/// An expression over the input's columns, with the text that errors show.
#[derive(Debug, Clone)]
pub struct Expression {
    pub expr: Arc<dyn PhysicalExpr>,
    /// As the user wrote it, or as near as planning can say.
    pub text: String,
}

impl Expression {
    /// An expression that errors show as the planner prints it.
    #[must_use]
    pub fn new(expr: Arc<dyn PhysicalExpr>) -> Self {
        let text = expr.to_string();
        Self { expr, text }
    }

    fn evaluate(&self, batch: &RecordBatch) -> Result<ArrayRef> {
        self.expr.evaluate(batch).and_then(|value| value.into_array(batch.num_rows())).map_err(|error| {
            Error::new(Code::Evaluation, format!("`{}`: {}", self.text, error.strip_backtrace()))
                .way_out("guard the expression, for example by TRY_CAST, NULLIF or CASE")
        })
    }
}

/// Filters, then projects.
///
/// Row kinds of an updating input stay as they are without a filter. With one, a row that leaves the filtered table by
/// an update leaves as `-D`, and one that enters it comes as `+I`.
#[derive(Clone)]
pub struct ProjectFactory {
    output: SchemaRef,
    projection: Arc<[Expression]>,
    filter: Option<Expression>,
    clock: Option<ClockHook>,
}

impl ProjectFactory {
    /// A projection without filter. `output` has a field for each expression, and the row kind if the input has it.
    #[must_use]
    pub fn new(output: SchemaRef, projection: Vec<Expression>) -> Self {
        Self { output, projection: projection.into(), filter: None, clock: None }
    }

    /// Keeps only rows for which `filter` (BOOLEAN over the input's columns) is true.
    #[must_use]
    pub fn filter(mut self, filter: Expression) -> Self {
        self.filter = Some(filter);
        self
    }

    /// Calls `hook` before each batch; for expressions that read processing time.
    #[must_use]
    pub fn clock(mut self, hook: ClockHook) -> Self {
        self.clock = Some(hook);
        self
    }
}

impl OperatorFactory for ProjectFactory {
    fn create(&self, _subtask: &SubtaskInfo) -> Result<Box<dyn Operator>> {
        let columns = self.projection.iter().flat_map(|expression| collect_columns(&expression.expr));
        Ok(Box::new(Project { plan: self.clone(), needed: columns.map(|column| column.index()).collect() }))
    }
}

struct Project {
    plan: ProjectFactory,
    /// Input columns that the projection reads.
    needed: HashSet<usize>,
}

impl Operator for Project {
    fn process(
        &mut self,
        _input: usize,
        batch: RecordBatch,
        context: &mut OperatorContext,
        output: &mut dyn Output,
    ) -> Result<()> {
        if let Some(hook) = &self.plan.clock {
            hook(context.clock.now());
        }
        let Some(batch) = self.filtered(batch)? else { return Ok(()) };
        let mut columns = Vec::with_capacity(self.plan.output.fields().len());
        for expression in self.plan.projection.iter() {
            columns.push(expression.evaluate(&batch)?);
        }
        if changelog::row_kinds(&batch)?.is_some() {
            columns.push(Arc::clone(batch.column(batch.num_columns() - 1)));
        }
        let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
        let projected = RecordBatch::try_new_with_options(Arc::clone(&self.plan.output), columns, &options)
            .or_code(Code::Internal, || "a projection against its plan".to_owned())?;
        output.emit(projected)
    }
}

impl Project {
    /// Rows that pass; `None` if no row does.
    fn filtered(&self, batch: RecordBatch) -> Result<Option<RecordBatch>> {
        let Some(filter) = &self.plan.filter else { return Ok(Some(batch)) };
        let value = filter.evaluate(&batch)?;
        let passes =
            value.as_boolean_opt().ok_or_else(|| Error::internal(format!("`{}` is not BOOLEAN", filter.text)))?;
        let passes = if passes.null_count() > 0 { &prep_null_mask_filter(passes) } else { passes };
        let count = passes.true_count();
        if count == 0 {
            return Ok(None);
        }
        if count == batch.num_rows() {
            return Ok(Some(batch));
        }
        let predicate = FilterBuilder::new(passes).optimize().build();
        let filtered = |column: &ArrayRef| {
            predicate.filter(column).or_code(Code::Internal, || format!("filter `{}`", filter.text))
        };
        let mut columns = Vec::with_capacity(batch.num_columns());
        for (index, column) in batch.columns().iter().enumerate() {
            // Nobody looks at the others: any values of the right number do.
            columns.push(if self.needed.contains(&index) { filtered(column)? } else { column.slice(0, count) });
        }
        if let Some(kinds) = changelog::row_kinds(&batch)? {
            let kinds: ArrayRef = Arc::new(Int8Array::from(filtered_kinds(kinds, passes)));
            columns.pop();
            columns.push(filtered(&kinds)?);
        }
        let options = RecordBatchOptions::new().with_row_count(Some(count));
        let filtered = RecordBatch::try_new_with_options(batch.schema(), columns, &options);
        filtered.map(Some).or_code(Code::Internal, || format!("filter `{}`", filter.text))
    }
}

/// Row kinds with halves of updates turned into `+I` and `-D` where the other half does not pass.
fn filtered_kinds(kinds: &[i8], passes: &BooleanArray) -> Vec<i8> {
    let (before, after) = (RowKind::UpdateBefore.code(), RowKind::UpdateAfter.code());
    let mut filtered = kinds.to_vec();
    for index in 0..kinds.len() {
        // An update's halves follow each other in one batch; a half without its other half stays what it is.
        if kinds[index] != before || kinds.get(index + 1) != Some(&after) {
            continue;
        }
        if !passes.value(index + 1) {
            filtered[index] = RowKind::Delete.code();
        }
        if !passes.value(index) {
            filtered[index + 1] = RowKind::Insert.code();
        }
    }
    filtered
}
