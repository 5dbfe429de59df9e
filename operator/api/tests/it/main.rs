//! StreamJobs from the outside: files with faults, the CRDs' schema, defaults.
#![allow(clippy::unwrap_used)]

mod defaults;
mod faults;
mod meaning;
mod schema;
mod text;
