//! Keeps the repository true to its own rules: what is generated is fresh, crates depend in one direction, files stay short.
//!
//! Three to know: [`generated::File`] (a file made from types), [`dependencies::violations`] and [`sources::Source`].
//! The binary writes or checks generated files; the tests enforce everything.
//!
//! Must not know: how anything that it checks works.

pub mod code;
pub mod crds;
pub mod dependencies;
pub mod docs;
pub mod generated;
mod schema_table;
pub mod sources;
mod workspace;

pub use workspace::root;
