//! Rows of a snapshot into the cache.

use arrow::{
    array::{Array, AsArray, RecordBatch},
    datatypes::TimestampMillisecondType,
};
use streamkeeper_types::{Code, Error, KeyGroup, KeyGroupRange, Result, key_group};

use super::{Slot, Table, flag};
use crate::{
    KeyRows,
    snapshot::{CanonicalRows, PhysicalRows},
};

impl Table {
    /// Takes in rows of a delta or base, the later the stronger; those outside `visible` are no part of the state.
    /// The caller keeps the budget by [`Table::maintain`].
    ///
    /// # Errors
    /// `SNAPSHOT_CORRUPT` for rows that are none of this table.
    pub(crate) fn load(&mut self, batch: &RecordBatch, visible: KeyGroupRange) -> Result<()> {
        let rows = PhysicalRows::new(batch, &self.spec)?;
        let mut live = (Vec::new(), Vec::new());
        for row in 0..batch.num_rows() {
            let key = rows.key(row);
            if !visible.contains(self.group_of(key)?) {
                continue;
            }
            let slot = self.slot_for(key);
            if !rows.is_live(row) {
                self.load_deleted(slot);
                continue;
            }
            self.load_live(slot);
            if !self.used_at.is_empty() {
                self.used_at[slot as usize] = rows.used_at(row).unwrap_or(self.now);
            }
            live.0.push(row as u32);
            live.1.push(Slot(slot));
        }
        for (column, values) in self.columns.iter_mut().zip(rows.values()) {
            column.scatter(values, values.data_type(), &live.0, &live.1)?;
        }
        Ok(())
    }

    /// Takes in rows of a canonical savepoint whose keys are `keys`.
    ///
    /// # Errors
    /// `INTERNAL` for columns of another type.
    pub(crate) fn load_canonical(
        &mut self,
        keys: &KeyRows,
        rows: &CanonicalRows,
        visible: KeyGroupRange,
    ) -> Result<()> {
        let used_at = rows.used_at.as_ref().and_then(|array| array.as_primitive_opt::<TimestampMillisecondType>());
        let mut live = (Vec::new(), Vec::new());
        for (row, group) in keys.groups().iter().enumerate() {
            if !visible.contains(*group) {
                continue;
            }
            let slot = self.slot_for(keys.key(row));
            self.load_live(slot);
            if !self.used_at.is_empty() {
                self.used_at[slot as usize] = used_at.map_or(self.now, |used_at| used_at.value(row));
            }
            live.0.push(row as u32);
            live.1.push(Slot(slot));
        }
        for (column, values) in self.columns.iter_mut().zip(&rows.values) {
            if let Some(values) = values {
                column.scatter(values, values.data_type(), &live.0, &live.1)?;
            }
        }
        Ok(())
    }

    /// Takes in a row as a cold store holds it.
    ///
    /// # Errors
    /// `SNAPSHOT_CORRUPT` for bytes that are no row of this table.
    pub(crate) fn adopt(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        self.group_of(key)?;
        let slot = self.slot_for(key);
        self.fill(slot, value)
    }

    /// The key group of restored row bytes, which are checked here once.
    pub(crate) fn group_of(&self, key: &[u8]) -> Result<KeyGroup> {
        let corrupt = || {
            let table = &self.spec.name;
            Error::new(Code::SnapshotCorrupt, format!("a key of state table {table} is malformed"))
        };
        let (group, _) = key.split_first_chunk::<2>().ok_or_else(corrupt)?;
        if !self.spec.key.is_key(key) {
            return Err(corrupt());
        }
        Ok(KeyGroup(u16::from_be_bytes(*group)))
    }

    fn slot_for(&mut self, key: &[u8]) -> u32 {
        let hash = key_group::hash(&key[2..]);
        match self.find(key, hash) {
            Some(slot) => slot,
            None => self.insert(key, hash),
        }
    }

    fn load_live(&mut self, slot: u32) {
        let index = slot as usize;
        if self.flags[index] & flag::LIVE == 0 {
            self.begin_life(index);
        }
        self.flags[index] |= flag::LIVE | flag::IN_SNAPSHOT;
        if self.cold.is_some() {
            self.flags[index] |= flag::COLD_DIRTY | flag::IN_COLD;
        }
    }

    fn load_deleted(&mut self, slot: u32) {
        let index = slot as usize;
        if self.flags[index] & flag::LIVE != 0 {
            self.end_life(index);
            self.flags[index] &= !flag::LIVE;
            self.reset_values(index);
        }
        self.flags[index] |= flag::IN_SNAPSHOT;
        if self.cold.is_some() {
            self.flags[index] |= flag::COLD_DIRTY | flag::IN_COLD;
        }
        self.dead.push(slot);
    }
}
