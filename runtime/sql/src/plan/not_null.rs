//! Guards the NOT NULL columns of a sink: `table.exec.sink.not-null-enforcer`.

use arrow::array::{Array, RecordBatch};
use streamkeeper_engine::{Operator, OperatorContext, OperatorFactory, Output, SubtaskInfo};
use streamkeeper_types::{Code, Error, Result};

/// Fails the job at the first NULL in one of the columns.
#[derive(Debug, Clone)]
pub(super) struct NotNullFactory {
    pub(super) table: String,
    /// Positions and names.
    pub(super) columns: Vec<(usize, String)>,
}

impl OperatorFactory for NotNullFactory {
    fn create(&self, _subtask: &SubtaskInfo) -> Result<Box<dyn Operator>> {
        Ok(Box::new(NotNull(self.clone())))
    }
}

struct NotNull(NotNullFactory);

impl Operator for NotNull {
    fn process(
        &mut self,
        _input: usize,
        batch: RecordBatch,
        _context: &mut OperatorContext,
        output: &mut dyn Output,
    ) -> Result<()> {
        let null = self.0.columns.iter().find(|(index, _)| batch.column(*index).null_count() > 0);
        let Some((_, name)) = null else { return output.emit(batch) };
        let table = &self.0.table;
        Err(Error::new(Code::RecordInvalid, format!("NULL for column `{name}` of table `{table}`, which is NOT NULL"))
            .way_out("filter NULL out, replace it by COALESCE, or SET 'table.exec.sink.not-null-enforcer' = 'drop'"))
    }
}
