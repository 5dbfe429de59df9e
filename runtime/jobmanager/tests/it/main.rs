//! The engine as a table of events and the commands that follow, one rule a test.
#![allow(clippy::unwrap_used)]

mod abort;
mod bench;
mod complete;
mod finish;
mod handshake;
mod job;
mod trigger;
