//! JobManagers and TaskManagers as processes over TCP, killed and frozen at random: the files they leave in the end are
//! byte for byte those of an undisturbed run, after sorting.

use std::{
    net::TcpListener,
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use rand::{Rng, SeedableRng, rngs::StdRng};

use crate::example::{BINARY, Example};

/// How long a job of a few seconds may take with all that is done to it.
const PATIENCE: Duration = Duration::from_secs(120);

/// A process that does not outlive its test.
struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Process {
    fn start(arguments: &[String]) -> Self {
        let mut command = Command::new(BINARY);
        command.args(arguments).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        Self(command.spawn().unwrap())
    }

    fn signal(&self, signal: &str) {
        let status = Command::new("kill").args([signal, &self.0.id().to_string()]).status().unwrap();
        assert!(status.success(), "kill {signal}");
    }
}

/// The example, its JobManagers and its TaskManagers.
struct Cluster {
    example: Example,
    job_managers: Vec<(String, Process)>,
    task_managers: Vec<Process>,
    slots: u32,
}

impl Cluster {
    fn start(copies: u32, rate: u32, job_managers: usize, task_managers: usize, slots: u32) -> Self {
        let example = Example::new(copies);
        example.edit_job("'format' = 'raw'", &format!("'format' = 'raw', 'scan.rate-limit' = '{rate}'"));
        let mut cluster = Self { example, job_managers: Vec::new(), task_managers: Vec::new(), slots };
        for _ in 0..job_managers {
            let address = free_address();
            let process = cluster.job_manager(&address);
            cluster.job_managers.push((address, process));
        }
        for _ in 0..task_managers {
            let process = cluster.task_manager();
            cluster.task_managers.push(process);
        }
        cluster
    }

    fn job_manager(&self, address: &str) -> Process {
        let job = self.example.job().display().to_string();
        let arguments = ["jobmanager", "--job", &job, "--listen", address, "--least-parallelism", "1"];
        Process::start(&arguments.map(str::to_owned))
    }

    fn task_manager(&self) -> Process {
        let addresses: Vec<&str> = self.job_managers.iter().map(|(address, _)| address.as_str()).collect();
        let (addresses, slots) = (addresses.join(","), self.slots.to_string());
        let arguments = ["taskmanager", "--jobmanager", &addresses, "--slots", &slots];
        Process::start(&arguments.map(str::to_owned))
    }

    /// Whether a JobManager ended: the job is at its end.
    fn has_finished(&mut self) -> bool {
        self.job_managers.iter_mut().any(|(_, process)| {
            let status = process.0.try_wait().unwrap();
            assert!(status.is_none_or(|status| status.success()), "a JobManager ended with {status:?}");
            status.is_some()
        })
    }

    fn replace_job_manager(&mut self, index: usize) {
        let address = self.job_managers[index].0.clone();
        drop(self.job_managers.remove(index));
        let process = self.job_manager(&address);
        self.job_managers.insert(index, (address, process));
    }

    fn replace_task_manager(&mut self, index: usize) {
        drop(self.task_managers.remove(index));
        let process = self.task_manager();
        self.task_managers.insert(index, process);
    }

    /// Waits for the end and compares.
    fn finish(mut self) {
        let begun = Instant::now();
        while !self.has_finished() {
            assert!(begun.elapsed() < PATIENCE, "the job does not come to its end");
            // Nothing tells a process from outside that another has ended.
            std::thread::sleep(Duration::from_millis(50));
        }
        assert!(self.example.result() == self.example.expected, "rows differ");
    }
}

/// A port that was free just now. Another process may take it; then its JobManager does not start, and the test says so.
fn free_address() -> String {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string()
}

#[test]
fn a_job_spread_over_two_task_managers_counts_like_one_process() {
    Cluster::start(2, 1_000_000, 1, 2, 1).finish();
}

#[test]
fn killed_and_frozen_processes_lose_and_double_nothing() {
    let mut random = StdRng::seed_from_u64(4);
    let mut cluster = Cluster::start(12, 20_000, 2, 3, 1);
    for _ in 0..14 {
        // The instant is what is random here; nothing waits for a state.
        std::thread::sleep(Duration::from_millis(random.random_range(100..1_500)));
        if cluster.has_finished() {
            break;
        }
        let (manager, leader) = (random.random_range(0..3), random.random_range(0..2));
        match random.random_range(0..10) {
            0..4 => cluster.replace_task_manager(manager),
            4..6 => cluster.replace_job_manager(leader),
            6 => {
                cluster.replace_task_manager(manager);
                cluster.replace_job_manager(leader);
            }
            7 | 8 => {
                let frozen = &cluster.task_managers[manager];
                frozen.signal("-STOP");
                std::thread::sleep(Duration::from_millis(random.random_range(500..4_000)));
                frozen.signal("-CONT");
            }
            _ => {
                let frozen = &cluster.job_managers[leader].1;
                frozen.signal("-STOP");
                std::thread::sleep(Duration::from_millis(random.random_range(500..4_000)));
                frozen.signal("-CONT");
            }
        }
    }
    cluster.finish();
}
