//! One task at a time, driven by hand through its channels and its mailbox.

#![allow(clippy::unwrap_used)]

mod bench;
mod cut;
mod end;
mod opening;
