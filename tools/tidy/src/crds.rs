//! `crds/*.yaml`, from the types of `operator/api`.

use std::path::Path;

use streamkeeper_api::{crd, yaml};

use crate::generated::File;

const HEAD: &str = "# Generated from operator/api by `cargo run -p streamkeeper-tidy -- crds`. Do not edit.\n";

/// All of them.
#[must_use]
pub fn files() -> Vec<File> {
    let file = |crd: &crd::Crd| File {
        path: Path::new("crds").join(crd.file),
        content: format!("{HEAD}{}", yaml::write(&crd.definition)),
    };
    crd::all().into_iter().map(file).collect()
}
