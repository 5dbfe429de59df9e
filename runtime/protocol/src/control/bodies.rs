//! Bodies of the messages, as JSON.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize, de::DeserializeOwned};
use streamkeeper_types::{
    AttemptId, CheckpointId, Error, Generation, OperatorId, Result, SubtaskId, snapshot::KeyedHandle,
};

/// What a TaskManager plans a job from. Planning is deterministic, so all of them and the JobManager have the same graph.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobProgram {
    /// The StreamJob's YAML, with what it refers to.
    pub manifest: String,
    /// Where that was read from: relative paths in the program resolve from its folder.
    pub path: String,
    /// URI or path of the checkpoint storage.
    pub storage: String,
}

/// The tasks of one run that one TaskManager is to start, and where all the others are.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Deployment {
    pub generation: Generation,
    /// Counts the deployments of a reign; part of every attempt's id.
    pub number: u32,
    pub parallelism: u32,
    pub max_parallelism: u32,
    pub tasks: Vec<TaskDeployment>,
    /// Every subtask of the job.
    pub hosts: Vec<Host>,
}

/// Where a subtask runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Host {
    pub subtask: SubtaskId,
    pub task_manager: String,
    /// Of its data plane.
    pub address: String,
}

/// One attempt, and what its operators are restored from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TaskDeployment {
    pub attempt: AttemptId,
    pub restore: Vec<RestoreOfOperator>,
}

/// What one operator of a task is restored from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RestoreOfOperator {
    pub operator: OperatorId,
    /// `None` on a first start (B81).
    pub from: Option<CheckpointId>,
    pub lists: BTreeMap<String, Vec<Vec<u8>>>,
    pub keyed: Vec<KeyedHandle>,
    /// The operator had finished in all subtasks (F3).
    pub finished: bool,
    /// Whether columns that the job does not have any more may be dropped.
    pub may_drop: bool,
}

/// The bytes of a body.
///
/// # Errors
/// `INTERNAL`: every body can be written as JSON.
pub fn encode<T: Serialize>(body: &T) -> Result<Vec<u8>> {
    serde_json::to_vec(body).map_err(|error| Error::internal(format!("a control message cannot be encoded: {error}")))
}

/// Reads a body.
///
/// # Errors
/// `PEER_REFUSED` for bytes that are no such body: the peer speaks another protocol.
pub fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Result<T> {
    serde_json::from_slice(bytes).map_err(|error| {
        Error::new(streamkeeper_types::Code::PeerRefused, format!("a control message cannot be read: {error}"))
            .way_out("run the same version of streamkeeper in all processes of a job")
    })
}
