//! Jobs whose TaskManagers speak TCP, as threads of this process, and TaskManagers under a JobManager by hand.

use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::JoinHandle,
    time::Duration,
};

use streamkeeper_jobmanager::{
    engine::Bounds,
    rpc::{ControlOptions, RemoteTaskManagers},
    shell::{self, Inbox, TaskManagers},
};
use streamkeeper_protocol::{
    FromTask, TaskReport, TaskState, ToTask,
    control::{Command, Deployment, Host, JobProgram, TaskDeployment, encode, to_task_manager as to},
};
use streamkeeper_taskmanager::{
    local::{JobHandle, JobOutcome},
    remote::{Prepare, Prepared, RemoteOptions, serve},
};
use streamkeeper_types::{AttemptId, Code, Error, Generation, Result, SubtaskId, VertexId};

use crate::{
    leader::{Heard, Leader},
    world::{Fault, Faults, Gate, LONG, World},
};

/// A TaskManager on a thread; leaves when dropped.
struct Worker {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<Result<()>>>,
}

impl Worker {
    fn start(world: &World, leader: SocketAddr, slots: u32) -> Self {
        let job = world.job(1);
        let prepare: Prepare = Arc::new(move |_| {
            let job = job.clone();
            Ok(Prepared {
                namespace: job.job.namespace,
                name: job.job.name,
                graph: job.job.graph,
                storage: job.job.storage,
                backend: job.backend,
                clock: job.job.clock,
                tasks: job.tasks,
            })
        });
        let options = RemoteOptions {
            job_managers: vec![leader.to_string()],
            token: String::new(),
            tls: None,
            slots,
            data_listen: "127.0.0.1:0".parse().unwrap(),
            advertise: None,
            metrics: None,
            alive_every: Duration::from_millis(50),
            silence: LONG,
            retry: Duration::from_millis(5),
        };
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let thread = std::thread::spawn(move || serve(&options, &prepare, &stopped));
        Self { stop, thread: Some(thread) }
    }

    fn end(&mut self) -> Result<()> {
        self.thread.take().map_or(Ok(()), |thread| thread.join().unwrap())
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::SeqCst);
        // A failing test says enough.
        let _ = self.end();
    }
}

/// Leads the job of the world; TaskManagers connect to the address.
fn lead(world: &World, bounds: Bounds) -> (JobHandle, SocketAddr) {
    let program = JobProgram { manifest: String::new(), path: String::new(), storage: String::new() };
    let (inbox, mail) = Inbox::new();
    let options = ControlOptions { silence: LONG, ..ControlOptions::new("127.0.0.1:0".parse().unwrap()) };
    let managers = Arc::new(RemoteTaskManagers::listen(options, &program, &inbox).unwrap());
    let address = managers.address();
    let mut job = world.job(bounds.target).job;
    job.bounds = bounds;
    (shell::start(job, managers as Arc<dyn TaskManagers>, inbox, mail, || {}).unwrap(), address)
}

#[test]
fn a_job_over_two_task_managers_counts_each_row_once() {
    let world = World::new(5, 2_000);
    let (job, address) = lead(&world, Bounds::exactly(4));
    let _workers = [Worker::start(&world, address, 2), Worker::start(&world, address, 2)];
    assert_eq!(job.join().unwrap(), JobOutcome::Finished);
    world.check_exactly_once();
}

#[test]
fn a_task_manager_that_leaves_costs_nothing_and_the_others_run_on_in_their_processes() {
    let mut world = World::new(5, 2_000);
    world.numbers.gate = Gate::default();
    let (job, address) = lead(&world, Bounds { least: 1, target: 2 });
    let stays = Worker::start(&world, address, 1);
    let leaves = Worker::start(&world, address, 1);
    job.wait_until(LONG, |status| status.checkpoints.completed > 0);
    drop(leaves);
    job.wait_until(LONG, |status| status.restarts > 0);
    world.numbers.gate.open();
    let board = job.board().clone();
    assert_eq!(job.join().unwrap(), JobOutcome::Finished);
    let error = board.read().last_error.unwrap();
    assert!(matches!(error.code, Code::TaskManagerLost | Code::ConnectionLost), "{error}");
    assert!(!stays.thread.as_ref().unwrap().is_finished());
    world.check_exactly_once();
}

#[test]
fn a_failing_task_restarts_the_job_on_the_same_task_managers() {
    let world = World { faults: Faults::after(60, Fault::Error), ..World::new(5, 1_000) };
    let (job, address) = lead(&world, Bounds::exactly(2));
    let _workers = [Worker::start(&world, address, 1), Worker::start(&world, address, 1)];
    let board = job.board().clone();
    assert_eq!(job.join().unwrap(), JobOutcome::Finished);
    assert!(board.read().restarts >= 1);
    world.check_exactly_once();
}

#[test]
fn a_new_leader_finds_the_task_managers_of_the_old_one_free() {
    let mut world = World::new(5, 2_000);
    world.numbers.gate = Gate::default();
    let (first, address) = lead(&world, Bounds::exactly(1));
    let worker = Worker::start(&world, address, 1);
    first.wait_until(LONG, |status| status.checkpoints.completed > 0);
    first.abandon();
    drop(worker);
    let (second, address) = lead(&world, Bounds::exactly(1));
    let _worker = Worker::start(&world, address, 1);
    world.numbers.gate.open();
    assert_eq!(second.join().unwrap(), JobOutcome::Finished);
    world.check_exactly_once();
}

/// Both vertices of the job at parallelism 1, all at the TaskManager of this name.
fn deployment(generation: u64, number: u32, name: &str, address: &str) -> Deployment {
    let generation = Generation(generation);
    let subtask = |vertex| SubtaskId { vertex: VertexId(vertex), index: 0 };
    let attempt = |vertex| AttemptId { generation, subtask: subtask(vertex), number };
    let task = |vertex| TaskDeployment { attempt: attempt(vertex), restore: Vec::new() };
    let host = |vertex| Host { subtask: subtask(vertex), task_manager: name.to_owned(), address: address.to_owned() };
    Deployment {
        generation,
        number,
        parallelism: 1,
        max_parallelism: 128,
        tasks: vec![task(0), task(1)],
        hosts: vec![host(0), host(1)],
    }
}

/// The next state of an attempt that is not `Initializing`.
fn next_state(leader: &Leader, generation: u64) -> TaskState {
    loop {
        let Heard::Report(FromTask { attempt, report: TaskReport::State(state) }) = leader.hear() else { continue };
        if attempt.generation == Generation(generation) && state != TaskState::Initializing {
            return state;
        }
    }
}

#[test]
fn r25_what_a_leader_of_an_older_generation_deploys_is_not_started() {
    let mut world = World::new(1, 100);
    world.numbers.gate = Gate::default();
    let leader = Leader::start();
    let _worker = Worker::start(&world, leader.address, 1);
    let register = leader.welcome();
    leader.deploy(&deployment(5, 0, &register.task_manager, &register.data_address));
    assert_eq!(next_state(&leader, 5), TaskState::Running);
    leader.hang_up();
    // As a leader would that was frozen while another led.
    let again = leader.welcome();
    assert_eq!(again.task_manager, register.task_manager, "the process is the same");
    leader.deploy(&deployment(4, 9, &again.task_manager, &again.data_address));
    let TaskState::Failed(error) = next_state(&leader, 4) else { panic!("it was started") };
    assert_eq!(error.code, Code::Fenced, "{error}");
    leader.deploy(&deployment(5, 1, &again.task_manager, &again.data_address));
    assert_eq!(next_state(&leader, 5), TaskState::Running);
}

#[test]
fn b7_a_command_for_an_earlier_attempt_changes_nothing() {
    let mut world = World::new(1, 100);
    world.numbers.gate = Gate::default();
    let leader = Leader::start();
    let _worker = Worker::start(&world, leader.address, 1);
    let register = leader.welcome();
    let (name, address) = (&register.task_manager, &register.data_address);
    leader.deploy(&deployment(5, 1, name, address));
    let earlier = deployment(5, 0, name, address);
    let cancel = |attempt: AttemptId| {
        let (attempt, message) = (encode(&attempt).unwrap().into(), encode(&ToTask::Cancel).unwrap().into());
        leader.say(to::Message::Command(Command { attempt, message }));
    };
    earlier.tasks.iter().for_each(|task| cancel(task.attempt));
    assert_eq!([next_state(&leader, 5), next_state(&leader, 5)], [TaskState::Running, TaskState::Running]);
    let mut current = deployment(5, 1, name, address).tasks;
    // The first end that is heard of is that of the one that was meant.
    let meant = current.remove(0).attempt;
    cancel(meant);
    let ended = loop {
        let Heard::Report(FromTask { attempt, report: TaskReport::State(state) }) = leader.hear() else { continue };
        if state.is_terminal() {
            break (attempt, state);
        }
    };
    assert_eq!(ended, (meant, TaskState::Cancelled));
}

#[test]
fn a_refused_task_manager_ends_with_what_the_leader_says() {
    let world = World::new(1, 1);
    let leader = Leader::start();
    let mut worker = Worker::start(&world, leader.address, 1);
    while !matches!(leader.hear(), Heard::Registered(_)) {}
    let refusal = Error::new(Code::PeerRefused, "speaks another protocol").way_out("run the same version");
    leader.say(to::Message::Refused(encode(&refusal).unwrap().into()));
    let error = worker.end().unwrap_err();
    assert!(error.code == Code::PeerRefused && error.cause.contains("another protocol"), "{error}");
    assert!(error.way_out.is_some());
}

#[test]
fn a_task_manager_waits_for_a_leader_that_comes_later() {
    let world = World::new(2, 100);
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let worker = Worker::start(&world, free, 1);
    assert!(!worker.thread.as_ref().unwrap().is_finished());
    drop(worker);
    assert!(!world.local.path().join("tm").exists(), "nobody deployed anything");
}
