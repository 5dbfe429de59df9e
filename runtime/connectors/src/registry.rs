//! The connectors by name, and what planning tells them of a table.

use std::{collections::BTreeMap, path::PathBuf, sync::Arc};

use arrow::datatypes::SchemaRef;
use streamkeeper_engine::{Changelog, OperatorFactory, SourceFactory};
use streamkeeper_types::{Code, Error, OperatorId, Result, options::OptionSpec};

use crate::{blackhole::Blackhole, datagen::Datagen, filesystem::Filesystem, nexmark::Nexmark, print::Print};

/// A kind of table: what `'connector' = '…'` names.
pub trait Connector: Send + Sync {
    /// As users write it.
    fn name(&self) -> &'static str;

    /// One sentence for the reference.
    fn doc(&self) -> &'static str;

    /// Every option that such a table may have, those of its formats included.
    fn options(&self) -> &'static [OptionSpec];

    /// The table as a source. Looks at the options only; files are listed by the split coordinator.
    ///
    /// # Errors
    /// `OPTION_INVALID` or `SQL_INVALID` if the table cannot be read.
    fn source(&self, table: &TableDefinition) -> Result<Arc<dyn SourceFactory>>;

    /// The table as a sink for one INSERT INTO.
    ///
    /// # Errors
    /// `OPTION_INVALID` or `SQL_INVALID` if the table cannot be written, or takes no updates and `input` has some.
    fn sink(&self, table: &TableDefinition, input: &SinkInput) -> Result<Arc<dyn OperatorFactory>>;
}

/// What a CREATE TABLE says, as far as its connector must know.
#[derive(Debug, Clone)]
pub struct TableDefinition {
    pub name: String,
    /// `<namespace>/<name>` of the job: keeps what two jobs write to one folder apart.
    pub job: String,
    /// Physical columns, those of PARTITIONED BY included, in the order of the text.
    pub schema: SchemaRef,
    pub options: BTreeMap<String, String>,
    pub partitioned_by: Vec<String>,
    /// Columns of PRIMARY KEY … NOT ENFORCED.
    pub primary_key: Vec<String>,
    /// Folder from which relative paths are resolved: that of the StreamJob's file.
    pub base_dir: PathBuf,
    /// Whether the table has a WATERMARK clause.
    pub has_watermark: bool,
}

/// What an INSERT INTO sends to a table. Columns correspond to the table's by position.
#[derive(Debug, Clone)]
pub struct SinkInput {
    /// Schema of the batches; ends with the row-kind column if `changelog` is updating.
    pub schema: SchemaRef,
    pub changelog: Changelog,
    /// Positions of the unique key of the changelog; empty if there is none.
    pub primary_key: Vec<usize>,
    pub operator: OperatorId,
    /// Name of the sink operator, for messages.
    pub name: String,
}

const CONNECTORS: [&dyn Connector; 5] = [&Filesystem, &Datagen, &Nexmark, &Print, &Blackhole];

/// All connectors, in the order of the reference.
#[must_use]
pub fn connectors() -> &'static [&'static dyn Connector] {
    &CONNECTORS
}

/// The connector that `'connector' = '<name>'` means.
#[must_use]
pub fn connector(name: &str) -> Option<&'static dyn Connector> {
    CONNECTORS.iter().copied().find(|connector| connector.name() == name)
}

/// The error for a name that [`connector`] does not know, with the nearest one.
#[must_use]
pub fn unknown_connector(name: &str) -> Error {
    let nearest = CONNECTORS
        .iter()
        .map(|connector| (strsim::damerau_levenshtein(name, connector.name()), connector.name()))
        .min()
        .filter(|(distance, _)| *distance <= 3);
    let all = CONNECTORS.map(Connector::name).join(", ");
    let way_out = match nearest {
        Some((_, nearest)) => format!("did you mean '{nearest}'? Connectors are {all}"),
        None => format!("connectors are {all}"),
    };
    Error::new(Code::OptionInvalid, format!("there is no connector '{name}'")).way_out(way_out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connectors_are_found_by_name_and_misspelt_ones_named() {
        assert!(connector("filesystem").is_some());
        assert!(connector("kafka").is_none());
        let error = unknown_connector("filesytem");
        assert_eq!(error.code, Code::OptionInvalid);
        assert!(error.way_out.is_some_and(|text| text.starts_with("did you mean 'filesystem'?")));
    }

    #[test]
    fn every_option_of_every_connector_is_declared_once_and_its_default_is_valid() {
        for connector in connectors() {
            let mut seen = std::collections::BTreeSet::new();
            for option in connector.options() {
                assert!(seen.insert(option.key), "{}: '{}' twice", connector.name(), option.key);
                if let Some(default) = option.default {
                    assert_eq!(option.kind.check(default), Ok(()), "{}", option.key);
                }
            }
        }
    }
}
