//! What happens to records that cannot be read: fail, skip, or keep them aside.

use std::{path::PathBuf, sync::Arc};

use serde::{Deserialize, Serialize};
use streamkeeper_engine::{OperatorMetrics, SubtaskInfo};
use streamkeeper_protocol::Barrier;
use streamkeeper_types::{
    CheckpointId, Code, Error, Result,
    options::{OptionKind, OptionSpec},
};

use super::{dead_letters::DeadLetters, location};
use crate::{formats::excerpt, registry::TableDefinition, settings::Settings, versioned};

pub(super) static OPTIONS: [OptionSpec; 3] = [
    OptionSpec::new(
        "on-error",
        OptionKind::OneOf(&["fail", "skip", "dead-letter"]),
        "What a record that cannot be read does: the job fails, the record is counted and skipped, or it is counted and \
         kept in a dead-letter file with its cause and position. A file that is torn, and a Parquet value that does not \
         fit its column, always fail the job.",
    )
    .default("fail"),
    OptionSpec::new(
        "on-error.dead-letter.path",
        OptionKind::Text,
        "Folder of the dead-letter files, which appear as the sink's files do.",
    ),
    OptionSpec::new(
        "on-error.max-records",
        OptionKind::COUNT,
        "With more bad records than this in the whole table, counted from the job's first start over all restores, the \
         job fails; without it, any number is allowed.",
    ),
];

/// The table's options about bad records.
#[derive(Debug, Clone)]
pub(super) struct Policy {
    on_error: OnError,
    /// Of the whole table.
    pub(super) max_records: Option<u64>,
}

#[derive(Debug, Clone)]
enum OnError {
    Fail,
    Skip,
    DeadLetter(PathBuf),
}

/// A bad record in its file.
#[derive(Debug, Clone, Copy)]
pub(super) struct Found<'a> {
    pub(super) path: &'a str,
    /// Byte in the file (in a compressed one, of its content) at which it begins.
    pub(super) offset: u64,
    pub(super) bytes: &'a [u8],
    pub(super) cause: &'a str,
}

impl Policy {
    pub(super) fn new(table: &TableDefinition, settings: Settings<'_>) -> Result<Self> {
        let path = "on-error.dead-letter.path";
        let on_error = match settings.text("on-error") {
            Some("skip") => OnError::Skip,
            Some("dead-letter") if settings.is_given(path) => {
                OnError::DeadLetter(location::resolve(table, settings, path)?)
            }
            Some("dead-letter") => {
                let way_out = "add 'on-error.dead-letter.path' = 'dead-letters'";
                return Err(settings.fault("on-error", "'dead-letter' needs a folder", way_out));
            }
            _ => OnError::Fail,
        };
        if settings.is_given(path) && !matches!(on_error, OnError::DeadLetter(_)) {
            return Err(settings.fault(path, "'on-error' is not 'dead-letter'", "add 'on-error' = 'dead-letter'"));
        }
        Ok(Self { on_error, max_records: settings.count("on-error.max-records") })
    }
}

const VERSION: u8 = 1;

/// Items of the reader's extra state.
#[derive(Debug, Serialize, Deserialize)]
enum Item {
    /// Bad records so far.
    Count(u64),
    /// A dead-letter file that waits for its checkpoint.
    Letters(Vec<u8>),
}

/// Bad records of one reader.
pub(super) struct BadRecords {
    table: String,
    policy: Policy,
    count: u64,
    /// The latest one, for messages; kept only where there is a limit.
    latest: String,
    /// Count that the coordinator knows.
    reported: u64,
    letters: Option<DeadLetters>,
    metrics: Arc<OperatorMetrics>,
}

/// What a reader tells its coordinator, who adds up.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Report {
    /// Bad records of this reader, those before the restart included.
    pub(super) count: u64,
    /// The latest one.
    pub(super) latest: String,
}

impl Report {
    pub(super) fn decode(bytes: &[u8]) -> Result<Self> {
        versioned::decode(VERSION, bytes, "a report of a filesystem reader")
    }
}

impl BadRecords {
    pub(super) fn new(
        table: &str,
        job: &str,
        policy: &Policy,
        subtask: &SubtaskInfo,
        metrics: Arc<OperatorMetrics>,
    ) -> Result<Self> {
        let letters = match &policy.on_error {
            OnError::DeadLetter(folder) => Some(DeadLetters::open(folder, job, subtask)?),
            OnError::Fail | OnError::Skip => None,
        };
        let (table, policy) = (table.to_owned(), policy.clone());
        Ok(Self { table, policy, count: 0, latest: String::new(), reported: 0, letters, metrics })
    }

    /// The limit on their number is the coordinator's to judge, who knows all readers.
    ///
    /// # Errors
    /// `RECORD_INVALID`, or what writing the dead letter gives.
    pub(super) fn add(&mut self, found: Found<'_>) -> Result<()> {
        let Found { path, offset, bytes, cause } = found;
        let described = || format!("{path}, byte {offset}: {cause}: {}", excerpt(bytes, 200));
        if matches!(self.policy.on_error, OnError::Fail) {
            let way_out = "mend the record, or set 'on-error' to 'skip' or 'dead-letter'";
            return Err(Error::new(Code::RecordInvalid, described()).way_out(way_out));
        }
        self.count += 1;
        self.metrics.add_bad(1);
        if self.policy.max_records.is_some() {
            self.latest = described();
        }
        match &mut self.letters {
            Some(letters) => letters.write(found),
            None => Ok(()),
        }
    }

    /// Its count, if there is a limit and the coordinator does not know the count.
    pub(super) fn report(&mut self) -> Option<Vec<u8>> {
        if self.policy.max_records.is_none() || self.reported == self.count {
            return None;
        }
        self.reported = self.count;
        let report = Report { count: self.count, latest: std::mem::take(&mut self.latest) };
        // Such a report always encodes.
        versioned::encode(VERSION, &report).ok()
    }

    pub(super) fn prepare(&mut self, barrier: &Barrier) -> Result<()> {
        self.letters.as_mut().map_or(Ok(()), |letters| letters.prepare(barrier.id))
    }

    pub(super) fn state(&self) -> Vec<Vec<u8>> {
        let letters = self.letters.iter().flat_map(DeadLetters::state).map(Item::Letters);
        let count = (self.count > 0).then_some(Item::Count(self.count));
        // Such an item always encodes.
        count.into_iter().chain(letters).filter_map(|item| versioned::encode(VERSION, &item).ok()).collect()
    }

    pub(super) fn restore(&mut self, items: &[Vec<u8>]) -> Result<()> {
        let mut files = Vec::new();
        for item in items {
            match versioned::decode(VERSION, item, "bad records of a filesystem table")? {
                Item::Count(count) => self.count += count,
                Item::Letters(file) => files.push(file),
            }
        }
        self.metrics.add_bad(self.count);
        match &mut self.letters {
            Some(letters) => letters.restore(&files),
            None if files.is_empty() => Ok(()),
            None => {
                let cause = "the snapshot holds dead-letter files, and 'on-error' is not 'dead-letter' any more";
                let way_out = "set 'on-error' = 'dead-letter' until one more checkpoint completed, then change it";
                Err(Error::new(Code::StateIncompatible, cause).way_out(way_out).at(self.place()))
            }
        }
    }

    fn place(&self) -> String {
        format!("table {}", self.table)
    }

    pub(super) fn commit(&mut self, id: CheckpointId) -> Result<()> {
        self.letters.as_mut().map_or(Ok(()), |letters| letters.commit(id))
    }
}
