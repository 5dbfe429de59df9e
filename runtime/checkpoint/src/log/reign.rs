//! A started reign: appends at its own next number, hands out ids, says what of the log may go.

use streamkeeper_types::{CheckpointId, Error, Generation, Result};

use super::{Append, Appended, JobState, Record, entry_path, step::entries};

/// Ids reserved by one record. A restart skips at most as many; a reign that checkpoints every second appends once in
/// a quarter of an hour for it.
pub const ID_BLOCK: u64 = 1_000;

/// Records after which a new base is worth its write: what a start has to read stays below it.
const RECORDS_PER_BASE: u64 = 64;

/// The number of a reign's first base; its claim has 0.
pub(crate) const FIRST_BASE: u64 = 1;

/// One JobManager's time at the head of a job. At most one reign can publish; a later one ends it at its next append.
#[derive(Debug, Clone)]
pub struct Reign {
    generation: Generation,
    /// Number of the next record.
    next: u64,
    /// Number of the newest base.
    base: u64,
    state: JobState,
    /// Ids of our own blocks, not yet handed out.
    ids: std::ops::Range<u64>,
    /// A record whose append has no known outcome yet. It is settled before anything else is appended.
    doubt: Option<Record>,
}

impl Reign {
    pub(crate) fn started(generation: Generation, state: JobState) -> Self {
        Self { generation, next: FIRST_BASE + 1, base: FIRST_BASE, state, ids: 0..0, doubt: None }
    }

    #[must_use]
    pub fn generation(&self) -> Generation {
        self.generation
    }

    #[must_use]
    pub fn state(&self) -> &JobState {
        &self.state
    }

    /// The append that still has to be settled, if an earlier one was given up without a known outcome.
    #[must_use]
    pub fn doubt(&self) -> Option<(Record, Append)> {
        let record = self.doubt.clone()?;
        let append = self.append_of(&record);
        Some((record, append))
    }

    /// Where the next record goes; a seal that lies there has ended this reign.
    #[must_use]
    pub fn next_path(&self) -> String {
        entry_path(self.generation, self.next)
    }

    /// Begins to append `record`. One at a time; tell [`Self::appended`] how it ended.
    #[must_use]
    pub fn append(&mut self, record: &Record) -> Append {
        debug_assert!(self.doubt.is_none(), "an append in doubt is settled first");
        self.doubt = Some(record.clone());
        self.append_of(record)
    }

    fn append_of(&self, record: &Record) -> Append {
        Append::new(self.next_path(), record.encode())
    }

    /// The append surely had no effect; its number stays free.
    pub fn not_appended(&mut self) {
        self.doubt = None;
    }

    /// Takes the outcome of the current append. `Ok(None)`: done. `Ok(Some(g))`: generation `g` ended this reign.
    ///
    /// # Errors
    /// Something lies at our number that is no seal.
    pub fn appended(&mut self, outcome: Appended) -> Result<Option<Generation>> {
        let record = self.doubt.take();
        let path = self.next_path();
        match outcome {
            Appended::Ours => {
                let record = record.ok_or_else(|| Error::internal(format!("`{path}`: nothing was being appended")))?;
                if matches!(record, Record::Base(_)) {
                    self.base = self.next;
                }
                if let Record::Ids { from, to } = &record {
                    self.ids = from.0..to.0;
                }
                self.state.apply(&record);
                self.next += 1;
                Ok(None)
            }
            Appended::Taken(bytes) => match Record::decode(&path, &bytes)? {
                Record::Sealed { by } => Ok(Some(by)),
                other => Err(Error::internal(format!("`{path}` belongs to this process but holds {other:?}"))),
            },
        }
    }

    /// The next id, or `None` if a record of [`Self::id_block`] has to be appended first.
    pub fn allocate_id(&mut self) -> Option<CheckpointId> {
        self.ids.next().map(CheckpointId)
    }

    /// Reserves the next ids.
    #[must_use]
    pub fn id_block(&self) -> Record {
        let from = self.state.next_id;
        Record::Ids { from, to: CheckpointId(from.0.saturating_add(ID_BLOCK)) }
    }

    /// A new base, if enough came after the last one.
    #[must_use]
    pub fn due_base(&self) -> Option<Record> {
        (self.next - self.base > RECORDS_PER_BASE).then(|| Record::Base(self.state.clone()))
    }

    /// Number of the newest base, for [`numbers_to_collect`].
    #[must_use]
    pub fn base_number(&self) -> u64 {
        self.base
    }
}

/// Log entries that a started reign may delete, out of a listing of the whole log: of its own what its newest base
/// covers, and of sealed generations everything but the claim and the seal.
///
/// A claim or seal that were deleted could be created again, and the fence would be gone.
#[must_use]
pub fn numbers_to_collect(listed: &[String], own: Generation, base: u64) -> Vec<String> {
    let entries = entries(listed);
    let is_last_of_generation = |i: usize| entries.get(i + 1).is_none_or(|next| next.0 != entries[i].0);
    let may_go = |i: usize| {
        let (generation, number) = entries[i];
        match generation.cmp(&own) {
            std::cmp::Ordering::Less => number > 0 && !is_last_of_generation(i),
            std::cmp::Ordering::Equal => number > 0 && number < base,
            std::cmp::Ordering::Greater => false,
        }
    };
    (0..entries.len()).filter(|i| may_go(*i)).map(|i| entry_path(entries[i].0, entries[i].1)).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn claims_seals_and_the_newest_base_stay_for_ever() {
        let listed: Vec<String> = [
            "log/1/0", "log/1/1", "log/1/9", "log/1/10", "log/2/0", "log/2/1", "log/3/0", "log/3/1", "log/3/2",
            "log/3/3", "log/4/0",
        ]
        .map(str::to_owned)
        .into();
        assert_eq!(numbers_to_collect(&listed, Generation(3), 2), ["log/1/1", "log/1/9", "log/3/1"]);
    }

    #[test]
    fn r1_ids_come_from_reserved_blocks_and_a_new_reign_skips_the_rest() {
        let mut reign = Reign::started(Generation(1), JobState::default());
        assert_eq!(reign.allocate_id(), None);
        let block = reign.id_block();
        let _ = reign.append(&block);
        assert_eq!(reign.appended(Appended::Ours).unwrap(), None);
        assert_eq!(reign.allocate_id(), Some(CheckpointId(1)));
        assert_eq!(reign.allocate_id(), Some(CheckpointId(2)));
        let successor = Reign::started(Generation(2), reign.state().clone());
        assert_eq!(successor.id_block(), Record::Ids { from: CheckpointId(1001), to: CheckpointId(2001) });
    }

    #[test]
    fn r25_a_seal_at_the_next_number_ends_the_reign() {
        let mut reign = Reign::started(Generation(1), JobState::default());
        let block = reign.id_block();
        let _ = reign.append(&block);
        let seal = Record::Sealed { by: Generation(4) }.encode();
        assert_eq!(reign.appended(Appended::Taken(seal)).unwrap(), Some(Generation(4)));
        assert_eq!(reign.allocate_id(), None);
    }
}
