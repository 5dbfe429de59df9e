//! Manifests, restore and log, from outside.
#![allow(clippy::unwrap_used)]

mod log;
mod manifest;
mod restore;
mod snapshots;
