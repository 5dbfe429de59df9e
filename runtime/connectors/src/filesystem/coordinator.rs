//! Finds the files of a table and deals their splits to readers.

use std::{
    collections::{BTreeSet, VecDeque},
    sync::Arc,
    time::Duration,
};

use serde::{Deserialize, Serialize};
use streamkeeper_engine::{Assignment, SplitCoordinator, SplitRequest};
use streamkeeper_types::{Millis, Result};

use super::{
    Deal, FileTable,
    split::{Cut, FileSplit, plan},
    text_of,
};
use crate::versioned;

const VERSION: u8 = 1;

pub(super) struct FileCoordinator {
    table: Arc<FileTable>,
    readers: u32,
    state: State,
    /// Readers that asked while there was nothing.
    waiting: BTreeSet<u32>,
}

#[derive(Debug, Default, Serialize, Deserialize)]
struct State {
    /// Whether the files were listed.
    listed: bool,
    /// Splits that no reader has, in order; with each its number, which says whose share it is in.
    pending: VecDeque<(u64, FileSplit)>,
    /// Splits numbered so far.
    numbered: u64,
    /// Paths found so far, of monitored folders.
    seen: BTreeSet<String>,
}

impl FileCoordinator {
    pub(super) fn new(table: Arc<FileTable>, parallelism: u32) -> Self {
        Self { table, readers: parallelism.max(1), state: State::default(), waiting: BTreeSet::new() }
    }

    /// Lists the files and adds splits of those not seen before.
    fn find(&mut self) -> Result<()> {
        let mut files = self.table.location.list().map_err(|e| e.at(format!("table {}", self.table.name)))?;
        if self.table.monitor.is_some() {
            files.retain(|file| self.state.seen.insert(text_of(&file.path)));
        }
        let cut = if self.table.format.can_split() { Cut::PerReader(self.readers) } else { Cut::Never };
        for split in plan(&files, cut) {
            self.state.pending.push_back((self.state.numbered, split));
            self.state.numbered += 1;
        }
        self.state.listed = true;
        Ok(())
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
