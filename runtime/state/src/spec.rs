//! What an operator declares of its state: tables, columns, TTL.

use std::time::Duration;

use arrow::datatypes::{DataType, FieldRef};
use streamkeeper_types::{
    Result,
    snapshot::{FieldSchema, TableSchema},
};

use crate::{KeySchema, physical::Physical, type_text};

/// Version of key bytes, row bytes and file framing together, as snapshots carry it.
pub(crate) const SCHEMA_VERSION: u32 = 1;

/// One state table of an operator.
#[derive(Debug, Clone)]
pub struct TableSpec {
    pub(crate) name: String,
    pub(crate) alias: String,
    pub(crate) key: KeySchema,
    pub(crate) values: Vec<ValueField>,
    pub(crate) physical: Vec<Physical>,
    pub(crate) ttl: Option<Ttl>,
}

/// One value column.
#[derive(Debug, Clone)]
pub struct ValueField {
    pub name: String,
    pub data_type: DataType,
    pub initial: Initial,
}

/// What a new row has in a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Initial {
    Null,
    /// 0, false or empty, and valid.
    Zero,
}

/// Rows that nobody used for so long are gone. Processing time; belongs to the job, not to the snapshot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ttl {
    pub duration: Duration,
    pub refresh: TtlRefresh,
}

/// What counts as use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TtlRefresh {
    OnWrite,
    OnReadAndWrite,
}

impl Ttl {
    /// Whether a row last used at `used_at` is gone at `now`, both in milliseconds.
    #[must_use]
    pub fn is_expired(&self, used_at: i64, now: i64) -> bool {
        let duration = i64::try_from(self.duration.as_millis()).unwrap_or(i64::MAX);
        used_at.saturating_add(duration) <= now
    }
}

impl ValueField {
    /// A column that is NULL in a new row.
    #[must_use]
    pub fn nullable(name: impl Into<String>, data_type: DataType) -> Self {
        Self { name: name.into(), data_type, initial: Initial::Null }
    }

    /// A column that is zero in a new row.
    #[must_use]
    pub fn zero(name: impl Into<String>, data_type: DataType) -> Self {
        Self { name: name.into(), data_type, initial: Initial::Zero }
    }
}

impl TableSpec {
    /// A table without TTL. `name` is unique within the operator, as `groups`.
    ///
    /// # Errors
    /// `SQL_UNSUPPORTED` for a column that state cannot hold.
    pub fn new(name: impl Into<String>, key: KeySchema, values: Vec<ValueField>) -> Result<Self> {
        let physical = values
            .iter()
            .map(|field| Physical::of(&field.data_type).map_err(|e| e.at(format!("column {}", field.name))))
            .collect::<Result<_>>()?;
        let name = name.into();
        Ok(Self { alias: name.clone(), name, key, values, physical, ttl: None })
    }

    /// What `state query` calls the table.
    #[must_use]
    pub fn with_alias(mut self, alias: impl Into<String>) -> Self {
        self.alias = alias.into();
        self
    }

    #[must_use]
    pub fn with_ttl(mut self, ttl: Option<Ttl>) -> Self {
        self.ttl = ttl;
        self
    }

    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    #[must_use]
    pub fn key(&self) -> &KeySchema {
        &self.key
    }

    #[must_use]
    pub fn values(&self) -> &[ValueField] {
        &self.values
    }

    #[must_use]
    pub fn ttl(&self) -> Option<Ttl> {
        self.ttl
    }

    /// The schema as a snapshot carries it.
    #[must_use]
    pub fn schema(&self) -> TableSchema {
        let field = |field: &FieldRef| FieldSchema {
            name: field.name().clone(),
            data_type: type_text::display(field.data_type()),
        };
        let value = |field: &ValueField| FieldSchema {
            name: field.name.clone(),
            data_type: type_text::display(&field.data_type),
        };
        TableSchema {
            version: SCHEMA_VERSION,
            key: self.key.fields().iter().map(field).collect(),
            prefix: self.key.hashed().start,
            hashed: self.key.hashed().len(),
            values: self.values.iter().map(value).collect(),
            ttl: self.ttl.is_some(),
        }
    }
}
