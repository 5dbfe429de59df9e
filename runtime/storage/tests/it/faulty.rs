//! `FaultyStorage` itself.

use std::sync::Arc;

use bytes::Bytes;
use streamkeeper_storage::{Faults, FaultyStorage, MemoryStorage, PutMode, Storage};

#[test]
fn the_same_seed_and_calls_give_the_same_failures() {
    let run = |seed| {
        let faults = Faults { refused: 0.2, lost: 0.2, answer_lost: 0.2 };
        let storage = FaultyStorage::new(Arc::new(MemoryStorage::new()), faults, seed);
        let puts = (0..100).map(|i| storage.put(&format!("a/{i}"), Bytes::new(), PutMode::Create).is_ok());
        puts.collect::<Vec<_>>()
    };
    assert_eq!(run(1), run(1));
    assert_ne!(run(1), run(2));
}
