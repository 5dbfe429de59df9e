//! The manifest `_metadata`: everything that one checkpoint or savepoint consists of.

mod codec;

use std::collections::BTreeMap;

pub use codec::{MANIFEST_VERSION, checksum};
use serde::{Deserialize, Serialize};
use streamkeeper_protocol::{CheckpointKind, SnapshotFormat};
use streamkeeper_types::{
    CheckpointId, FileRef, FileScope, Millis, OperatorId,
    snapshot::{KeyedHandle, ListState, OperatorSnapshot},
};

/// Name of the manifest in a snapshot's folder.
pub const FILE_NAME: &str = "_metadata";

/// One checkpoint or savepoint.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    /// `<namespace>/<name>` of the job that wrote it, for messages.
    pub job: String,
    pub checkpoint: CheckpointId,
    pub kind: CheckpointKind,
    pub format: SnapshotFormat,
    /// When it was triggered.
    pub time: Millis,
    /// Number of key groups.
    pub max_parallelism: u32,
    /// Version of key encoding and hash; see `streamkeeper_types::key_group`.
    pub hash_version: u32,
    /// Text of the program that wrote it, for messages.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub program: String,
    /// Every operator of the job graph, also those without state, in the graph's order.
    pub operators: Vec<ManifestOperator>,
}

/// One operator with the state of all its subtasks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ManifestOperator {
    pub id: OperatorId,
    /// What people call it, as in `GROUP BY auction`.
    pub name: String,
    /// State of its split coordinator, opaque.
    #[serde(default, with = "hex_option", skip_serializing_if = "Option::is_none")]
    pub coordinator: Option<Vec<u8>>,
    /// One entry for each subtask.
    pub subtasks: Vec<ManifestSubtask>,
}

/// One subtask's part of one operator.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ManifestSubtask {
    /// The subtask had read all its input and everything of it is in this snapshot.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub finished: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keyed: Option<KeyedHandle>,
    /// Operator state by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub lists: BTreeMap<String, ListState>,
}

impl Manifest {
    /// Every file that the snapshot needs, besides the manifest itself. A file that several subtasks use comes as
    /// often.
    pub fn files(&self) -> impl Iterator<Item = &FileRef> {
        self.operators.iter().flat_map(|o| &o.subtasks).filter_map(|s| s.keyed.as_ref()).flat_map(KeyedHandle::files)
    }

    /// Files that no other snapshot uses.
    pub fn private_files(&self) -> impl Iterator<Item = &FileRef> {
        self.files().filter(|file| file.scope == FileScope::Private)
    }
}

impl ManifestOperator {
    /// Whether each subtask finished: on restore it runs no code (F3).
    #[must_use]
    pub fn is_finished(&self) -> bool {
        !self.subtasks.is_empty() && self.subtasks.iter().all(|subtask| subtask.finished)
    }

    /// Whether anything would be lost without it.
    #[must_use]
    pub fn has_state(&self) -> bool {
        let holds = |s: &ManifestSubtask| s.keyed.is_some() || s.lists.values().any(|list| !list.items.is_empty());
        self.coordinator.is_some() || self.subtasks.iter().any(holds)
    }

    #[must_use]
    pub fn parallelism(&self) -> u32 {
        u32::try_from(self.subtasks.len()).unwrap_or(u32::MAX)
    }
}

impl From<OperatorSnapshot> for ManifestSubtask {
    fn from(snapshot: OperatorSnapshot) -> Self {
        Self { finished: false, keyed: snapshot.keyed, lists: snapshot.lists }
    }
}

mod hex_option {
    use serde::{Deserialize, Deserializer, Serializer};
    use streamkeeper_types::hex;

    pub fn serialize<S: Serializer>(bytes: &Option<Vec<u8>>, serializer: S) -> Result<S::Ok, S::Error> {
        match bytes {
            Some(bytes) => serializer.serialize_str(&hex::encode(bytes)),
            None => serializer.serialize_none(),
        }
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Vec<u8>>, D::Error> {
        let text = Option::<String>::deserialize(deserializer)?;
        text.map(|text| hex::decode(&text).ok_or_else(|| serde::de::Error::custom("not hex"))).transpose()
    }
}
