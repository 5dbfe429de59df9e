//! Small snapshots for the tests.

use std::collections::BTreeMap;

use streamkeeper_checkpoint::{Manifest, ManifestOperator, manifest::ManifestSubtask};
use streamkeeper_protocol::{CheckpointKind, SnapshotFormat};
use streamkeeper_types::{
    CheckpointId, FileRef, FileScope, KeyGroupRange, OperatorId, key_group,
    snapshot::{BaseFile, KeyedHandle, ListMode, ListState, StateFormat, TableHandle, TableSchema},
};

pub const MAX: u32 = 128;

pub fn file(path: &str) -> FileRef {
    FileRef { path: path.into(), size: 3, checksum: 4, scope: FileScope::Shared }
}

/// A handle with one file that serves the whole range and one delta.
pub fn handle(name: &str, range: KeyGroupRange) -> KeyedHandle {
    let base = BaseFile {
        file: file(&format!("shared/{name}.sst")),
        level: 1,
        smallest: "00".into(),
        largest: "ff".into(),
        smallest_seq: 1,
        largest_seq: 2,
        visible: range,
    };
    let table = TableHandle {
        name: "groups".into(),
        alias: String::new(),
        schema: TableSchema::default(),
        base: vec![base],
        rows: 5,
    };
    let deltas = vec![file(&format!("shared/{name}.delta"))];
    KeyedHandle { range, format: StateFormat::Rocksdb, tables: vec![table], deltas }
}

/// An operator with keyed state of `parallelism` subtasks.
pub fn keyed_operator(id: u128, parallelism: u32) -> ManifestOperator {
    let subtasks = (0..parallelism)
        .map(|i| ManifestSubtask {
            keyed: Some(handle(&format!("{id}-{i}"), key_group::range_of(i, parallelism, MAX))),
            ..ManifestSubtask::default()
        })
        .collect();
    ManifestOperator { id: OperatorId(id), name: format!("op{id}"), coordinator: None, subtasks }
}

/// A source with a coordinator and one split a subtask.
pub fn source(id: u128, parallelism: u8) -> ManifestOperator {
    let subtasks = (0..parallelism)
        .map(|i| {
            let splits = ListState { mode: ListMode::Split, items: vec![vec![i]] };
            ManifestSubtask { lists: BTreeMap::from([("splits".into(), splits)]), ..ManifestSubtask::default() }
        })
        .collect();
    ManifestOperator { id: OperatorId(id), name: format!("op{id}"), coordinator: Some(vec![0xab]), subtasks }
}

pub fn manifest(operators: Vec<ManifestOperator>) -> Manifest {
    Manifest {
        job: "default/test".into(),
        checkpoint: CheckpointId(7),
        kind: CheckpointKind::Checkpoint,
        format: SnapshotFormat::Native,
        time: 1_700_000_000_000,
        max_parallelism: MAX,
        hash_version: key_group::HASH_VERSION,
        program: "SELECT 1".into(),
        operators,
    }
}
