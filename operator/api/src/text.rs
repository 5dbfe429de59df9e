//! Texts with a grammar that the schema states and `validate` parses: durations, storage URIs, quantities.
//!
//! They stay text here, so that one malformed value never makes a whole stored object unreadable for a watch.

use std::borrow::Cow;
use std::fmt;
use std::time::Duration;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, de};

/// A duration as written, for example `10s` or `1h30m`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct DurationText(String);

impl DurationText {
    /// What the schema demands of it.
    pub(crate) const PATTERN: &'static str = "^([0-9]+(ms|s|m|h))+$";

    pub(crate) fn new(text: &str) -> Self {
        Self(text.to_owned())
    }

    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The duration it stands for.
    ///
    /// # Errors
    /// What is wrong in the text.
    pub fn parse(&self) -> Result<Duration, String> {
        streamkeeper_types::duration::parse(&self.0)
    }
}

impl fmt::Display for DurationText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl JsonSchema for DurationText {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Duration".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "pattern": Self::PATTERN, "maxLength": 32 })
    }
}

/// The address of a folder in object storage or on a volume.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct StorageUri(String);

impl StorageUri {
    /// What the schema demands of such an address.
    pub(crate) const PATTERN: &'static str = "^(s3|gs|abfs|hdfs|file)://.+";

    /// Whether a text fits [`Self::PATTERN`].
    pub(crate) fn is_valid(text: &str) -> bool {
        text.split_once("://").is_some_and(|(scheme, rest)| {
            matches!(scheme, "s3" | "gs" | "abfs" | "hdfs" | "file") && rest.chars().next().is_some_and(|c| c != '\n')
        })
    }

    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for StorageUri {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl JsonSchema for StorageUri {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "StorageUri".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "pattern": Self::PATTERN, "maxLength": 1024 })
    }
}

/// An amount of CPU or memory as Kubernetes writes it: `500m`, `1Gi`, `2`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct QuantityText(String);

impl QuantityText {
    pub(crate) fn new(text: &str) -> Self {
        Self(text.to_owned())
    }

    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

// YAML writes `cpu: 1` as a number, and the server stores it as one.
impl<'de> Deserialize<'de> for QuantityText {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match serde_json::Value::deserialize(deserializer)? {
            serde_json::Value::String(text) => Ok(Self(text)),
            serde_json::Value::Number(number) => Ok(Self(number.to_string())),
            other => Err(de::Error::custom(format!("`{other}` is no quantity"))),
        }
    }
}

impl JsonSchema for QuantityText {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Quantity".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "x-kubernetes-int-or-string": true })
    }
}
