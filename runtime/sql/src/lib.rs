//! Flink's SQL dialect: from a script's text to statements, catalogue and functions with Flink's results.
//!
//! Three to know: [`parse::Script`] (statements with their places in the text), [`catalog::Table`] (what CREATE TABLE
//! declares), [`functions`] (one table of every function, and how Flink's results are imposed on DataFusion's plans).
//!
//! Must not know: tasks, channels, checkpoints, storage.

pub mod catalog;
pub mod explain;
pub mod functions;
pub mod parse;
pub mod plan;
pub mod position;
pub mod types;
