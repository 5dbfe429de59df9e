//! From a snapshot and a job graph to the state of each subtask: a pure function, so that `plan`, a dry run and the
//! real restore cannot differ (D3, D4).

mod assign;
mod keyed;
mod lists;

use std::collections::BTreeMap;

pub use assign::assign;
use serde::{Deserialize, Serialize};
use streamkeeper_types::{OperatorId, SubtaskId, VertexId, snapshot::KeyedHandle};

/// A vertex of the job graph that is to run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RestoreVertex {
    pub vertex: VertexId,
    pub parallelism: u32,
    /// In chain order.
    pub operators: Vec<RestoreOperator>,
    /// Vertices that it reads from.
    pub inputs: Vec<VertexId>,
}

/// An operator that is to run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RestoreOperator {
    pub id: OperatorId,
    /// Looked up when the snapshot does not know `id`: what the operator was called before a user named it (B52).
    pub former_id: Option<OperatorId>,
    pub name: String,
}

/// Number of key groups that the job asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MaxParallelism {
    /// Computed from the parallelism; gives way to the snapshot's.
    Derived(u32),
    /// Said by the user; another one in the snapshot is refused.
    Set(u32),
}

/// What happens to state that no operator of the job takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DroppedState {
    Refuse,
    Allow,
}

/// Who gets what.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RestorePlan {
    /// Number of key groups that the job must run with.
    pub max_parallelism: u32,
    /// Names of operators that go on with their state, that begin empty, and whose state is given up.
    pub kept: Vec<String>,
    pub new: Vec<String>,
    pub dropped: Vec<String>,
    pub subtasks: BTreeMap<SubtaskId, SubtaskRestore>,
    /// State of split coordinators.
    pub coordinators: BTreeMap<OperatorId, Vec<u8>>,
}

/// What one subtask begins with. Crosses processes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SubtaskRestore {
    /// All operators of the chain finished before: run none of their code, pass on barriers and the end of data (F3).
    pub finished: bool,
    /// Operators of the chain that have state.
    pub operators: Vec<OperatorRestore>,
}

/// State of one operator for one subtask.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OperatorRestore {
    pub operator: OperatorId,
    /// One handle for each old subtask that held groups of ours, narrowed to them. Their ranges do not overlap.
    pub keyed: Vec<KeyedHandle>,
    /// Items of operator state by name. A name is there, maybe empty, whenever the snapshot knows it, so that
    /// «restored and empty» differs from «new» (B81).
    pub lists: BTreeMap<String, Vec<Vec<u8>>>,
}
