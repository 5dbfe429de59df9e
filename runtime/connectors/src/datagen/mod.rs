//! `datagen`: rows of random values and sequences, the same for the same seed.

mod field;

use std::sync::{Arc, LazyLock};

use arrow::{array::RecordBatch, datatypes::SchemaRef};
use streamkeeper_engine::{OperatorFactory, SourceFactory};
use streamkeeper_types::{
    Error, Millis, Result,
    options::{OptionKind, OptionSpec},
};

use crate::{
    generator::{Generator, GeneratorSource, RowRange},
    registry::{Connector, SinkInput, TableDefinition},
    settings::{self, CONNECTOR, Settings, wrong_direction},
};
use field::Field;

static OPTIONS: LazyLock<Vec<OptionSpec>> = LazyLock::new(|| {
    let own = [
        CONNECTOR,
        OptionSpec::new(
            "rows-per-second",
            OptionKind::Integer { min: 1, max: i64::MAX },
            "Rows per second of the whole table.",
        )
        .default("10000"),
        OptionSpec::new("number-of-rows", OptionKind::COUNT, "Rows in all; without it the table does not end."),
        OptionSpec::new("seed", OptionKind::COUNT, "Another seed gives other random values.").default("0"),
    ];
    [&own, field::OPTIONS.as_slice(), settings::SOURCE.as_slice()].concat()
});

pub(crate) struct Datagen;

impl Connector for Datagen {
    fn name(&self) -> &'static str {
        "datagen"
    }

    fn doc(&self) -> &'static str {
        "Source of random values and sequences. The same seed gives the same rows at any parallelism."
    }

    fn options(&self) -> &'static [OptionSpec] {
        &OPTIONS
    }

    fn source(&self, table: &TableDefinition) -> Result<Arc<dyn SourceFactory>> {
        let settings = Settings::new(table, self)?;
        Ok(Arc::new(GeneratorSource(Arc::new(Rows::new(table, settings)?))))
    }

    fn sink(&self, table: &TableDefinition, _input: &SinkInput) -> Result<Arc<dyn OperatorFactory>> {
        Err(wrong_direction(table, self.name(), "cannot be written", "write to a 'filesystem' or 'print' table"))
    }
}

/// The table's rows as a function of their number.
struct Rows {
    schema: SchemaRef,
    fields: Vec<Field>,
    rows: Option<u64>,
    rows_per_second: Option<u64>,
}

impl Rows {
    fn new(table: &TableDefinition, settings: Settings<'_>) -> Result<Self> {
        let seed = settings.count("seed").unwrap_or_default();
        let columns = table.schema.fields().iter();
        let fields = columns.map(|column| Field::new(column, seed, settings)).collect::<Result<Vec<_>>>()?;
        field::check_names(table, settings)?;
        let sequences = fields.iter().filter_map(Field::rows).min();
        let rows = settings.count("number-of-rows").into_iter().chain(sequences).min();
        Ok(Self { schema: Arc::clone(&table.schema), fields, rows, rows_per_second: settings.count("rows-per-second") })
    }
}

impl Generator for Rows {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn rows(&self) -> Option<u64> {
        self.rows
    }

    fn rows_per_second(&self) -> Option<u64> {
        self.rows_per_second
    }

    fn batch(&self, rows: RowRange, now: Millis) -> Result<RecordBatch> {
        let columns = self.fields.iter().map(|field| field.column(rows, now)).collect();
        RecordBatch::try_new(Arc::clone(&self.schema), columns).map_err(|e| Error::internal(e.to_string()))
    }
}
