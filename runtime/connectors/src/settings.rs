//! A table's options, checked and read with their types, and the options that all tables of a kind have.

use std::time::Duration;

use streamkeeper_types::{
    Code, Error, Result, duration,
    options::{OptionKind, OptionSpec, to_error, validate},
    size,
};

use crate::registry::{Connector, TableDefinition};

/// Every table names its connector.
pub(crate) const CONNECTOR: OptionSpec =
    OptionSpec::new("connector", OptionKind::Text, "Which connector reads or writes the table.").required();

/// What the engine does for every source.
pub(crate) const SOURCE: [OptionSpec; 4] = [
    OptionSpec::new(
        "scan.rate-limit",
        OptionKind::Integer { min: 1, max: i64::MAX },
        "Rows per second that the whole source yields at most.",
    ),
    OptionSpec::new(
        "scan.watermark.unread-splits",
        OptionKind::OneOf(&["hold", "ignore"]),
        "Whether a part of a bounded input that nobody has begun to read holds back the watermark.",
    )
    .default("hold"),
    OptionSpec::new(
        "scan.watermark.idle-timeout",
        OptionKind::Duration,
        "After this time without a row a split no longer holds back the watermark; without it, it does for ever.",
    ),
    OptionSpec::new("scan.watermark.min-gap", OptionKind::Duration, "Least time between two watermarks.")
        .default("10ms"),
];

/// A table's options behind typed access. What it returns was checked against the connector's list.
#[derive(Clone, Copy)]
pub(crate) struct Settings<'a> {
    table: &'a TableDefinition,
    specs: &'static [OptionSpec],
}

impl<'a> Settings<'a> {
    /// # Errors
    /// `OPTION_INVALID` with all faults.
    pub(crate) fn new(table: &'a TableDefinition, connector: &dyn Connector) -> Result<Self> {
        let specs = connector.options();
        match to_error(&validate(&table.options, specs), |_| None) {
            Some(error) => Err(error.at(format!("table {}", table.name))),
            None => Ok(Self { table, specs }),
        }
    }

    /// The text given, else the default.
    pub(crate) fn text(&self, key: &str) -> Option<&'a str> {
        let given = self.table.options.get(key).map(String::as_str);
        given.or_else(|| self.specs.iter().find(|spec| spec.matches(key))?.default)
    }

    /// Whether the user wrote this key.
    pub(crate) fn is_given(&self, key: &str) -> bool {
        self.table.options.contains_key(key)
    }

    pub(crate) fn flag(&self, key: &str) -> bool {
        self.text(key) == Some("true")
    }

    pub(crate) fn integer(&self, key: &str) -> Option<i64> {
        self.text(key)?.trim().parse().ok()
    }

    /// A number that the list of options says is not negative.
    pub(crate) fn count(&self, key: &str) -> Option<u64> {
        self.text(key)?.trim().parse().ok()
    }

    pub(crate) fn float(&self, key: &str) -> Option<f64> {
        self.text(key)?.trim().parse().ok()
    }

    pub(crate) fn duration(&self, key: &str) -> Option<Duration> {
        duration::parse(self.text(key)?).ok()
    }

    pub(crate) fn size(&self, key: &str) -> Option<u64> {
        size::parse(self.text(key)?).ok()
    }

    /// An `OPTION_INVALID` error of this table.
    pub(crate) fn fault(&self, key: &str, why: impl std::fmt::Display, way_out: impl Into<String>) -> Error {
        Error::new(Code::OptionInvalid, format!("option '{key}': {why}"))
            .way_out(way_out)
            .at(format!("table {}", self.table.name))
    }
}

/// An error for a table that cannot be used in this direction.
pub(crate) fn wrong_direction(table: &TableDefinition, connector: &str, direction: &str, way_out: &str) -> Error {
    Error::new(Code::SqlInvalid, format!("a table with connector '{connector}' {direction}"))
        .way_out(way_out)
        .at(format!("table {}", table.name))
}
