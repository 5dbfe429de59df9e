//! The gate as a task sees it, and the data plane over real sockets.
#![allow(clippy::unwrap_used, clippy::panic)]

mod batches;
mod codec;
mod credits;
mod faults;
mod greetings;
mod opening;
mod order;
mod proxy;
mod world;
