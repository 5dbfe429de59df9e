//! What one subtask's part of a snapshot consists of: references to files, and small state inline.
//!
//! Plain data that crosses processes and lies in manifests. Every field is versioned with the manifest.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{FileRef, KeyGroupRange, OperatorId};

/// One subtask's acknowledged state: one entry for each operator of its chain that has state.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SubtaskSnapshot {
    pub operators: Vec<OperatorSnapshot>,
    /// The task had reached end of data and needed only its final checkpoint.
    #[serde(default)]
    pub finished: bool,
}

/// State of one operator in one subtask.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OperatorSnapshot {
    pub operator: OperatorId,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keyed: Option<KeyedHandle>,
    /// Operator (non-keyed) state by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub lists: BTreeMap<String, ListState>,
}

/// Operator state: items of opaque, versioned bytes, dealt out again on restore.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListState {
    pub mode: ListMode,
    #[serde(with = "hex_items")]
    pub items: Vec<Vec<u8>>,
}

/// How the items of all old subtasks reach the new ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ListMode {
    /// All concatenated and dealt out again.
    Split,
    /// Everybody receives everything.
    Union,
    /// All copies are equal; new subtask `i` reads copy `i mod oldP`.
    Broadcast,
}

/// Keyed state of one operator in one subtask.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeyedHandle {
    /// Key groups that this handle covers; rows of its files outside it are not part of the state.
    pub range: KeyGroupRange,
    pub format: StateFormat,
    pub tables: Vec<TableHandle>,
    /// Changes since the base, oldest first; each object holds all tables of the subtask, a later row wins.
    pub deltas: Vec<FileRef>,
}

/// What the files of a keyed handle are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum StateFormat {
    /// Base of RocksDB's SST files, and deltas.
    Rocksdb,
    /// Base of column files as the memory backend writes them, and deltas.
    Columns,
    /// Parquet, one data set a table, no deltas: canonical savepoints.
    Parquet,
}

/// One state table of a keyed operator.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TableHandle {
    /// Name within the operator, as in `groups` or `distinct_COUNT(DISTINCT x)`.
    pub name: String,
    /// What `state query` calls it.
    #[serde(default)]
    pub alias: String,
    pub schema: TableSchema,
    pub base: Vec<BaseFile>,
    /// Rows in the base and deltas together as far as known, for people.
    #[serde(default)]
    pub rows: u64,
}

/// Key and value columns of a state table, in order. Types in the text form of `streamkeeper-state`'s `schema` module.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TableSchema {
    pub version: u32,
    pub key: Vec<FieldSchema>,
    /// Leading key columns that order the table but do not choose the key group (a window's end, say).
    pub prefix: usize,
    /// Key columns after `prefix` that choose the key group; those behind them only order the table.
    #[serde(default)]
    pub hashed: usize,
    pub values: Vec<FieldSchema>,
    /// Rows carry the time of their last use, in milliseconds, before their values.
    #[serde(default)]
    pub ttl: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FieldSchema {
    pub name: String,
    pub data_type: String,
}

/// A file of a base, with the part of it that belongs to the handle.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BaseFile {
    pub file: FileRef,
    /// RocksDB's level; 0 for other formats.
    pub level: u32,
    /// Smallest and largest key as hex, for files that have an order; empty otherwise.
    pub smallest: String,
    pub largest: String,
    /// Sequence numbers as RocksDB has them; 0 for other formats.
    #[serde(default)]
    pub smallest_seq: u64,
    #[serde(default)]
    pub largest_seq: u64,
    /// Key groups of it that count.
    pub visible: KeyGroupRange,
}

impl SubtaskSnapshot {
    /// Every file that this snapshot needs.
    pub fn files(&self) -> impl Iterator<Item = &FileRef> {
        self.operators.iter().filter_map(|o| o.keyed.as_ref()).flat_map(KeyedHandle::files)
    }
}

impl KeyedHandle {
    /// Every file that this handle needs.
    pub fn files(&self) -> impl Iterator<Item = &FileRef> {
        self.tables.iter().flat_map(|t| t.base.iter().map(|b| &b.file)).chain(&self.deltas)
    }

    /// Bytes of all files.
    #[must_use]
    pub fn size(&self) -> u64 {
        self.files().map(|f| f.size).sum()
    }
}

/// Items as hex text, so that a manifest stays readable JSON.
mod hex_items {
    use serde::{Deserialize, Deserializer, Serializer, ser::SerializeSeq};

    pub fn serialize<S: Serializer>(items: &[Vec<u8>], serializer: S) -> Result<S::Ok, S::Error> {
        let mut seq = serializer.serialize_seq(Some(items.len()))?;
        for item in items {
            seq.serialize_element(&crate::hex::encode(item))?;
        }
        seq.end()
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Vec<u8>>, D::Error> {
        Vec::<String>::deserialize(deserializer)?
            .iter()
            .map(|text| crate::hex::decode(text).ok_or_else(|| serde::de::Error::custom("not hex")))
            .collect()
    }
}
