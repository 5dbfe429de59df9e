//! Key columns of keyed operators.

use std::sync::Arc;

use arrow::{
    array::{ArrayRef, RecordBatch},
    datatypes::{FieldRef, Schema},
};
use streamkeeper_types::{Error, Result};

/// Input columns by which rows are grouped or partitioned; without any, all rows have one key.
#[derive(Debug, Clone)]
pub(crate) struct KeyColumns {
    columns: Vec<usize>,
    fields: Vec<FieldRef>,
}

impl KeyColumns {
    /// # Errors
    /// [`streamkeeper_types::Code::Internal`] for a column that the input does not have.
    pub(crate) fn new(columns: Vec<usize>, input: &Schema) -> Result<Self> {
        let field = |index: &usize| {
            input
                .fields()
                .get(*index)
                .cloned()
                .ok_or_else(|| Error::internal(format!("no input column {index} for a key")))
        };
        let fields = columns.iter().map(field).collect::<Result<Vec<_>>>()?;
        Ok(Self { columns, fields })
    }

    /// Their fields.
    pub(crate) fn fields(&self) -> &[FieldRef] {
        &self.fields
    }

    /// The key columns of a batch.
    pub(crate) fn of(&self, batch: &RecordBatch) -> Vec<ArrayRef> {
        self.columns.iter().map(|index| Arc::clone(batch.column(*index))).collect()
    }
}
