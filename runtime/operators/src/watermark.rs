//! The watermark that decides whether windows are over, kept over restarts.
//!
//! A restored operator may see rows before any watermark (R13), and what was late must come out late again. All subtasks
//! behind an exchange have seen the same watermarks at an aligned cut, so each stores its own as a union list and the
//! least of them counts.

use std::collections::BTreeMap;

use streamkeeper_engine::RestoredLists;
use streamkeeper_types::{
    Code, Error, Millis, Result, Watermark,
    snapshot::{ListMode, ListState},
};

/// Name of the list and version of its items.
const LIST: &str = "watermark";
const VERSION: u8 = 1;

/// The greatest watermark seen, in milliseconds.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SeenWatermark(Millis);

impl Default for SeenWatermark {
    fn default() -> Self {
        Self(Watermark::MIN.0)
    }
}

impl SeenWatermark {
    pub(crate) fn get(self) -> Millis {
        self.0
    }

    pub(crate) fn advance(&mut self, watermark: Watermark) {
        self.0 = self.0.max(watermark.0);
    }

    /// # Errors
    /// [`Code::SnapshotCorrupt`] for items that this version did not write.
    pub(crate) fn restore(&mut self, lists: &RestoredLists) -> Result<()> {
        let read = |item: &Vec<u8>| match item.split_first() {
            Some((&VERSION, millis)) => millis.try_into().ok().map(Millis::from_be_bytes),
            _ => None,
        };
        let seen = lists.items(LIST).iter().map(read).collect::<Option<Vec<_>>>();
        let seen = seen.ok_or_else(|| Error::new(Code::SnapshotCorrupt, "a stored watermark is malformed"))?;
        if let Some(least) = seen.into_iter().min() {
            self.0 = least;
        }
        Ok(())
    }

    pub(crate) fn snapshot(self) -> BTreeMap<String, ListState> {
        let mut item = vec![VERSION];
        item.extend_from_slice(&self.0.to_be_bytes());
        BTreeMap::from([(LIST.to_owned(), ListState { mode: ListMode::Union, items: vec![item] })])
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn r13_the_least_of_all_stored_watermarks_counts() {
        let items = [7, 5, 9].into_iter().flat_map(|millis| SeenWatermark(millis).snapshot()[LIST].items.clone());
        let lists = BTreeMap::from([(LIST.to_owned(), items.collect::<Vec<_>>())]);
        let mut seen = SeenWatermark::default();
        seen.restore(&RestoredLists { from: None, lists }).unwrap();
        assert_eq!(seen.get(), 5);
    }

    #[test]
    fn items_of_another_version_are_refused() {
        let lists = BTreeMap::from([(LIST.to_owned(), vec![vec![2, 0, 0, 0, 0, 0, 0, 0, 0]])]);
        let restored = SeenWatermark::default().restore(&RestoredLists { from: None, lists });
        assert_eq!(restored.unwrap_err().code, Code::SnapshotCorrupt);
    }
}
