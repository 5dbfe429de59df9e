//! Where the checkout lies.

use std::path::PathBuf;

/// The root of the checkout that this binary or test runs for.
#[must_use]
pub fn root() -> PathBuf {
    // Cargo sets it at run time too, which holds when a build cache is shared by several checkouts.
    let manifest = std::env::var_os("CARGO_MANIFEST_DIR").map(PathBuf::from);
    let here = manifest.unwrap_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")));
    here.ancestors().nth(2).map_or(here.clone(), PathBuf::from)
}
