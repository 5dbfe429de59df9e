//! The direction in which crates may depend on each other, and what some must not link at all.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};
use cargo_metadata::{DependencyKind, Metadata, MetadataCommand, PackageId};

const PREFIX: &str = "streamkeeper-";

/// Layers of the runtime, lowest first. A crate sees those below its own layer, and within it nothing but what
/// [`WITHIN_LAYER`] says.
const LAYERS: [&[&str]; 8] = [
    &["types"],
    &["protocol", "storage", "state", "state-rocksdb", "network"],
    &["checkpoint"],
    &["engine"],
    &["operators", "connectors"],
    &["sql", "program"],
    &["jobmanager", "taskmanager"],
    &["cli"],
];

const WITHIN_LAYER: [(&str, &str); 5] = [
    ("state-rocksdb", "state"),
    ("state-rocksdb", "storage"),
    ("state", "storage"),
    ("network", "protocol"),
    // `taskmanager::local` puts both into one process.
    ("taskmanager", "jobmanager"),
];

/// Everything that talks to Kubernetes. Its image stays small, so it sees little.
const OPERATOR: [&str; 2] = ["api", "controller"];
const OPERATOR_SEES: [&str; 2] = ["types", "protocol"];

/// Crates that stand outside: they test or check the others.
const OUTSIDE: [&str; 3] = ["sim", "fuzz", "tidy"];

/// Holds no code, only the features of third-party crates. Who depends on it links nothing for that.
const FEATURES: &str = "streamkeeper-features";

/// Heavy libraries that a crate must not link, directly or through others.
const NEVER_LINKS: [(&str, &[&str]); 2] = [
    ("jobmanager", &["rocksdb", "librocksdb-sys", "rdkafka", "rdkafka-sys", "datafusion"]),
    ("api", &["rocksdb", "librocksdb-sys", "rdkafka", "rdkafka-sys", "datafusion", "arrow", "tokio"]),
];

/// What cargo knows of the workspace, for this machine's platform.
///
/// # Errors
/// Those of cargo and rustc.
pub fn metadata(root: &Path) -> Result<Metadata> {
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let version = Command::new(&rustc).arg("-vV").output().context("rustc -vV")?;
    let version = String::from_utf8_lossy(&version.stdout).into_owned();
    let Some(host) = version.lines().find_map(|line| line.strip_prefix("host: ")) else {
        bail!("`rustc -vV` names no host");
    };
    MetadataCommand::new()
        .manifest_path(root.join("Cargo.toml"))
        .other_options(["--filter-platform".to_owned(), host.to_owned()])
        .exec()
        .context("cargo metadata")
}

/// Dependencies of one kind: package → packages.
struct Graph<'a> {
    names: BTreeMap<&'a PackageId, &'a str>,
    edges: BTreeMap<&'a PackageId, Vec<&'a PackageId>>,
}

impl<'a> Graph<'a> {
    /// Only what a build links: dependencies of tests and build scripts do not count.
    fn normal(metadata: &'a Metadata) -> Result<Self> {
        let resolve = metadata.resolve.as_ref().context("cargo metadata gave no graph")?;
        let names = metadata.packages.iter().map(|package| (&package.id, package.name.as_str())).collect();
        let features =
            metadata.packages.iter().find(|package| package.name.as_str() == FEATURES).map(|package| &package.id);
        let edges = resolve.nodes.iter().map(|node| {
            let normal =
                node.deps.iter().filter(|dep| dep.dep_kinds.iter().any(|kind| kind.kind == DependencyKind::Normal));
            (&node.id, normal.map(|dep| &dep.pkg).filter(|package| Some(*package) != features).collect())
        });
        Ok(Self { names, edges: edges.collect() })
    }

    /// Names of all packages that one links.
    fn closure(&self, start: &'a PackageId) -> BTreeSet<&'a str> {
        let mut seen = BTreeSet::new();
        let mut open = vec![start];
        while let Some(package) = open.pop() {
            for next in self.edges.get(package).into_iter().flatten() {
                if seen.insert(*next) {
                    open.push(next);
                }
            }
        }
        seen.into_iter().filter_map(|package| self.names.get(package).copied()).collect()
    }
}

/// Everything that points the wrong way.
///
/// # Errors
/// Metadata without a graph.
pub fn violations(metadata: &Metadata) -> Result<Vec<String>> {
    let graph = Graph::normal(metadata)?;
    let mut found = Vec::new();
    for package in metadata.workspace_packages().into_iter().filter(|package| package.name.as_str() != FEATURES) {
        let Some(name) =
            package.name.strip_prefix(PREFIX).or((package.name.as_str() == "streamkeeper").then_some("program"))
        else {
            found.push(format!("{}: crates are named {PREFIX}<folder>", package.name));
            continue;
        };
        if !is_known(name) {
            found.push(format!("{name}: it has no layer yet; give it one in tools/tidy/src/dependencies.rs"));
        }
        for dependency in graph.edges.get(&package.id).into_iter().flatten() {
            let Some(other) = graph.names.get(dependency).and_then(|name| name.strip_prefix(PREFIX)) else { continue };
            if !may_see(name, other) {
                found.push(format!("{name} must not depend on {other}"));
            }
        }
        for (_, forbidden) in NEVER_LINKS.iter().filter(|(krate, _)| *krate == name) {
            let linked = graph.closure(&package.id);
            found.extend(
                forbidden
                    .iter()
                    .filter(|library| linked.contains(**library))
                    .map(|library| format!("{name} must not link {library}, directly or through others")),
            );
        }
    }
    Ok(found)
}

fn layer(name: &str) -> Option<usize> {
    LAYERS.iter().position(|crates| crates.contains(&name))
}

fn is_known(name: &str) -> bool {
    layer(name).is_some() || OPERATOR.contains(&name) || OUTSIDE.contains(&name)
}

fn may_see(name: &str, other: &str) -> bool {
    if OUTSIDE.contains(&name) {
        return true;
    }
    if OPERATOR.contains(&name) {
        return OPERATOR_SEES.contains(&other) || (name == "controller" && other == "api");
    }
    match (layer(name), layer(other)) {
        (Some(own), Some(below)) => below < own || WITHIN_LAYER.contains(&(name, other)),
        // The command line reads the same StreamJobs as the operator.
        (Some(_), None) => name == "cli" && other == "api",
        (None, _) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn crates_see_only_what_lies_below() {
        for (name, other) in
            [("engine", "checkpoint"), ("cli", "api"), ("state-rocksdb", "state"), ("sim", "cli"), ("api", "types")]
        {
            assert!(may_see(name, other), "{name} → {other}");
        }
        for (name, other) in [
            ("types", "protocol"),
            ("network", "engine"),
            ("operators", "connectors"),
            ("state", "state-rocksdb"),
            ("storage", "state"),
            ("jobmanager", "api"),
            ("api", "storage"),
            ("engine", "sim"),
        ] {
            assert!(!may_see(name, other), "{name} → {other}");
        }
    }
}
