//! JobManagers and TaskManagers as processes of a test, each with a log of its own.

use std::{
    fs::{self, OpenOptions},
    net::TcpListener,
    path::PathBuf,
    process::{Child, Command, ExitStatus, Stdio},
    time::{Duration, Instant},
};

use crate::{
    example::{BINARY, Example},
    namespaces::Namespaces,
};

/// How long anything may take that is waited for.
const PATIENCE: Duration = Duration::from_secs(120);

/// What a cluster is made of.
pub struct Shape {
    pub job_managers: usize,
    pub task_managers: usize,
    /// Of each TaskManager.
    pub slots: u32,
    /// More arguments of every process.
    pub arguments: Vec<String>,
    /// Each process in a network namespace of its own; `None`: all on loopback.
    pub network: Option<Namespaces>,
}

impl Shape {
    pub fn new(job_managers: usize, task_managers: usize) -> Self {
        Self { job_managers, task_managers, slots: 1, arguments: Vec::new(), network: None }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    JobManager(usize),
    TaskManager(usize),
}

/// The example, its JobManagers and its TaskManagers. Nothing outlives it; of a failing test the folder stays.
pub struct Cluster {
    pub example: Example,
    shape: Shape,
    /// Addresses of the JobManagers.
    addresses: Vec<String>,
    job_managers: Vec<Child>,
    task_managers: Vec<Child>,
}

impl Cluster {
    /// Starts the job with so many rows per second.
    pub fn start(copies: u32, rate: u32, shape: Shape) -> Self {
        let example = Example::new(copies);
        example.edit_job("'format' = 'raw'", &format!("'format' = 'raw', 'scan.rate-limit' = '{rate}'"));
        // Pauses that grow with each failure would take up the test's time.
        let restart = "  parallelism: 2\n  restart: { initialDelay: 50ms, maxDelay: 500ms }\n";
        example.edit_job("  parallelism: 2\n", restart);
        fs::create_dir(example.folder.path().join("logs")).unwrap();
        let address =
            |index| shape.network.as_ref().map_or_else(free_address, |all| format!("{}:6123", all.address(index)));
        let addresses = (0..shape.job_managers).map(address).collect();
        let mut cluster = Self { example, shape, addresses, job_managers: Vec::new(), task_managers: Vec::new() };
        for index in 0..cluster.shape.job_managers {
            let process = cluster.spawn(Role::JobManager(index));
            cluster.job_managers.push(process);
        }
        for index in 0..cluster.shape.task_managers {
            let process = cluster.spawn(Role::TaskManager(index));
            cluster.task_managers.push(process);
        }
        cluster
    }

    /// Starts a process that was killed, or has ended.
    pub fn restart(&mut self, role: Role) {
        self.kill(role);
        let process = self.spawn(role);
        *self.process(role) = process;
    }

    /// SIGKILL.
    pub fn kill(&mut self, role: Role) {
        // It may have ended by itself.
        let _ = self.process(role).kill();
        self.process(role).wait().unwrap();
    }

    pub fn freeze(&mut self, role: Role) {
        self.signal(role, "-STOP");
    }

    pub fn thaw(&mut self, role: Role) {
        self.signal(role, "-CONT");
    }

    /// SIGTERM.
    pub fn terminate(&mut self, role: Role) {
        self.signal(role, "-TERM");
    }

    /// Takes a process off the network; it goes on running.
    pub fn cut_off(&self, role: Role) {
        self.shape.network.as_ref().unwrap().cut_off(self.place(role));
    }

    pub fn join(&self, role: Role) {
        self.shape.network.as_ref().unwrap().join(self.place(role));
    }

    /// More arguments of the processes that are started from now on.
    pub fn set_arguments(&mut self, arguments: Vec<String>) {
        self.shape.arguments = arguments;
    }

    /// Waits until a process has ended.
    pub fn end_of(&mut self, role: Role) -> ExitStatus {
        self.wait_for("a process's end", |cluster| cluster.process(role).try_wait().unwrap())
    }

    /// What the processes of this role have logged, one after the other.
    pub fn log(&self, role: Role) -> String {
        fs::read_to_string(self.log_file(role)).unwrap_or_default()
    }

    /// The newest checkpoint that counts.
    pub fn checkpoint(&self) -> u64 {
        let folder = self.state_folder();
        let Ok(entries) = fs::read_dir(folder) else { return 0 };
        let complete = entries.flatten().filter(|entry| entry.path().join("_metadata").exists());
        let id = |name: &str| name.strip_prefix("chk-").and_then(|id| id.parse().ok());
        complete.filter_map(|entry| id(&entry.file_name().to_string_lossy())).max().unwrap_or(0)
    }

    /// Waits for a checkpoint that did not count before.
    pub fn next_checkpoint(&mut self) {
        let before = self.checkpoint();
        self.wait_for("a checkpoint", |cluster| (cluster.checkpoint() > before).then_some(()));
    }

    /// Highest number of a reign that has begun: there is more of it than its claim.
    pub fn generation(&self) -> u64 {
        let Ok(entries) = fs::read_dir(self.state_folder().join("log")) else { return 0 };
        let begun = entries.flatten().filter(|entry| fs::read_dir(entry.path()).is_ok_and(|files| files.count() > 1));
        begun.filter_map(|entry| entry.file_name().to_string_lossy().parse().ok()).max().unwrap_or(0)
    }

    pub fn state_folder(&self) -> PathBuf {
        self.example.folder.path().join(".streamkeeper/default/api-hits")
    }

    /// Looks until there is an answer: nothing tells a process from outside what others have done.
    pub fn wait_for<T>(&mut self, what: &str, mut answer: impl FnMut(&mut Self) -> Option<T>) -> T {
        let begun = Instant::now();
        loop {
            if let Some(answer) = answer(self) {
                return answer;
            }
            assert!(begun.elapsed() < PATIENCE, "waiting for {what} takes too long");
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Whether a JobManager ended: the job is at its end.
    pub fn has_finished(&mut self) -> bool {
        self.job_managers.iter_mut().any(|process| {
            let status = process.try_wait().unwrap();
            assert!(status.is_none_or(|status| status.success()), "a JobManager ended with {status:?}");
            status.is_some()
        })
    }

    /// Waits for the end and compares.
    pub fn finish(mut self) {
        self.wait_for("the end of the job", |cluster| cluster.has_finished().then_some(()));
        let result = self.example.result();
        assert_eq!(result.len(), self.example.expected.len(), "number of rows");
        assert!(result == self.example.expected, "rows differ");
    }

    fn process(&mut self, role: Role) -> &mut Child {
        match role {
            Role::JobManager(index) => &mut self.job_managers[index],
            Role::TaskManager(index) => &mut self.task_managers[index],
        }
    }

    fn signal(&mut self, role: Role, signal: &str) {
        let id = self.process(role).id().to_string();
        let status = Command::new("kill").args([signal, &id]).status().unwrap();
        assert!(status.success(), "kill {signal}");
    }

    /// Number of the process in the network.
    fn place(&self, role: Role) -> usize {
        match role {
            Role::JobManager(index) => index,
            Role::TaskManager(index) => self.shape.job_managers + index,
        }
    }

    fn log_file(&self, role: Role) -> PathBuf {
        let name = match role {
            Role::JobManager(index) => format!("jobmanager-{index}.log"),
            Role::TaskManager(index) => format!("taskmanager-{index}.log"),
        };
        self.example.folder.path().join("logs").join(name)
    }

    fn spawn(&self, role: Role) -> Child {
        let own = self.shape.network.as_ref().map(|network| network.address(self.place(role)));
        let mut arguments: Vec<String> = match role {
            Role::JobManager(index) => {
                let job = self.example.job().display().to_string();
                let listen = self.addresses[index].clone();
                ["jobmanager", "--job", &job, "--listen", &listen, "--least-parallelism", "1"].map(str::to_owned).into()
            }
            Role::TaskManager(_) => {
                let (leaders, slots) = (self.addresses.join(","), self.shape.slots.to_string());
                let listen = format!("{}:0", own.as_deref().unwrap_or("127.0.0.1"));
                ["taskmanager", "--jobmanager", &leaders, "--slots", &slots, "--data-listen", &listen]
                    .map(str::to_owned)
                    .into()
            }
        };
        arguments.extend(["--log".to_owned(), "info".to_owned()]);
        arguments.extend(self.shape.arguments.iter().cloned());
        let mut command = match &self.shape.network {
            Some(network) => network.command(self.place(role), BINARY),
            None => Command::new(BINARY),
        };
        let log = OpenOptions::new().create(true).append(true).open(self.log_file(role)).unwrap();
        command.args(arguments).stdin(Stdio::null()).stdout(log.try_clone().unwrap()).stderr(log);
        command.spawn().unwrap()
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        for process in self.job_managers.iter_mut().chain(&mut self.task_managers) {
            let _ = process.kill();
            let _ = process.wait();
        }
        if std::thread::panicking() {
            self.example.folder.disable_cleanup(true);
            eprintln!("job, state, output and logs stay in {}", self.example.folder.path().display());
        }
    }
}

/// A port that was free just now. Another process may take it; then its JobManager does not start, and the test says so.
fn free_address() -> String {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string()
}
