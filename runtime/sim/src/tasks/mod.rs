//! The simulated job: sources that get their splits dealt out, keyed counters, and a sink that commits in two phases.
//!
//! Not the operators of the real engine, but a model of what the JobManager sees of them: alignment, snapshots with
//! shared files, commits on notification, the final checkpoint.

mod counter;
mod dataflow;
pub(crate) mod graph;
mod link;
mod source;
mod split_coordinator;

use serde::{Deserialize, Serialize};

pub(crate) use counter::Counter;
pub(crate) use dataflow::{Dataflow, Element};
pub(crate) use link::TaskLink;
pub(crate) use source::Source;
pub(crate) use split_coordinator::SplitCoordinator;

pub(crate) const SPLITS: u32 = 3;
pub(crate) const RECORDS_PER_SPLIT: u32 = 40;
pub(crate) const KEYS: u32 = 8;

/// What reaches the outside: a record, its key, and how many of the key there were up to it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Row {
    pub split: u32,
    pub position: u32,
    pub key: u32,
    pub count: u32,
}
