//! What can be asked on the command line.

mod job;
mod tls;

use std::{net::SocketAddr, path::PathBuf};

use clap::{Args, Parser, Subcommand, ValueEnum};

pub use job::{Connection, Job, JobCommand, Waiting, Watch};
pub use tls::Tls;

/// Exactly-once, stateful stream processing: the same StreamJob on a laptop and on Kubernetes.
#[derive(Debug, Parser)]
#[command(name = "streamkeeper", version, max_term_width = 100, propagate_version = true)]
pub struct Arguments {
    #[command(flatten)]
    pub global: Global,
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Debug, Args)]
pub struct Global {
    /// How results are printed.
    #[arg(long, global = true, value_enum, default_value_t = Output::Text, value_name = "FORMAT")]
    pub output: Output,
    /// Log to standard error: error, warn, info, debug or trace.
    #[arg(long, global = true, value_name = "LEVEL", default_value = "warn")]
    pub log: tracing::Level,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Output {
    /// For people.
    Text,
    /// For scripts: one JSON document, or one a line while something runs.
    Json,
    /// `plan` only: Graphviz.
    Dot,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run a StreamJob on this machine, exactly once.
    #[command(after_help = RUN_EXAMPLES)]
    Run(Run),
    /// Show the dataflow of a StreamJob: operators, keys, state, changelog or insert-only, ids.
    #[command(after_help = PLAN_EXAMPLES)]
    Plan(Plan),
    /// Run the cases of a test file: straight, with a crash in the middle, and restored at another parallelism.
    #[command(after_help = TEST_EXAMPLES)]
    Test(Test),
    /// Look into checkpoints and savepoints.
    #[command(subcommand)]
    State(State),
    /// Lead a job: schedule its tasks on TaskManagers, checkpoint, recover.
    #[command(name = "jobmanager", after_help = JOBMANAGER_EXAMPLES)]
    JobManager(JobManager),
    /// Run tasks for a JobManager.
    #[command(name = "taskmanager", after_help = TASKMANAGER_EXAMPLES)]
    TaskManager(TaskManager),
    /// Ask a running job, or tell it what to do, over REST.
    #[command(after_help = job::EXAMPLES)]
    Job(Job),
}

const JOBMANAGER_EXAMPLES: &str = "Examples:
  streamkeeper jobmanager --job job.yaml                               # TaskManagers connect to 127.0.0.1:6123
  streamkeeper jobmanager --job job.yaml --listen 0.0.0.0:6123 --token-file /run/secrets/token";
const TASKMANAGER_EXAMPLES: &str = "Examples:
  streamkeeper taskmanager --jobmanager 127.0.0.1:6123 --slots 2       # as many as wanted, on as many hosts
  streamkeeper taskmanager --jobmanager jm-0:6123,jm-1:6123 --data-listen 0.0.0.0:6121 --advertise 10.0.0.7";
const RUN_EXAMPLES: &str = "Examples:
  streamkeeper run examples/api-hits.yaml                    # again after Ctrl-C or a crash: goes on where it was
  streamkeeper run examples/api-hits.yaml --parallelism 3    # the same state over other key-group ranges
  streamkeeper run job.yaml --restore savepoints/friday      # from a savepoint, once; newer checkpoints win later
  streamkeeper run job.yaml --discard-state                  # forget existing state, on purpose";
const PLAN_EXAMPLES: &str = "Examples:
  streamkeeper plan examples/api-hits.yaml
  streamkeeper plan examples/api-hits.yaml --output dot | dot -Tsvg > plan.svg
  streamkeeper plan job.yaml --against http://127.0.0.1:8081      # what an edit keeps and drops of the running job
  streamkeeper plan job.yaml --against s3://state/job/savepoints/friday";
const TEST_EXAMPLES: &str =
    "A case has, for each source, `input` (lines) or `generate` (random rows of a seed), and for each sink \
`output` (rows) or `oracle` (a SELECT in DataFusion's dialect over the inputs). e2e/sql/README.md shows each field.

Examples:
  streamkeeper test examples/api-hits.test.yaml
  streamkeeper test examples/api-hits.test.yaml --case late --output json";
const STATE_EXAMPLES: &str = "Examples:
  streamkeeper state list examples/.streamkeeper/default/api-hits             # all snapshots of a job
  streamkeeper state list examples/.streamkeeper/default/api-hits/chk-7
  streamkeeper state query savepoints/friday 'SELECT * FROM api_hits LIMIT 10'";

#[derive(Debug, Args)]
pub struct Run {
    /// File with the StreamJob; other objects in it are named and left aside.
    pub job: PathBuf,
    /// Run with this parallelism instead of the file's.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=32_768))]
    pub parallelism: Option<u32>,
    /// Start from this savepoint or checkpoint: a path or URL, or a name below the job's `savepoints` folder.
    #[arg(long, value_name = "SNAPSHOT", conflicts_with = "discard_state")]
    pub restore: Option<String>,
    /// Start empty although state exists. Savepoints stay on disk; old checkpoints are deleted once new ones complete.
    #[arg(long)]
    pub discard_state: bool,
    /// Let a restore drop state that the job no longer has, an aggregate's say; `plan` shows what that would be.
    #[arg(long)]
    pub allow_dropped_state: bool,
    /// Keep state here instead of `.streamkeeper` beside the file.
    #[arg(long, value_name = "URI")]
    pub storage: Option<String>,
    /// rocksdb or memory, instead of the file's.
    #[arg(long, value_name = "BACKEND")]
    pub backend: Option<Backend>,
    /// Memory for state, network and batches together, as in 2GiB [default: a quarter of the machine, at most 4GiB].
    #[arg(long, value_name = "SIZE")]
    pub memory: Option<String>,
    /// Take a savepoint with this name when stopped by Ctrl-C [default: stop-<time>].
    #[arg(long, value_name = "NAME", value_parser = savepoint_name)]
    pub savepoint: Option<String>,
    /// Print no progress.
    #[arg(long, short)]
    pub quiet: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Backend {
    Rocksdb,
    Memory,
}

#[derive(Debug, Args)]
pub struct Plan {
    /// File with the StreamJob.
    pub job: PathBuf,
    /// Show instead what the job would keep, migrate, begin anew and drop of this state: a snapshot's folder or URL, a name
    /// below the job's `savepoints` folder, or the REST URL of the running job, whose newest snapshot counts.
    #[arg(long, value_name = "SNAPSHOT|URL")]
    pub against: Option<String>,
    /// A file with the token that the JobManager asks for.
    #[arg(long, value_name = "FILE", requires = "against")]
    pub token_file: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub struct Test {
    /// File with the cases.
    pub cases: PathBuf,
    /// Only cases whose name contains this.
    #[arg(long, value_name = "TEXT")]
    pub case: Option<String>,
}

#[derive(Debug, Subcommand)]
pub enum State {
    /// What a checkpoint or savepoint holds, or which ones a job's folder has.
    #[command(after_help = STATE_EXAMPLES)]
    List {
        /// A job's folder, or a `chk-N` or savepoint folder in it.
        path: PathBuf,
    },
    /// Ask a canonical savepoint with SQL (DataFusion's dialect); its tables are those that `state list` names.
    #[command(after_help = STATE_EXAMPLES)]
    Query {
        /// Folder of the savepoint.
        savepoint: PathBuf,
        /// One SELECT.
        sql: String,
    },
}

#[derive(Debug, Args)]
pub struct JobManager {
    /// The StreamJob.
    #[arg(long, value_name = "FILE")]
    pub job: PathBuf,
    /// Where TaskManagers connect.
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:6123")]
    pub listen: SocketAddr,
    /// Where `streamkeeper job`, curl and Prometheus find the job, as in 127.0.0.1:8081; off unless given. With
    /// --token-file callers need the token as well, except for /healthz and /metrics.
    #[arg(long, value_name = "HOST:PORT")]
    pub rest: Option<SocketAddr>,
    /// Host by which others reach this process, if not the one it listens on.
    #[arg(long, value_name = "HOST")]
    pub advertise: Option<String>,
    /// A file with the secret that TaskManagers must show.
    #[arg(long, value_name = "FILE")]
    pub token_file: Option<PathBuf>,
    #[command(flatten)]
    pub tls: Tls,
    /// Instead of the file's parallelism.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub parallelism: Option<u32>,
    /// Run with fewer slots than the parallelism asks for, down to this many. By default the job waits.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub least_parallelism: Option<u32>,
    /// Checkpoint storage instead of the file's: a folder or URI.
    #[arg(long, value_name = "URI")]
    pub storage: Option<String>,
    /// Begin with this savepoint, a path, URL or name, once; newer checkpoints win later.
    #[arg(long, value_name = "SNAPSHOT", conflicts_with = "discard_state")]
    pub restore: Option<String>,
    /// Give existing state up.
    #[arg(long)]
    pub discard_state: bool,
    /// Go on although state of the snapshot would be dropped.
    #[arg(long)]
    pub allow_dropped_state: bool,
}

#[derive(Debug, Args)]
pub struct TaskManager {
    /// Where JobManagers listen; several separated by commas, of which one leads.
    #[arg(long, value_name = "HOST:PORT", value_delimiter = ',', required = true)]
    pub jobmanager: Vec<String>,
    /// Subtasks of each vertex that run here at once.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=4096))]
    pub slots: u32,
    /// Where other TaskManagers connect; port 0 is any free one.
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:0")]
    pub data_listen: SocketAddr,
    /// Where Prometheus finds /metrics, as in 127.0.0.1:9249; off unless given, so that several fit one machine.
    #[arg(long, value_name = "HOST:PORT")]
    pub metrics: Option<SocketAddr>,
    /// Host by which other TaskManagers reach this one, if not the one it listens on.
    #[arg(long, value_name = "HOST")]
    pub advertise: Option<String>,
    /// A file with the JobManager's secret.
    #[arg(long, value_name = "FILE")]
    pub token_file: Option<PathBuf>,
    #[command(flatten)]
    pub tls: Tls,
    /// Memory of this process, as in 4GiB; by default a quarter of the machine, at most 4 GiB.
    #[arg(long, value_name = "SIZE")]
    pub memory: Option<String>,
    /// Folder for working state; by default beside local checkpoints.
    #[arg(long, value_name = "FOLDER")]
    pub work_dir: Option<PathBuf>,
}

/// A savepoint's folder is named after it, and `state list` looks one folder deep.
fn savepoint_name(text: &str) -> Result<String, String> {
    let is_name = text.starts_with(|c: char| c.is_ascii_alphanumeric())
        && text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.'));
    if is_name {
        return Ok(text.to_owned());
    }
    Err("a name has letters, digits, `-`, `_` and `.`, and begins with a letter or digit".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_savepoint_name_is_one_folder() {
        assert!(["friday", "v1.2", "2026-01-01_a"].iter().all(|name| savepoint_name(name).is_ok()));
        assert!(["", "a/b", "..", "../x", ".hidden", "x y"].iter().all(|name| savepoint_name(name).is_err()));
    }
}
