//! The gate as a task sees it.
#![allow(clippy::unwrap_used)]

mod opening;
