//! Errors that a person may see: a stable code, the cause, the way out, and who is at fault.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Shorthand for results with [`Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Who can mend it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Fault {
    /// The job's text, options or data; a retry does not help.
    User,
    /// Something outside: storage, network, disk; a retry may help.
    External,
    /// A bug of ours.
    Internal,
}

macro_rules! codes {
    ($($(#[doc = $doc:literal])+ $variant:ident = $text:literal, $fault:ident;)+) => {
        /// Stable codes. A code is never reused for another meaning.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
        pub enum Code { $($(#[doc = $doc])+ #[serde(rename = $text)] $variant,)+ }

        impl Code {
            /// Every code, for the documentation.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)+];

            /// The text that users see and scripts match, as in `SQL_SYNTAX`.
            #[must_use]
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $text,)+ }
            }

            /// Who is at fault unless the error says otherwise.
            #[must_use]
            pub fn fault(self) -> Fault {
                match self { $(Self::$variant => Fault::$fault,)+ }
            }

            /// One sentence of meaning.
            #[must_use]
            pub fn meaning(self) -> &'static str {
                match self { $(Self::$variant => concat!($($doc),+).trim_ascii(),)+ }
            }
        }
    };
}

codes! {
    /// The StreamJob is no readable YAML or does not fit the schema.
    JobInvalid = "JOB_INVALID", User;
    /// A file that the command names cannot be read.
    FileUnreadable = "FILE_UNREADABLE", User;
    /// A file of a table is torn, or not of the table's format at all.
    FileCorrupt = "FILE_CORRUPT", User;
    /// A file of a table was changed or removed after it was found.
    FileChanged = "FILE_CHANGED", User;
    /// A folder cannot be written.
    NotWritable = "NOT_WRITABLE", User;
    /// The SQL text does not parse.
    SqlSyntax = "SQL_SYNTAX", User;
    /// A table, column, function or type in the SQL text does not exist or does not fit.
    SqlInvalid = "SQL_INVALID", User;
    /// Valid SQL that this version does not run.
    SqlUnsupported = "SQL_UNSUPPORTED", User;
    /// An option of a table is unknown, missing or has a wrong value.
    OptionInvalid = "OPTION_INVALID", User;
    /// A record cannot be read, or a value breaks a rule of its column, and the table says `fail`.
    RecordInvalid = "RECORD_INVALID", User;
    /// More bad records than the table allows.
    TooManyBadRecords = "TOO_MANY_BAD_RECORDS", User;
    /// An expression fails on a row: division by zero, a cast of bad text.
    Evaluation = "EVALUATION", User;
    /// A source's input cannot be read.
    SourceFailed = "SOURCE_FAILED", External;
    /// A sink cannot write or commit.
    SinkFailed = "SINK_FAILED", External;
    /// Checkpoint storage cannot be reached or answers with an error.
    Storage = "STORAGE", External;
    /// No space is left on a disk.
    DiskFull = "DISK_FULL", External;
    /// A snapshot's file is missing, torn or not what its manifest says.
    SnapshotCorrupt = "SNAPSHOT_CORRUPT", User;
    /// A snapshot belongs to another job or was written by a version that this one cannot read.
    SnapshotForeign = "SNAPSHOT_FOREIGN", User;
    /// The snapshot's state does not fit the job; nothing was changed.
    StateIncompatible = "STATE_INCOMPATIBLE", User;
    /// Starting would forget existing state, and nobody agreed to that.
    EmptyStart = "EMPTY_START", User;
    /// Another process runs this job, or took it over.
    Fenced = "FENCED", External;
    /// The connection to another TaskManager broke, fell silent or carried damaged bytes.
    ConnectionLost = "CONNECTION_LOST", External;
    /// Another process refused a connection: other version, cluster, job or process, or a fenced generation.
    ConnectionRefused = "CONNECTION_REFUSED", External;
    /// The state needs more memory than the budget allows in one step.
    MemoryExceeded = "MEMORY_EXCEEDED", User;
    /// The wanted parallelism does not fit the number of key groups.
    ParallelismInvalid = "PARALLELISM_INVALID", User;
    /// Too few task slots for too long.
    SlotsMissing = "SLOTS_MISSING", External;
    /// An address cannot be listened on.
    ListenFailed = "LISTEN_FAILED", User;
    /// Two processes of a job do not fit together: version, token, or a reign that is over.
    PeerRefused = "PEER_REFUSED", External;
    /// A TaskManager is gone: its connection or its signs of life.
    TaskManagerLost = "TASK_MANAGER_LOST", External;
    /// Checkpoints fail more often than tolerated.
    CheckpointsFailing = "CHECKPOINTS_FAILING", External;
    /// A savepoint or checkpoint that somebody asked for did not complete; the job goes on.
    SavepointFailed = "SAVEPOINT_FAILED", External;
    /// A request to the REST API that cannot be read: its path, query, headers or body.
    RequestInvalid = "REQUEST_INVALID", User;
    /// The body of a request is larger than the REST API takes.
    RequestTooLarge = "REQUEST_TOO_LARGE", User;
    /// The REST API has no such path, job, vertex, checkpoint, savepoint or request.
    NotFound = "NOT_FOUND", User;
    /// A request contradicts what is there, such as the name of a savepoint that is taken.
    Conflict = "CONFLICT", User;
    /// A request without the bearer token, with another one, or from a page of another site.
    Unauthorized = "UNAUTHORIZED", User;
    /// This JobManager does not lead the job, or not yet.
    NotLeading = "NOT_LEADING", External;
    /// More is under way than the REST API takes, or a request took too long.
    Overloaded = "OVERLOADED", External;
    /// Nobody answers in time at a REST address, or somebody who is no JobManager of Streamkeeper.
    RestUnreachable = "REST_UNREACHABLE", External;
    /// The job was cancelled.
    Cancelled = "CANCELLED", User;
    /// A test of `streamkeeper test` gives other rows than expected.
    TestFailed = "TEST_FAILED", User;
    /// A bug in Streamkeeper.
    Internal = "INTERNAL", Internal;
}

/// An error with everything that a person needs. Cheap to clone; carries text only, so it crosses processes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Error {
    pub code: Code,
    /// What happened, and to which thing.
    pub cause: String,
    /// What to do about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub way_out: Option<String>,
    /// Where, outermost first: file, line and column, table, task.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub place: Vec<String>,
}

impl Error {
    pub fn new(code: Code, cause: impl Into<String>) -> Self {
        Self { code, cause: cause.into(), way_out: None, place: Vec::new() }
    }

    /// A bug of ours: an invariant that does not hold.
    pub fn internal(cause: impl Into<String>) -> Self {
        Self::new(Code::Internal, cause)
    }

    /// Adds what to do about it.
    #[must_use]
    pub fn way_out(mut self, way_out: impl Into<String>) -> Self {
        self.way_out = Some(way_out.into());
        self
    }

    /// Adds a place around those already there.
    #[must_use]
    pub fn at(mut self, place: impl Into<String>) -> Self {
        self.place.insert(0, place.into());
        self
    }

    /// An I/O error on a path: a full disk is told apart from everything else.
    pub fn io(code: Code, path: impl fmt::Display, error: &std::io::Error) -> Self {
        match error.kind() {
            std::io::ErrorKind::StorageFull | std::io::ErrorKind::QuotaExceeded => {
                Self::disk_full(format!("no space left while writing {path}"))
            }
            _ => Self::new(code, format!("{path}: {error}")),
        }
    }

    /// No space is left; `cause` names the path.
    pub fn disk_full(cause: impl Into<String>) -> Self {
        Self::new(Code::DiskFull, cause)
            .way_out("free some space, then run the same command again: it goes on where it was")
    }

    #[must_use]
    pub fn fault(&self) -> Fault {
        self.code.fault()
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "[{}] ", self.code.as_str())?;
        for place in &self.place {
            write!(f, "{place}: ")?;
        }
        f.write_str(&self.cause)?;
        if let Some(way_out) = &self.way_out {
            write!(f, "\n  help: {way_out}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Error {}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Turns foreign errors into ours at the place where their meaning is known.
pub trait ResultExt<T> {
    /// Wraps the error's text under `code`, with what was being done.
    ///
    /// # Errors
    /// The same error as ours.
    fn or_code(self, code: Code, doing: impl FnOnce() -> String) -> Result<T>;
}

impl<T, E: fmt::Display> ResultExt<T> for std::result::Result<T, E> {
    fn or_code(self, code: Code, doing: impl FnOnce() -> String) -> Result<T> {
        self.map_err(|error| Error::new(code, format!("{}: {error}", doing())))
    }
}
