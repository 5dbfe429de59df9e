//! The crate from outside: scripts, functions, and texts that are no SQL.
#![allow(clippy::unwrap_used)]

mod functions;
mod harness;
mod no_panic;
mod parse;
mod plan;
mod semantics;
