//! The command line: one module a command, the same engine as on a cluster.
//!
//! Three to know: [`args::Arguments`] (what can be asked), [`commands::execute`], [`job_file::JobFile`] (a StreamJob
//! read from a file, ready to run). [`harness`] runs a job with a crash in the middle; `streamkeeper test` and the SQL
//! tests share it.

pub mod against;
pub mod args;
pub mod commands;
pub mod harness;
pub mod import;
pub mod job_file;
pub mod launch;
pub mod migration;
pub mod operator_state;
pub mod progress;
pub mod report;
pub mod rest;
pub mod results;
pub mod screen;
pub mod sql_types;
