//! Operators against naive computations in memory, with restarts at other parallelisms in the middle.
#![allow(clippy::unwrap_used, reason = "tests")]

mod dedup;
mod driver;
mod group;
mod lag;
mod project;
mod table;
mod window;
