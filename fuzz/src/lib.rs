//! Fuzz targets: each takes any bytes and must neither panic nor hang. What they return is of no interest.
//!
//! `cargo test -p streamkeeper-fuzz` gives every target a short run of mutated seeds, the same ones each time;
//! `cargo run -p streamkeeper-fuzz -- sql --seconds 600` goes on with new ones. Both write an input that fails to a file
//! and print the command that runs it again.

mod failure;
mod mutate;
mod seeds;
mod targets;

pub use failure::Failure;
pub use mutate::Mutator;
pub use targets::{TARGETS, Target, target};
