//! The rules that hold the repository together.
#![allow(clippy::unwrap_used)]

use streamkeeper_tidy::{crds, dependencies, docs, generated, root, sources};

/// Fails with every item of a list, one a line.
#[track_caller]
fn assert_none(found: impl IntoIterator<Item = String>) {
    let found: Vec<String> = found.into_iter().collect();
    assert!(found.is_empty(), "\n{}\n", found.join("\n"));
}

#[test]
fn crates_depend_in_one_direction() {
    let metadata = dependencies::metadata(&root()).unwrap();
    assert_none(dependencies::violations(&metadata).unwrap());
}

#[test]
fn files_stay_short() {
    assert_none(sources::too_long(&sources::all(&root()).unwrap()));
}

#[test]
fn only_the_rocksdb_crate_has_unsafe_code() {
    assert_none(sources::with_unsafe_code(&sources::all(&root()).unwrap()));
}

#[test]
fn deciding_parts_have_no_async_fn() {
    assert_none(sources::waiting_deciders(&sources::all(&root()).unwrap()));
}

#[test]
fn generated_files_are_fresh() {
    let mut files = crds::files();
    files.extend(docs::files());
    let stale = generated::stale(&root(), &files);
    assert_none(stale.iter().map(|path| format!("{} is stale: run streamkeeper-tidy crds and docs", path.display())));
}

#[test]
fn a_crd_stays_small_enough_for_client_side_apply() {
    for file in crds::files() {
        let kib = file.content.len() / 1024;
        assert!(
            kib < 256,
            "{}: {kib} KiB; apply keeps a copy in an annotation of at most 256 KiB",
            file.path.display()
        );
    }
}
