//! Finds the files of a table and deals their splits to readers.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    sync::Arc,
    time::Duration,
};

use serde::{Deserialize, Serialize};
use streamkeeper_engine::{Assignment, SplitCoordinator, SplitRequest};
use streamkeeper_types::{Code, Error, Millis, Result};

use super::{
    ChangedFiles, Deal, FileTable,
    bad_records::Report,
    location::{Found, Mark},
    split::{Cut, FileSplit, plan},
    text_of,
};
use crate::versioned;

const VERSION: u8 = 2;

pub(super) struct FileCoordinator {
    table: Arc<FileTable>,
    readers: u32,
    state: State,
    /// Readers that asked while there was nothing.
    waiting: BTreeSet<u32>,
    /// Bad records of each reader, as far as it told; part of the readers' state, not of ours.
    bad: BTreeMap<u32, u64>,
}

#[derive(Debug, Default, Serialize, Deserialize)]
struct State {
    /// Whether the files were listed.
    listed: bool,
    /// Splits that no reader has, in order; with each its number, which says whose share it is in.
    pending: VecDeque<(u64, FileSplit)>,
    /// Splits numbered so far.
    numbered: u64,
    /// Files found so far, as they were: each is read once.
    seen: BTreeMap<String, Mark>,
}

impl FileCoordinator {
    pub(super) fn new(table: Arc<FileTable>, parallelism: u32) -> Self {
        let readers = parallelism.max(1);
        Self { table, readers, state: State::default(), waiting: BTreeSet::new(), bad: BTreeMap::new() }
    }

    /// Lists the files and adds splits of those not seen before.
    fn find(&mut self) -> Result<()> {
        let mut files = Vec::new();
        for file in self.table.location.list().map_err(|e| self.at_table(e))? {
            if self.is_new(&file)? {
                files.push(file);
            }
        }
        let cut = if self.table.format.can_split() { Cut::PerReader(self.readers) } else { Cut::Never };
        for split in plan(&files, cut) {
            self.state.pending.push_back((self.state.numbered, split));
            self.state.numbered += 1;
        }
        self.state.listed = true;
        Ok(())
    }

    /// Whether the file is to be read. One that was read, or is being read, may not change: what of it was read already,
    /// and as what, nobody could tell.
    fn is_new(&mut self, file: &Found) -> Result<bool> {
        let path = text_of(&file.path);
        match self.state.seen.insert(path.clone(), file.mark) {
            None => Ok(true),
            Some(before) if before == file.mark => Ok(false),
            Some(before) => {
                let changed = match (before.size, file.mark.size) {
                    (old, new) if old == new => format!("{path} was written to after it had been found"),
                    (old, new) => format!("{path} had {old} bytes when it was found and has {new} now"),
                };
                if self.table.changed_files == ChangedFiles::Ignore {
                    tracing::warn!(
                        table = self.table.name,
                        code = Code::FileChanged.as_str(),
                        "{changed}; it is not read again"
                    );
                    return Ok(false);
                }
                let way_out = "put the old file back and the new rows into a file of another name, which begins with `.` \
                               or `_` until it is whole; or set 'source.changed-files' = 'ignore'";
                Err(self.at_table(Error::new(Code::FileChanged, changed).way_out(way_out)))
            }
        }
    }

    fn at_table(&self, error: Error) -> Error {
        error.at(format!("table {}", self.table.name))
    }

    fn assign(&mut self, reader: u32) -> Result<Assignment> {
        let readers = u64::from(self.readers);
        let is_ours = |number: u64| match self.table.deal {
            Deal::OneByOne => true,
            Deal::Shares => number % readers == u64::from(reader),
        };
        let limit = if self.table.deal == Deal::OneByOne { 1 } else { usize::MAX };
        let mut splits = Vec::new();
        let mut others = VecDeque::with_capacity(self.state.pending.len());
        for (number, split) in self.state.pending.drain(..) {
            if splits.len() < limit && is_ours(number) {
                splits.push(split.to_split()?);
            } else {
                others.push_back((number, split));
            }
        }
        self.state.pending = others;
        let nothing_left = self.table.deal == Deal::Shares || self.state.pending.is_empty();
        let no_more = nothing_left && self.table.monitor.is_none();
        if splits.is_empty() && !no_more {
            self.waiting.insert(reader);
        } else {
            self.waiting.remove(&reader);
        }
        Ok(Assignment { reader, splits, no_more })
    }
}

impl SplitCoordinator for FileCoordinator {
    fn reset(&mut self, readers: u32) {
        self.readers = readers.max(1);
        self.waiting.clear();
        self.bad.clear();
        for (number, (pending, _)) in (0..).zip(&mut self.state.pending) {
            *pending = number;
        }
        self.state.numbered = self.state.pending.len() as u64;
    }

    fn on_request(&mut self, request: SplitRequest) -> Result<Vec<Assignment>> {
        if !self.state.listed {
            self.find()?;
        }
        Ok(vec![self.assign(request.reader)?])
    }

    fn on_report(&mut self, reader: u32, report: &[u8]) -> Result<()> {
        let Report { count, latest } = Report::decode(report)?;
        self.bad.insert(reader, count);
        let Some(max) = self.table.policy.max_records.filter(|max| self.bad.values().sum::<u64>() > *max) else {
            return Ok(());
        };
        // A restored reader tells its count before it met another one.
        let latest = if latest.is_empty() { String::new() } else { format!("; the latest: {latest}") };
        let error = Error::new(Code::TooManyBadRecords, format!("more than {max} records cannot be read{latest}"));
        Err(self.at_table(error.way_out("look at the input, or raise 'on-error.max-records'")))
    }

    fn discover(&mut self, _now: Millis) -> Result<Vec<Assignment>> {
        // The first request lists; before it nobody could be given anything.
        if !self.state.listed {
            return Ok(Vec::new());
        }
        self.find()?;
        let waiting: Vec<u32> = self.waiting.iter().copied().collect();
        let mut assignments = Vec::new();
        for reader in waiting {
            let assignment = self.assign(reader)?;
            if !assignment.splits.is_empty() {
                assignments.push(assignment);
            }
        }
        Ok(assignments)
    }

    fn discovery_interval(&self) -> Option<Duration> {
        self.table.monitor
    }

    fn has_unread_splits(&self) -> bool {
        !self.state.listed || !self.state.pending.is_empty()
    }

    fn snapshot(&mut self) -> Result<Vec<u8>> {
        versioned::encode(VERSION, &self.state)
    }

    fn restore(&mut self, bytes: &[u8]) -> Result<()> {
        self.state = versioned::decode(VERSION, bytes, "split coordinator of a filesystem table")?;
        Ok(())
    }
}
