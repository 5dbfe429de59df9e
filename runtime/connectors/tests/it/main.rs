//! Tests of the connectors through their public interface, as a task drives them.
#![allow(clippy::unwrap_used)]

mod bad_records;
mod damaged;
mod harness;
mod monitored;
mod parquet;
mod reading;
mod reference;
mod round_trip;
mod sink;
