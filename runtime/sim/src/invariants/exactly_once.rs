//! Each record takes effect at the transactional sink exactly once, and counts know every record before them.

use std::collections::{BTreeMap, BTreeSet};

use super::Verdict;
use crate::tasks::Row;

/// The world behind the sink: transactions by name, committed as a whole and idempotently.
#[derive(Debug, Default)]
pub struct ExactlyOnce {
    transactions: BTreeSet<String>,
    /// Splits and positions that took effect, and the transaction that brought them.
    seen: BTreeMap<(u32, u32), String>,
    /// Highest count that took effect for each key, and how many rows.
    counts: BTreeMap<u32, BTreeSet<u32>>,
}

impl ExactlyOnce {
    /// A transaction is committed; again is nothing.
    ///
    /// # Errors
    /// A record of it took effect before, or a count.
    pub fn commit(&mut self, transaction: &str, rows: &[Row]) -> Verdict {
        if !self.transactions.insert(transaction.to_owned()) {
            return Ok(());
        }
        for row in rows {
            if let Some(before) = self.seen.insert((row.split, row.position), transaction.to_owned()) {
                let Row { split, position, .. } = row;
                return Err(format!(
                    "record {split}/{position} took effect by `{before}` and again by `{transaction}`"
                ));
            }
            if !self.counts.entry(row.key).or_default().insert(row.count) {
                return Err(format!(
                    "key {} was counted {} twice, the second time in `{transaction}`",
                    row.key, row.count
                ));
            }
        }
        Ok(())
    }

    /// The job has finished: everything took effect.
    ///
    /// # Errors
    /// A record is missing, or a key's counts have a gap.
    pub fn finished(&self, splits: u32, records_per_split: u32) -> Verdict {
        let all = (0..splits).flat_map(|split| (0..records_per_split).map(move |position| (split, position)));
        if let Some((split, position)) = all.into_iter().find(|record| !self.seen.contains_key(record)) {
            return Err(format!("the job finished, but record {split}/{position} never took effect"));
        }
        for (key, counts) in &self.counts {
            if counts.iter().copied().ne(1..=u32::try_from(counts.len()).unwrap_or(u32::MAX)) {
                return Err(format!("counts of key {key} have a gap: {counts:?}"));
            }
        }
        Ok(())
    }
}
