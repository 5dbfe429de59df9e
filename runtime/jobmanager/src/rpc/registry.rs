//! Who is there, and which attempt runs where.

use std::collections::{BTreeMap, HashMap};

use streamkeeper_engine::Deployment;
use streamkeeper_protocol::{
    control::{self, Host, RestoreOfOperator, TaskDeployment},
    rest::{TaskManagerView, task_name},
};
use streamkeeper_state::DroppedState;
use streamkeeper_types::{AttemptId, Code, Error, Millis, Result, SubtaskId};

use super::placement::place;

/// A TaskManager's entry in the list, as people see it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Member<Outbox> {
    pub slots: u32,
    /// Of its data plane.
    pub address: String,
    pub outbox: Outbox,
    /// Of its program.
    pub version: String,
    pub connected_at: Millis,
    /// Tells a process's second connection from its first.
    pub connection: u64,
}

/// All TaskManagers of the job. `Outbox` is the way to one of them.
#[derive(Debug)]
pub(super) struct Registry<Outbox> {
    members: BTreeMap<String, Member<Outbox>>,
    running: HashMap<AttemptId, String>,
    /// TaskManager of each slot in the newest deployment.
    slots: Vec<String>,
}

impl<Outbox: Clone> Registry<Outbox> {
    pub(super) fn new() -> Self {
        Self { members: BTreeMap::new(), running: HashMap::new(), slots: Vec::new() }
    }

    /// Takes a TaskManager in. What ran on an earlier connection of it is lost, and returned.
    pub(super) fn join(&mut self, name: String, member: Member<Outbox>) -> Vec<AttemptId> {
        let lost = self.members.get(&name).map(|earlier| earlier.connection);
        let lost = lost.map_or_else(Vec::new, |connection| self.leave(&name, connection));
        self.members.insert(name, member);
        lost
    }

    /// A connection is over; returns the attempts that ran there.
    pub(super) fn leave(&mut self, name: &str, connection: u64) -> Vec<AttemptId> {
        if self.members.get(name).is_none_or(|member| member.connection != connection) {
            return Vec::new();
        }
        self.members.remove(name);
        let mut lost: Vec<AttemptId> =
            self.running.iter().filter(|(_, at)| *at == name).map(|(attempt, _)| *attempt).collect();
        lost.sort_unstable();
        self.running.retain(|_, at| at != name);
        lost
    }

    pub(super) fn total_slots(&self) -> u32 {
        self.members.values().map(|member| member.slots).sum()
    }

    /// Who is there, for people.
    pub(super) fn members(&self) -> Vec<TaskManagerView> {
        let mut tasks: BTreeMap<&String, Vec<SubtaskId>> = BTreeMap::new();
        for (attempt, name) in &self.running {
            tasks.entry(name).or_default().push(attempt.subtask);
        }
        let view = |(name, member): (&String, &Member<Outbox>)| {
            let mut own = tasks.remove(name).unwrap_or_default();
            own.sort_unstable();
            TaskManagerView {
                id: name.clone(),
                address: member.address.clone(),
                version: member.version.clone(),
                slots: member.slots,
                tasks: own.into_iter().map(task_name).collect(),
                connected_at: member.connected_at,
            }
        };
        self.members.iter().map(view).collect()
    }

    /// The way to whoever runs `attempt`.
    pub(super) fn route(&self, attempt: AttemptId) -> Option<(&String, &Member<Outbox>)> {
        self.members.get_key_value(self.running.get(&attempt)?)
    }

    /// The attempt has ended.
    pub(super) fn ended(&mut self, attempt: AttemptId) {
        self.running.remove(&attempt);
    }

    /// Divides a run among the TaskManagers: what each is told. From now on its attempts count as running there.
    ///
    /// # Errors
    /// `SLOTS_MISSING` if there is no room any more.
    pub(super) fn deploy(&mut self, run: Deployment) -> Result<Vec<(Outbox, control::Deployment)>> {
        let parallelism = run.graph.vertices.iter().map(|vertex| vertex.parallelism).max().unwrap_or(0);
        let room = self.members.iter().map(|(name, member)| (name.clone(), member.slots)).collect();
        let placed = place(parallelism, &room, &self.slots).ok_or_else(|| {
            let cause = format!("the run needs {parallelism} slots, and there are {}", self.total_slots());
            Error::new(Code::SlotsMissing, cause).way_out("start more TaskManagers, or lower the parallelism")
        })?;
        let Some(first) = run.tasks.first().map(|task| task.attempt) else { return Ok(Vec::new()) };
        let host = |subtask: SubtaskId| &placed[subtask.index as usize];
        let hosts: Vec<Host> = run
            .tasks
            .iter()
            .map(|task| {
                let name = host(task.attempt.subtask);
                let address = self.members[name].address.clone();
                Host { subtask: task.attempt.subtask, task_manager: name.clone(), address }
            })
            .collect();
        let mut parts: BTreeMap<&String, Vec<TaskDeployment>> = BTreeMap::new();
        for task in run.tasks {
            let restore = task.restore.into_iter().map(|(operator, restore)| RestoreOfOperator {
                operator,
                from: restore.lists.from,
                lists: restore.lists.lists,
                keyed: restore.keyed,
                finished: restore.finished,
                may_drop: restore.dropped == DroppedState::Allow,
            });
            let name = host(task.attempt.subtask);
            self.running.insert(task.attempt, name.clone());
            let part = TaskDeployment { attempt: task.attempt, restore: restore.collect() };
            parts.entry(name).or_default().push(part);
        }
        let told = parts.into_iter().map(|(name, tasks)| {
            let part = control::Deployment {
                generation: first.generation,
                number: first.number,
                parallelism,
                max_parallelism: run.graph.max_parallelism,
                tasks,
                hosts: hosts.clone(),
            };
            (self.members[name].outbox.clone(), part)
        });
        let told = told.collect();
        self.slots = placed;
        Ok(told)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::sync::Arc;

    use streamkeeper_engine::{JobGraph, Vertex};
    use streamkeeper_types::{Generation, VertexId};

    use super::*;

    fn member(connection: u64) -> Member<u64> {
        Member {
            slots: 2,
            address: format!("host:{connection}"),
            outbox: connection,
            version: "1".into(),
            connected_at: 7,
            connection,
        }
    }

    fn attempt(vertex: u32, index: u32) -> AttemptId {
        AttemptId { generation: Generation(1), subtask: SubtaskId { vertex: VertexId(vertex), index }, number: 0 }
    }

    /// A run of two vertices.
    fn run(parallelism: u32) -> Deployment {
        let vertex = |id, parallelism| Vertex { id: VertexId(id), name: "x".into(), nodes: Vec::new(), parallelism };
        let vertices = vec![vertex(0, parallelism), vertex(1, 1)];
        let tasks = vertices.iter().flat_map(|v| (0..v.parallelism).map(|index| attempt(v.id.0, index)));
        let tasks = tasks.map(|attempt| streamkeeper_engine::TaskDeployment { attempt, restore: BTreeMap::new() });
        let tasks = tasks.collect();
        Deployment { graph: Arc::new(JobGraph { vertices, edges: Vec::new(), max_parallelism: 128 }), tasks }
    }

    #[test]
    fn subtasks_of_one_slot_run_together_and_everybody_learns_where_all_are() {
        let mut registry = Registry::new();
        registry.join("a".into(), member(1));
        registry.join("b".into(), member(2));
        let told = registry.deploy(run(3)).unwrap();
        let attempts = |part: &control::Deployment| part.tasks.iter().map(|task| task.attempt).collect::<Vec<_>>();
        let parts: Vec<_> = told.iter().map(|(outbox, part)| (*outbox, attempts(part), part.hosts.len())).collect();
        assert_eq!(parts, [(1, vec![attempt(0, 0), attempt(0, 2), attempt(1, 0)], 4), (2, vec![attempt(0, 1)], 4)]);
        assert_eq!(registry.route(attempt(0, 1)).unwrap().0, "b");
        let members: Vec<_> = registry.members().into_iter().map(|member| (member.id, member.tasks)).collect();
        assert_eq!(members[0], ("a".into(), vec!["0/0".into(), "0/2".into(), "1/0".into()]));
        assert_eq!(members[1], ("b".into(), vec!["0/1".into()]));
    }

    #[test]
    fn what_ran_on_a_lost_task_manager_is_lost_and_nothing_else() {
        let mut registry = Registry::new();
        registry.join("a".into(), member(1));
        registry.join("b".into(), member(2));
        registry.deploy(run(4)).unwrap();
        assert_eq!(registry.leave("b", 1), [], "of another connection");
        assert_eq!(registry.leave("b", 2), [attempt(0, 1), attempt(0, 3)]);
        assert_eq!(registry.total_slots(), 2);
        assert!(registry.route(attempt(0, 1)).is_none() && registry.route(attempt(0, 0)).is_some());
        assert_eq!(registry.deploy(run(4)).unwrap_err().code, Code::SlotsMissing);
    }

    #[test]
    fn a_process_that_connects_again_has_lost_what_ran_before() {
        let mut registry = Registry::new();
        registry.join("a".into(), member(1));
        registry.deploy(run(1)).unwrap();
        registry.ended(attempt(1, 0));
        assert_eq!(registry.join("a".into(), member(2)), [attempt(0, 0)]);
        assert_eq!(registry.leave("a", 1), [], "the old connection's end comes late");
        assert_eq!(registry.total_slots(), 2);
    }
}
