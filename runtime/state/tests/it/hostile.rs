//! Bytes that nobody of ours wrote: an error with a code, never a panic.

use std::sync::Arc;

use arrow::{
    array::{ArrayRef, Int64Array},
    datatypes::DataType,
};
use bytes::Bytes;
use proptest::prelude::*;
use streamkeeper_state::{
    DroppedState, Extent, KeyPrefix, KeyRows, KeySchema, KeyedOptions, KeyedState, MemoryBackend, MemoryBudget,
    Missing, ScanOrder, SnapshotFormat, SnapshotKind, SnapshotRequest, TableSpec, ValueField,
};
use streamkeeper_storage::{MemoryStorage, PutMode, Storage};
use streamkeeper_types::{CheckpointId, Code, KeyGroupRange, key_group, snapshot::KeyedHandle};

use crate::contract::job::field;

fn specs() -> Vec<TableSpec> {
    let key = KeySchema::new(vec![field("k", DataType::Int64)]).unwrap();
    vec![TableSpec::new("t", key, vec![ValueField::nullable("v", DataType::Utf8)]).unwrap()]
}

fn open(storage: &MemoryStorage, handle: &[KeyedHandle]) -> streamkeeper_types::Result<KeyedState> {
    let dir = tempfile::tempdir().unwrap();
    let options = KeyedOptions {
        range: KeyGroupRange::all(128),
        max_parallelism: 128,
        work_dir: dir.path().join("work"),
        fold_every: 8,
        now: 0,
        dropped: DroppedState::Refuse,
    };
    KeyedState::open(&MemoryBackend::new(MemoryBudget::new(1 << 30)), options, specs(), handle, storage)
}

/// A snapshot of some rows, whose only file is under `path`.
fn snapshot(storage: &MemoryStorage, kind: SnapshotKind, format: SnapshotFormat) -> (KeyedHandle, Bytes) {
    let dir = tempfile::tempdir().unwrap();
    let options = KeyedOptions {
        range: KeyGroupRange::all(128),
        max_parallelism: 128,
        work_dir: dir.path().join("work"),
        fold_every: 8,
        now: 0,
        dropped: DroppedState::Refuse,
    };
    let backend = MemoryBackend::new(MemoryBudget::new(1 << 30));
    let mut state = KeyedState::open(&backend, options, specs(), &[], storage).unwrap();
    let columns: Vec<ArrayRef> = vec![Arc::new(Int64Array::from_iter_values(0..20))];
    let (mut keys, mut slots) = (KeyRows::new(), Vec::new());
    state.key_encoder(0).encode(&columns, 20, &mut keys).unwrap();
    let table = state.table_mut(0);
    table.lookup(&keys, Missing::Insert, &mut slots).unwrap();
    for slot in &slots {
        table.columns_mut()[0].as_bytes_mut().unwrap().set(*slot, Some(b"value"));
        table.mark_dirty(*slot);
    }
    let request = SnapshotRequest {
        id: CheckpointId(1),
        kind,
        format,
        extent: Extent::Incremental,
        target: "s".into(),
        unique: "u".into(),
    };
    let handle = state.freeze(&request).unwrap().upload(storage).unwrap();
    let bytes = storage.get(&handle.files().next().unwrap().path).unwrap();
    (handle, bytes)
}

/// Replaces the handle's file by `bytes`, with a manifest that agrees with them.
fn replace(storage: &MemoryStorage, handle: &KeyedHandle, bytes: Bytes) -> KeyedHandle {
    let mut handle = handle.clone();
    let (size, checksum) = (bytes.len() as u64, key_group::hash(&bytes));
    let files = handle.tables.iter_mut().flat_map(|t| t.base.iter_mut().map(|b| &mut b.file));
    for file in files.chain(&mut handle.deltas) {
        (file.size, file.checksum) = (size, checksum);
        let _ = storage.put(&file.path, bytes.clone(), PutMode::Overwrite).unwrap();
    }
    handle
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn mutated_state_files_are_refused_even_under_a_matching_manifest(
        at in any::<prop::sample::Index>(), with in 1_u8.., cut in any::<prop::sample::Index>(), base in any::<bool>(),
    ) {
        let storage = MemoryStorage::new();
        let kind = if base { SnapshotKind::Savepoint } else { SnapshotKind::Checkpoint };
        let (handle, good) = snapshot(&storage, kind, SnapshotFormat::Native);
        let mut bad = good.to_vec();
        let at = at.index(bad.len());
        bad[at] ^= with;
        let error = open(&storage, &[replace(&storage, &handle, bad.into())]).unwrap_err();
        prop_assert!(matches!(error.code, Code::SnapshotCorrupt | Code::SnapshotForeign), "{error}");
        let short = good.slice(..cut.index(good.len()));
        let error = open(&storage, &[replace(&storage, &handle, short)]).unwrap_err();
        prop_assert_eq!(error.code, Code::SnapshotCorrupt);
    }

    #[test]
    fn mutated_savepoints_are_refused(at in any::<prop::sample::Index>(), with in 1_u8..) {
        let storage = MemoryStorage::new();
        let (handle, good) = snapshot(&storage, SnapshotKind::Savepoint, SnapshotFormat::Canonical);
        let mut bad = good.to_vec();
        let at = at.index(bad.len());
        bad[at] ^= with;
        let _ = storage.put(&handle.tables[0].base[0].file.path, bad.into(), PutMode::Overwrite).unwrap();
        let error = open(&storage, &[handle]).unwrap_err();
        prop_assert_eq!(error.code, Code::SnapshotCorrupt);
    }
}

/// Restores from a file that somebody changed and then gave matching checksums, and reads all of it. The change may
/// have hit a value, so that success is allowed.
fn restore_and_read(storage: &MemoryStorage, handle: &KeyedHandle, bytes: Vec<u8>) -> streamkeeper_types::Result<()> {
    let mut state = open(storage, &[replace(storage, handle, bytes.into())])?;
    let table = state.table_mut(0);
    let mut scan = table.scan(KeyPrefix::all(), ScanOrder::Key);
    let mut slots = Vec::new();
    while table.next_chunk(&mut scan, 100, &mut slots)? {
        table.gather_keys(&slots)?;
        table.gather(0, &slots)?;
    }
    Ok(())
}

fn is_clear(outcome: &streamkeeper_types::Result<()>) -> bool {
    let codes = [Code::SnapshotCorrupt, Code::SnapshotForeign, Code::StateIncompatible];
    outcome.as_ref().err().is_none_or(|error| codes.contains(&error.code))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn mutated_state_files_with_matching_checksums_give_an_error_or_rows_but_never_a_panic(
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4), base in any::<bool>(),
    ) {
        let storage = MemoryStorage::new();
        let kind = if base { SnapshotKind::Savepoint } else { SnapshotKind::Checkpoint };
        let (handle, good) = snapshot(&storage, kind, SnapshotFormat::Native);
        let mut bad = good[..good.len() - 8].to_vec();
        for (at, with) in changes {
            let at = at.index(bad.len());
            bad[at] = with;
        }
        bad.extend_from_slice(&key_group::hash(&bad).to_le_bytes());
        let outcome = restore_and_read(&storage, &handle, bad);
        prop_assert!(is_clear(&outcome), "{outcome:?}");
    }

    #[test]
    fn mutated_savepoints_with_matching_checksums_give_an_error_or_rows_but_never_a_panic(
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
    ) {
        let storage = MemoryStorage::new();
        let (handle, good) = snapshot(&storage, SnapshotKind::Savepoint, SnapshotFormat::Canonical);
        let mut bad = good.to_vec();
        for (at, with) in changes {
            let at = at.index(bad.len());
            bad[at] = with;
        }
        let outcome = restore_and_read(&storage, &handle, bad);
        prop_assert!(is_clear(&outcome), "{outcome:?}");
    }
}

#[test]
fn a_file_of_a_later_version_is_foreign() {
    let storage = MemoryStorage::new();
    let (handle, good) = snapshot(&storage, SnapshotKind::Checkpoint, SnapshotFormat::Native);
    let mut later = good.to_vec();
    later[7] = b'2';
    let error = open(&storage, &[replace(&storage, &handle, later.into())]).unwrap_err();
    assert_eq!(error.code, Code::SnapshotForeign);
    assert!(error.to_string().contains(&handle.deltas[0].path), "{error}");
}
