//! UNION ALL: rows of all inputs as they come.
//!
//! The input gate merges the inputs; this operator only gives their rows one schema.

use std::sync::Arc;

use arrow::{array::RecordBatch, datatypes::SchemaRef};
use streamkeeper_engine::{Changelog, Operator, OperatorContext, OperatorFactory, Output, SubtaskInfo};
use streamkeeper_types::{Result, RowKind};

use crate::changelog;

/// Passes rows on under `output`'s column names; where `output` is updating, rows of insert-only inputs become `+I`.
#[derive(Debug, Clone)]
pub struct UnionAllFactory {
    output: SchemaRef,
}

impl UnionAllFactory {
    /// `output` has the inputs' column types in order, and the row kind if any input has it.
    #[must_use]
    pub fn new(output: SchemaRef) -> Self {
        Self { output }
    }
}

impl OperatorFactory for UnionAllFactory {
    fn create(&self, _subtask: &SubtaskInfo) -> Result<Box<dyn Operator>> {
        Ok(Box::new(UnionAll { output: Arc::clone(&self.output) }))
    }
}

struct UnionAll {
    output: SchemaRef,
}

impl Operator for UnionAll {
    fn process(
        &mut self,
        _input: usize,
        batch: RecordBatch,
        _context: &mut OperatorContext,
        output: &mut dyn Output,
    ) -> Result<()> {
        let rows = batch.num_rows();
        let adds_kind = changelog::of_schema(&self.output) == Changelog::Updating
            && changelog::of_schema(batch.schema_ref()) == Changelog::InsertOnly;
        let (_, columns, _) = batch.into_parts();
        let batch = if adds_kind {
            changelog::updating_batch(&self.output, columns, vec![RowKind::Insert.code(); rows])?
        } else {
            changelog::batch(&self.output, columns)?
        };
        output.emit(batch)
    }
}
