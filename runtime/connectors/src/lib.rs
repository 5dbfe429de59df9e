//! Where rows come from and go to: connectors (files, generators, print) and the formats that files have.
//!
//! Three to know: [`Connector`] (found by its name with [`connector`]), [`TableDefinition`] (what a CREATE TABLE says),
//! [`SinkInput`] (what an INSERT INTO sends).
//!
//! Must not know: SQL text, how a task runs, where checkpoints lie.

mod base64;
mod blackhole;
mod datagen;
mod filesystem;
mod formats;
mod generator;
mod nexmark;
mod print;
mod reference;
mod registry;
mod settings;
mod text;
mod versioned;

pub use filesystem::{FilePosition, file_position};
pub use reference::reference;
pub use registry::{Connector, SinkInput, TableDefinition, connector, connectors, unknown_connector};
