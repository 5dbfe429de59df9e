//! The manifest's bytes.

use proptest::prelude::*;
use streamkeeper_checkpoint::Manifest;
use streamkeeper_types::Code;

use crate::snapshots::{keyed_operator, manifest, source};

/// Written once by version 1; every later version must read it and version 1 must write it.
const GOLDEN: &[u8] = include_bytes!("manifest_v1.golden");

fn sample() -> Manifest {
    let mut sample = manifest(vec![source(1, 2), keyed_operator(2, 1)]);
    sample.operators[0].subtasks[1].finished = true;
    sample
}

#[test]
fn version_1_reads_and_writes_the_same_bytes_for_ever() {
    assert_eq!(Manifest::decode("m", GOLDEN).unwrap(), sample());
    assert_eq!(sample().encode(), GOLDEN);
}

#[test]
fn every_torn_manifest_is_corrupt() {
    let whole = sample().encode();
    for length in 0..whole.len() {
        let error = Manifest::decode("chk-7/_metadata", &whole[..length]).unwrap_err();
        assert_eq!(error.code, Code::SnapshotCorrupt, "{length} bytes: {error}");
        assert!(error.cause.contains("chk-7/_metadata") && error.way_out.is_some());
    }
}

#[test]
fn what_is_no_manifest_or_of_another_version_is_foreign() {
    let whole = String::from_utf8(sample().encode().to_vec()).unwrap();
    for foreign in [
        "hello".to_owned(),
        "{}".to_owned(),
        "\u{feff}{}".to_owned(),
        whole.replacen("\"version\":1", "\"version\":2", 1),
    ] {
        assert_eq!(Manifest::decode("m", foreign.as_bytes()).unwrap_err().code, Code::SnapshotForeign, "{foreign:.40}");
    }
    let other_hash = Manifest { hash_version: 2, ..sample() };
    assert_eq!(Manifest::decode("m", &other_hash.encode()).unwrap_err().code, Code::SnapshotForeign);
}

#[test]
fn a_manifest_that_contradicts_itself_is_corrupt() {
    let mut twice = sample();
    twice.operators.push(twice.operators[0].clone());
    let mut no_subtask = sample();
    no_subtask.operators[0].subtasks.clear();
    let few_groups = Manifest { max_parallelism: 4, ..sample() };
    let no_groups = Manifest { max_parallelism: 0, ..sample() };
    for bad in [twice, no_subtask, few_groups, no_groups] {
        assert_eq!(Manifest::decode("m", &bad.encode()).unwrap_err().code, Code::SnapshotCorrupt);
    }
}

proptest! {
    #[test]
    fn one_changed_byte_is_noticed(at in 0usize..4_000, xor in 1u8..=255) {
        let mut bytes = sample().encode().to_vec();
        let at = at % bytes.len();
        bytes[at] ^= xor;
        if let Ok(read) = Manifest::decode("m", &bytes) {
            // Only white space of the first line may differ.
            prop_assert_eq!(read, sample());
        }
    }

    #[test]
    fn no_bytes_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        prop_assert!(Manifest::decode("m", &bytes).is_err());
    }
}
