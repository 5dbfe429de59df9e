//! The command line as a person uses it: the real binary, real files, real kills.
#![allow(clippy::unwrap_used, clippy::panic)]

mod bad_input;
mod changed_sql;
mod chaos;
mod cluster;
mod commands;
mod crash_loop;
mod example;
mod full_disk;
mod job_client;
mod namespaces;
mod oracles;
mod processes;
mod random_queries;
mod scripted_server;
mod sql_cases;
mod tiny_disk;
