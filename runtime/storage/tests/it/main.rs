//! What every storage promises, checked on each kind.
#![allow(clippy::unwrap_used)]

mod contract;
mod crash;
mod file;
mod processes;
