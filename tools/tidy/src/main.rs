//! `streamkeeper-tidy crds|docs [--check]`: writes what is generated from types, or fails where it is stale.

use std::process::ExitCode;

use anyhow::{Result, bail};
use streamkeeper_tidy::{crds, docs, generated, root};

const USAGE: &str = "usage: streamkeeper-tidy crds|docs [--check]";

fn main() -> Result<ExitCode> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let (what, check) = match arguments[..] {
        [what] => (what, false),
        [what, "--check"] => (what, true),
        _ => bail!(USAGE),
    };
    let files = match what {
        "crds" => crds::files(),
        "docs" => docs::files(),
        _ => bail!(USAGE),
    };
    if check {
        let stale = generated::stale(&root(), &files);
        for path in &stale {
            eprintln!("{} is stale: run `cargo run -p streamkeeper-tidy -- {what}`", path.display());
        }
        return Ok(if stale.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE });
    }
    for path in generated::write(&root(), &files)? {
        eprintln!("wrote {}", path.display());
    }
    Ok(ExitCode::SUCCESS)
}
