//! The page that is generated from the option lists.

use std::{env, fs, path::Path};

#[test]
fn the_reference_page_is_fresh() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/connectors.md");
    let page = streamkeeper_connectors::reference();
    if env::var_os("UPDATE_REFERENCE").is_some() {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, &page).unwrap();
    }
    let found = fs::read_to_string(&path).unwrap_or_default();
    assert!(
        found == page,
        "run `UPDATE_REFERENCE=1 cargo test -p streamkeeper-connectors reference` and look at the change"
    );
}
