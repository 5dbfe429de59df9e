//! The command line as a person uses it: the real binary, real files, real kills.
#![allow(clippy::unwrap_used, clippy::panic)]

mod bad_input;
mod cluster;
mod commands;
mod crash_loop;
mod example;
mod sql_cases;
