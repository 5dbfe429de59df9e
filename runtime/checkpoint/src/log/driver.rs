//! Drives the log's deciding parts over a storage, blocking.

use std::{sync::Arc, thread, time::Duration};

use streamkeeper_storage::{PutMode, PutOutcome, Storage, StorageError};
use streamkeeper_types::{CheckpointId, Code, Error, Generation};

use super::{
    Append, Appended, Created, JobState, Record, Reign, Reply, Request, Start, StartFailure, Step, numbers_to_collect,
    step::FOLDER,
};

/// How often a call that surely failed, or whose outcome is unknown, is repeated.
#[derive(Debug, Clone, Copy)]
pub struct RetryPolicy {
    /// Tries of one call, at least 1.
    pub attempts: u32,
    /// Wait before the second try; doubles each time.
    pub delay: Duration,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self { attempts: 5, delay: Duration::from_millis(50) }
    }
}

/// The log of a job whose head this process is.
#[derive(Debug)]
pub struct JobLog {
    storage: Arc<dyn Storage>,
    retry: RetryPolicy,
    reign: Reign,
    /// Number of the base up to which the log is collected.
    collected: Option<u64>,
}

/// Why the log did not open.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StartError {
    #[error("launch {highest} of this job began already")]
    LaunchTooOld { highest: u64 },
    #[error(transparent)]
    Error(#[from] Error),
}

/// Why a record was not appended.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AppendError {
    /// A higher generation ended this reign. Stop everything, write nothing more.
    #[error("generation {by} took this job over")]
    Fenced { by: Generation },
    /// Nobody knows whether the record is there. Keep every file (R24); the next append settles it.
    #[error("outcome unknown: {0}")]
    InDoubt(Error),
    /// The record surely is not there.
    #[error(transparent)]
    Failed(Error),
}

impl From<StartError> for Error {
    fn from(error: StartError) -> Self {
        match error {
            StartError::LaunchTooOld { .. } => Self::new(Code::Fenced, error.to_string()),
            StartError::Error(error) => error,
        }
    }
}

impl From<AppendError> for Error {
    fn from(error: AppendError) -> Self {
        match error {
            AppendError::Fenced { .. } => {
                Self::new(Code::Fenced, error.to_string()).way_out("another process runs this job now; this one ends")
            }
            AppendError::InDoubt(error) | AppendError::Failed(error) => error,
        }
    }
}

impl JobLog {
    /// Begins a reign. Also returns everything that lay in the job's folder before it; see
    /// [`Started::listed`](super::Started::listed).
    ///
    /// # Errors
    /// The launch is too old, a higher reign is at work (`FENCED`), or storage fails.
    pub fn open(
        storage: Arc<dyn Storage>,
        launch: u64,
        instance: impl Into<String>,
        retry: RetryPolicy,
    ) -> Result<(Self, Vec<String>), StartError> {
        let mut start = Start::new(launch, instance);
        let mut request = start.begin();
        loop {
            let reply = execute(&*storage, &retry, &request).map_err(|gave_up| match gave_up {
                GaveUp::NoEffect(error) | GaveUp::Unknown(error) => StartError::Error(error),
            })?;
            match start.on(reply) {
                Ok(Step::Ask(next)) => request = next,
                Ok(Step::Done(started)) => {
                    tracing::info!(generation = started.reign.generation().0, launch, "reign began");
                    let log = Self { storage, retry, reign: started.reign, collected: None };
                    return Ok((log, started.listed));
                }
                Err(StartFailure::LaunchTooOld { highest }) => return Err(StartError::LaunchTooOld { highest }),
                Err(StartFailure::Fenced) => {
                    let error = Error::new(Code::Fenced, "another process takes this job over at the same time")
                        .way_out("let one process run the job; then try again");
                    return Err(StartError::Error(error));
                }
                Err(StartFailure::Broken(error)) => return Err(StartError::Error(error)),
            }
        }
    }

    #[must_use]
    pub fn generation(&self) -> Generation {
        self.reign.generation()
    }

    #[must_use]
    pub fn state(&self) -> &JobState {
        self.reign.state()
    }

    /// Appends one record. When this returns `Ok`, every later reign knows it.
    ///
    /// # Errors
    /// See [`AppendError`]; also if an earlier append is still in doubt: [`Self::settle`] it first.
    pub fn append(&mut self, record: &Record) -> Result<(), AppendError> {
        if let Some((_, append)) = self.reign.doubt() {
            let path = append.path();
            return Err(AppendError::Failed(Error::internal(format!("the append of `{path}` is not settled yet"))));
        }
        let append = self.reign.append(record);
        match drive(&*self.storage, &self.retry, &append) {
            Ok(outcome) => self.accept(outcome),
            Err(GaveUp::Unknown(error)) => Err(AppendError::InDoubt(error)),
            Err(GaveUp::NoEffect(error)) => {
                self.reign.not_appended();
                Err(AppendError::Failed(error))
            }
        }
    }

    /// Learns the outcome of an append in doubt by completing it, and returns its record; `None` if there is none.
    ///
    /// # Errors
    /// See [`AppendError`]; [`AppendError::InDoubt`] if it stays unknown.
    pub fn settle(&mut self) -> Result<Option<Record>, AppendError> {
        let Some((record, append)) = self.reign.doubt() else { return Ok(None) };
        match drive(&*self.storage, &self.retry, &append) {
            Ok(outcome) => self.accept(outcome).map(|()| Some(record)),
            Err(GaveUp::Unknown(error) | GaveUp::NoEffect(error)) => Err(AppendError::InDoubt(error)),
        }
    }

    fn accept(&mut self, outcome: Appended) -> Result<(), AppendError> {
        match self.reign.appended(outcome) {
            Ok(None) => Ok(()),
            Ok(Some(by)) => Err(AppendError::Fenced { by }),
            Err(error) => Err(AppendError::Failed(error)),
        }
    }

    /// Asks whether a higher generation has ended this reign. An append learns that too; this is for a process that has
    /// nothing to append, such as one that cannot deploy because its snapshot is gone.
    ///
    /// # Errors
    /// [`AppendError::Fenced`] if so, [`AppendError::Failed`] if storage does not answer.
    pub fn check_reign(&self) -> Result<(), AppendError> {
        let path = self.reign.next_path();
        let request = Request::Get { path: path.clone() };
        let reply = execute(&*self.storage, &self.retry, &request).map_err(|gave_up| match gave_up {
            GaveUp::NoEffect(error) | GaveUp::Unknown(error) => AppendError::Failed(error),
        })?;
        let Reply::Got(Some(bytes)) = reply else { return Ok(()) };
        match Record::decode(&path, &bytes) {
            Ok(Record::Sealed { by }) => Err(AppendError::Fenced { by }),
            // Our own, whose outcome was unknown.
            Ok(_) => Ok(()),
            Err(error) => Err(AppendError::Failed(error)),
        }
    }

    /// A checkpoint id that was never used and never will be (R1).
    ///
    /// # Errors
    /// As [`Self::append`], when a new block has to be reserved.
    pub fn allocate_id(&mut self) -> Result<CheckpointId, AppendError> {
        if let Some(id) = self.reign.allocate_id() {
            return Ok(id);
        }
        let block = self.reign.id_block();
        self.append(&block)?;
        self.reign.allocate_id().ok_or_else(|| AppendError::Failed(Error::internal("a reserved block has no id")))
    }

    /// Writes a new base if one is due, and deletes log entries that nobody needs. Repeatable; best called after a
    /// checkpoint, off the path of records.
    ///
    /// # Errors
    /// As [`Self::append`]. What could not be deleted is deleted next time.
    pub fn collect(&mut self) -> Result<(), AppendError> {
        if let Some(base) = self.reign.due_base() {
            self.append(&base)?;
        }
        if self.collected == Some(self.reign.base_number()) {
            return Ok(());
        }
        let failed = |error: StorageError| AppendError::Failed(error.into());
        let listed: Vec<String> = self.storage.list(FOLDER).map_err(failed)?.into_iter().map(|o| o.path).collect();
        for path in numbers_to_collect(&listed, self.reign.generation(), self.reign.base_number()) {
            self.storage.delete(&path).map_err(failed)?;
        }
        self.collected = Some(self.reign.base_number());
        Ok(())
    }
}

enum GaveUp {
    NoEffect(Error),
    Unknown(Error),
}

/// Runs one append to its end.
fn drive(storage: &dyn Storage, retry: &RetryPolicy, append: &Append) -> Result<Appended, GaveUp> {
    let mut request = append.begin();
    let mut unknowns = 0;
    loop {
        let reply = execute(storage, retry, &request).map_err(|gave_up| match gave_up {
            // Once an outcome was unknown, only an answer can take that back.
            GaveUp::NoEffect(error) if unknowns > 0 => GaveUp::Unknown(error),
            gave_up => gave_up,
        })?;
        if reply == Reply::Created(Created::Unknown) {
            unknowns += 1;
            if unknowns > retry.attempts {
                let path = append.path();
                return Err(GaveUp::Unknown(Error::new(Code::Storage, format!("`{path}`: storage gives no answer"))));
            }
        }
        match append.on(reply) {
            Step::Ask(next) => request = next,
            Step::Done(outcome) => return Ok(outcome),
        }
    }
}

/// Executes one request, repeating it while it surely had no effect.
fn execute(storage: &dyn Storage, retry: &RetryPolicy, request: &Request) -> Result<Reply, GaveUp> {
    let mut delay = retry.delay;
    let mut attempt = 1;
    loop {
        let error = match call(storage, request) {
            Ok(reply) => return Ok(reply),
            Err(error) => error,
        };
        if attempt >= retry.attempts {
            return Err(GaveUp::NoEffect(error.at("job log")));
        }
        tracing::debug!(%error, attempt, "job log: storage call is repeated");
        attempt += 1;
        thread::sleep(delay);
        delay = delay.saturating_mul(2);
    }
}

fn call(storage: &dyn Storage, request: &Request) -> Result<Reply, Error> {
    match request {
        Request::List { folder } => {
            let listed = storage.list(folder)?;
            Ok(Reply::Listed(listed.into_iter().map(|object| object.path).collect()))
        }
        Request::Get { path } => match storage.get(path) {
            Ok(bytes) => Ok(Reply::Got(Some(bytes))),
            Err(StorageError::NotFound { .. }) => Ok(Reply::Got(None)),
            Err(error) => Err(error.into()),
        },
        Request::Create { path, bytes } => match storage.put(path, bytes.clone(), PutMode::Create) {
            Ok(PutOutcome::Done) => Ok(Reply::Created(Created::Done)),
            Ok(PutOutcome::Exists) => Ok(Reply::Created(Created::Exists)),
            Err(StorageError::Unknown(_)) => Ok(Reply::Created(Created::Unknown)),
            Err(error) => Err(error.into()),
        },
    }
}
