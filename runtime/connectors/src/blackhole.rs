//! `blackhole`: takes every row and forgets it.

use std::sync::{Arc, LazyLock};

use arrow::array::RecordBatch;
use streamkeeper_engine::{Operator, OperatorContext, OperatorFactory, Output, SourceFactory, SubtaskInfo};
use streamkeeper_types::{Result, options::OptionSpec};

use crate::{
    registry::{Connector, SinkInput, TableDefinition},
    settings::{CONNECTOR, Settings, wrong_direction},
};

static OPTIONS: LazyLock<Vec<OptionSpec>> = LazyLock::new(|| vec![CONNECTOR]);

pub(crate) struct Blackhole;

impl Connector for Blackhole {
    fn name(&self) -> &'static str {
        "blackhole"
    }

    fn doc(&self) -> &'static str {
        "Sink that takes every row, updates too, and forgets it: for measurements."
    }

    fn options(&self) -> &'static [OptionSpec] {
        &OPTIONS
    }

    fn source(&self, table: &TableDefinition) -> Result<Arc<dyn SourceFactory>> {
        Err(wrong_direction(table, self.name(), "cannot be read", "read from a 'datagen' or 'filesystem' table"))
    }

    fn sink(&self, table: &TableDefinition, _input: &SinkInput) -> Result<Arc<dyn OperatorFactory>> {
        Settings::new(table, self)?;
        Ok(Arc::new(Factory))
    }
}

struct Factory;

impl OperatorFactory for Factory {
    fn create(&self, _subtask: &SubtaskInfo) -> Result<Box<dyn Operator>> {
        Ok(Box::new(Forget))
    }
}

struct Forget;

impl Operator for Forget {
    fn process(
        &mut self,
        _input: usize,
        _batch: RecordBatch,
        _context: &mut OperatorContext,
        _output: &mut dyn Output,
    ) -> Result<()> {
        Ok(())
    }
}
