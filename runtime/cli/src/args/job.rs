//! What can be asked of a running job.

use std::{path::PathBuf, time::Duration};

use clap::{Args, Subcommand, ValueEnum};
use streamkeeper_protocol::rest::SavepointFormat;
use streamkeeper_types::duration;

use super::savepoint_name;

pub(super) const EXAMPLES: &str = "Examples:
  streamkeeper job status --rest 127.0.0.1:8081                # the address of `streamkeeper jobmanager --rest`
  streamkeeper job top --watch                                 # who is busy, who waits for whom
  streamkeeper job rescale 4 --least 2                         # state moves with its key groups
  streamkeeper job stop --savepoint friday --rest https://streams.example.com --token-file token
  streamkeeper job checkpoints --output json | jq '.checkpoints[0]'

Exit codes: 0 done; 1 refused, change the request; 2 wrong arguments; 3 something outside failed; 4 a bug.";

#[derive(Debug, Args)]
pub struct Job {
    #[command(flatten)]
    pub connection: Connection,
    #[command(subcommand)]
    pub command: JobCommand,
}

/// Whom to ask, and about which job.
#[derive(Debug, Args)]
pub struct Connection {
    /// The JobManager's REST address.
    #[arg(long, global = true, value_name = "URL", default_value = "http://127.0.0.1:8081")]
    pub rest: String,
    /// The job, as in `default.clicks`; not needed if there is just one.
    #[arg(long, global = true, value_name = "ID")]
    pub job: Option<String>,
    /// A file with the token that the JobManager asks for.
    #[arg(long, global = true, value_name = "FILE")]
    pub token_file: Option<PathBuf>,
    /// How long one request may take.
    #[arg(long, global = true, value_name = "DURATION", default_value = "10s", value_parser = duration::parse)]
    pub timeout: Duration,
}

#[derive(Debug, Subcommand)]
pub enum JobCommand {
    /// All jobs of the JobManager.
    List,
    /// Phase, parallelism, checkpoints, the latest failure, and what each vertex has done.
    Status(Watch),
    /// How busy each vertex is, records per second, and how far event time lags.
    #[command(after_help = TOP_HELP)]
    Top(Watch),
    /// The subtasks of a vertex, and where they run.
    Vertex {
        /// Its number, as `status` shows it.
        vertex: u32,
    },
    /// The latest checkpoints and savepoints.
    Checkpoints(Watch),
    /// One checkpoint with each task's part, or take one now.
    Checkpoint {
        /// Its number, as `checkpoints` shows it.
        #[arg(required_unless_present = "now", conflicts_with = "now")]
        id: Option<u64>,
        /// Take one now, out of turn.
        #[arg(long)]
        now: bool,
        #[command(flatten)]
        waiting: Waiting,
    },
    /// Take a savepoint; the job goes on.
    #[command(after_help = SAVEPOINT_EXAMPLES)]
    Savepoint {
        /// Of its folder [default: one with the time in it].
        #[arg(value_parser = savepoint_name)]
        name: Option<String>,
        /// How state is written.
        #[arg(long, value_name = "FORMAT", value_enum, default_value_t = Format::Canonical)]
        format: Format,
        #[command(flatten)]
        waiting: Waiting,
    },
    /// Take a savepoint and end the job with it: nothing is written twice when it goes on from there.
    #[command(after_help = STOP_EXAMPLES)]
    Stop {
        /// Name of the savepoint's folder [default: one with the time in it].
        #[arg(long, value_name = "NAME", value_parser = savepoint_name)]
        savepoint: Option<String>,
        /// How state is written.
        #[arg(long, value_name = "FORMAT", value_enum, default_value_t = Format::Canonical)]
        format: Format,
        /// Fire all windows and timers first, as at the end of input.
        #[arg(long)]
        drain: bool,
        #[command(flatten)]
        waiting: Waiting,
    },
    /// End the job at once. Its last checkpoint stays: a later start goes on from it.
    Cancel {
        #[command(flatten)]
        waiting: Waiting,
    },
    /// Run with another parallelism; without an argument, show between which bounds the job may run.
    Rescale {
        /// The parallelism wanted.
        #[arg(value_parser = clap::value_parser!(u32).range(1..=32_768))]
        parallelism: Option<u32>,
        /// Run with fewer slots, down to this many, rather than wait [default: the parallelism].
        #[arg(long, value_name = "N", requires = "parallelism", value_parser = clap::value_parser!(u32).range(1..=32_768))]
        least: Option<u32>,
        #[command(flatten)]
        waiting: Waiting,
    },
    /// Changes of the parallelism, and how long the job stood still for each.
    Rescales,
    /// Failures, newest first.
    Exceptions,
    /// TaskManagers, their slots and tasks.
    #[command(name = "taskmanagers")]
    TaskManagers,
    /// Delete a savepoint and the files that nothing else needs.
    Dispose {
        /// Its name or location.
        savepoint: String,
        #[command(flatten)]
        waiting: Waiting,
    },
    /// What became of a request that was left with --no-wait.
    Request {
        /// The id that was printed.
        request: String,
        #[command(flatten)]
        waiting: Waiting,
    },
}

const TOP_HELP: &str = "BUSY, IDLE and BACK-PRESSURED are shares since the latest deployment; the one busy vertex after \
back-pressured ones is the bottleneck. Records per second come from two samples.";
const SAVEPOINT_EXAMPLES: &str = "Examples:
  streamkeeper job savepoint before-friday
  streamkeeper job savepoint --format native --no-wait         # prints the request's id";
const STOP_EXAMPLES: &str = "Examples:
  streamkeeper job stop --savepoint friday
  streamkeeper jobmanager --job job.yaml --restore friday      # goes on from it";

/// Shows again and again.
#[derive(Debug, Args)]
pub struct Watch {
    /// Go on until the job ends; on a terminal each picture replaces the one before [default interval: 2s].
    #[arg(long, value_name = "INTERVAL", num_args = 0..=1, default_missing_value = "2s", value_parser = interval)]
    pub watch: Option<Duration>,
}

/// What takes time.
#[derive(Debug, Args)]
pub struct Waiting {
    /// Only ask for it.
    #[arg(long)]
    pub no_wait: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// Parquet, for every backend and parallelism; `state query` reads it.
    Canonical,
    /// The backend's own files: quicker, for the same backend.
    Native,
}

impl From<Format> for SavepointFormat {
    fn from(format: Format) -> Self {
        match format {
            Format::Canonical => Self::Canonical,
            Format::Native => Self::Native,
        }
    }
}

/// A look costs the JobManager something.
fn interval(text: &str) -> Result<Duration, String> {
    let interval = duration::parse(text)?;
    if interval < SHORTEST_INTERVAL {
        return Err(format!("at least {}", duration::format(SHORTEST_INTERVAL)));
    }
    Ok(interval)
}

const SHORTEST_INTERVAL: Duration = Duration::from_millis(100);
