//! What only the memory backend does.

use std::sync::Arc;

use arrow::{
    array::{ArrayRef, Int64Array},
    datatypes::DataType,
};
use streamkeeper_state::{
    DroppedState, KeyRows, KeySchema, KeyedOptions, KeyedState, MemoryBackend, MemoryBudget, Missing, TableSpec,
};
use streamkeeper_storage::MemoryStorage;
use streamkeeper_types::{Code, KeyGroupRange};

use crate::contract::job::field;

#[test]
fn state_beyond_the_budget_is_refused_with_a_way_out() {
    const BUDGET: usize = 512 << 10;
    let dir = tempfile::tempdir().unwrap();
    let options = KeyedOptions {
        range: KeyGroupRange::all(128),
        max_parallelism: 128,
        work_dir: dir.path().join("work"),
        fold_every: 8,
        now: 0,
        dropped: DroppedState::Refuse,
    };
    let key = KeySchema::new(vec![field("k", DataType::Int64)]).unwrap();
    let specs = vec![TableSpec::new("seen", key, Vec::new()).unwrap()];
    let backend = MemoryBackend::new(MemoryBudget::new(BUDGET));
    let mut state = KeyedState::open(&backend, options, specs, &[], &MemoryStorage::new()).unwrap();
    let mut encoder = state.key_encoder(0);
    let (mut keys, mut slots) = (KeyRows::new(), Vec::new());
    let mut batches = (0..10 * BUDGET as i64).step_by(1000).map(|first| {
        let columns: Vec<ArrayRef> = vec![Arc::new(Int64Array::from_iter_values(first..first + 1000))];
        encoder.encode(&columns, 1000, &mut keys).unwrap();
        let table = state.table_mut(0);
        table.lookup(&keys, Missing::Insert, &mut slots).unwrap();
        slots.iter().for_each(|slot| table.mark_dirty(*slot));
        state.maintain()
    });
    let error = batches.find_map(Result::err).expect("the budget was exceeded");
    assert_eq!(error.code, Code::MemoryExceeded);
    assert!(error.to_string().contains("seen"), "{error}");
    assert!(format!("{error:?}").contains("rocksdb"), "{error:?}");
}
