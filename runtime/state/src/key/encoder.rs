//! Key columns of a batch to key rows, column by column.

use arrow::array::{Array, ArrayRef};
use streamkeeper_types::{Code, Error, KeyGroup, Result, ResultExt, key_group};

use super::{KeyPrefix, KeyRows, KeySchema};
use crate::codec::{Codec, Use, View};

/// Turns key columns into [`KeyRows`]. Keeps its buffers from batch to batch; one for each user.
#[derive(Debug, Clone)]
pub struct KeyEncoder {
    schema: KeySchema,
    max_parallelism: u32,
    lengths: Vec<u32>,
    cursors: Vec<u32>,
    hash_from: Vec<u32>,
    hash_to: Vec<u32>,
    scratch: KeyRows,
}

impl KeyEncoder {
    #[must_use]
    pub fn new(schema: KeySchema, max_parallelism: u32) -> Self {
        Self {
            schema,
            max_parallelism,
            lengths: Vec::new(),
            cursors: Vec::new(),
            hash_from: Vec::new(),
            hash_to: Vec::new(),
            scratch: KeyRows::new(),
        }
    }

    #[must_use]
    pub fn schema(&self) -> &KeySchema {
        &self.schema
    }

    /// Replaces `out` by the keys of a batch of `rows` rows. `columns` are the key columns in the schema's order; a
    /// schema without columns gives every row the same, empty key.
    ///
    /// # Errors
    /// `EVALUATION` for a timestamp beyond the range of microseconds, `MEMORY_EXCEEDED` for a batch whose keys exceed
    /// 4 GiB, `INTERNAL` for columns that are not the schema's.
    pub fn encode(&mut self, columns: &[ArrayRef], rows: usize, out: &mut KeyRows) -> Result<()> {
        if let Some(column) = columns.iter().find(|column| column.len() != rows) {
            return Err(Error::internal(format!("a key column of {} rows in a batch of {rows}", column.len())));
        }
        let views = self.views(columns)?;
        match dense_stride(&views) {
            Some(stride) if rows > 0 => {
                self.lay_out_dense(rows, stride, out)?;
                self.write_dense(&views, stride, out);
            }
            _ => {
                self.lay_out(&views, rows, out)?;
                self.write(&views, out);
            }
        }
        self.hash(out);
        Ok(())
    }

    /// Replaces `out` by the key group of each row: all that a partitioner needs.
    ///
    /// # Errors
    /// As [`Self::encode`].
    pub fn groups(&mut self, columns: &[ArrayRef], rows: usize, out: &mut Vec<KeyGroup>) -> Result<()> {
        let mut keys = std::mem::take(&mut self.scratch);
        let encoded = self.encode(columns, rows, &mut keys);
        out.clear();
        out.extend_from_slice(&keys.groups);
        self.scratch = keys;
        encoded
    }

    /// The scan prefix that row `row` of the schema's first [`scan`](KeySchema::scan) columns names.
    ///
    /// # Errors
    /// As [`Self::encode`].
    pub fn prefix(&self, columns: &[ArrayRef], row: usize) -> Result<KeyPrefix> {
        let mut bytes = Vec::new();
        let hashed = self.schema.hashed();
        let mut hash_range = 0..0;
        for (i, (column, codec)) in columns.iter().zip(self.schema.codecs()).take(self.schema.scan()).enumerate() {
            if i == hashed.start {
                hash_range.start = bytes.len();
            }
            View::new(&self.plain(column, i, codec)?, codec, Use::Key)?.append(row, &mut bytes);
            if i + 1 == hashed.end {
                hash_range.end = bytes.len();
            }
        }
        let group = (!self.schema.scans_all_groups())
            .then(|| key_group::of_hash(key_group::hash(&bytes[hash_range]), self.max_parallelism));
        Ok(KeyPrefix { group, bytes: bytes.into() })
    }

    fn views(&self, columns: &[ArrayRef]) -> Result<Vec<View>> {
        let codecs = self.schema.codecs();
        if columns.len() != codecs.len() {
            return Err(Error::internal(format!("{} key columns where {} are declared", columns.len(), codecs.len())));
        }
        let view = |(i, (column, codec)): (usize, (&ArrayRef, &Codec))| {
            View::new(&self.plain(column, i, codec)?, codec, Use::Key)
        };
        columns.iter().zip(codecs).enumerate().map(view).collect()
    }

    /// The column in a type of the declared form: dictionaries and the like are cast.
    fn plain(&self, column: &ArrayRef, index: usize, codec: &Codec) -> Result<ArrayRef> {
        if Codec::of(column.data_type(), Use::Key).is_ok_and(|actual| actual == *codec) {
            return Ok(column.clone());
        }
        let field = &self.schema.fields()[index];
        arrow::compute::cast(column, field.data_type())
            .or_code(Code::Internal, || format!("key column {} came as {}", field.name(), column.data_type()))
    }

    /// Offsets of rows that are all `stride` bytes long.
    fn lay_out_dense(&mut self, rows: usize, stride: usize, out: &mut KeyRows) -> Result<()> {
        let total = u32::try_from(rows * stride).or_code(Code::MemoryExceeded, || "keys of one batch".into())?;
        out.bytes.resize(total as usize, 0);
        out.offsets.clear();
        out.offsets.extend((0..=total).step_by(stride));
        Ok(())
    }

    fn write_dense(&mut self, views: &[View], stride: usize, out: &mut KeyRows) {
        let hashed = self.schema.hashed();
        let (mut at, mut from, mut to) = (2, 2, 2);
        for (i, view) in views.iter().enumerate() {
            let Some((width, values)) = view.dense() else { continue };
            if i == hashed.start {
                from = at;
            }
            write_fixed(values, width, at, stride, &mut out.bytes);
            at += 1 + width;
            if i + 1 == hashed.end {
                to = at;
            }
        }
        self.hash_from.clear();
        self.hash_to.clear();
        self.hash_from.extend(out.offsets[..out.offsets.len() - 1].iter().map(|o| o + from as u32));
        self.hash_to.extend(out.offsets[..out.offsets.len() - 1].iter().map(|o| o + to as u32));
    }

    fn lay_out(&mut self, views: &[View], rows: usize, out: &mut KeyRows) -> Result<()> {
        self.lengths.clear();
        self.lengths.resize(rows, 2);
        views.iter().for_each(|view| view.add_lengths(&mut self.lengths));
        out.offsets.clear();
        out.offsets.push(0);
        let mut end = 0_u64;
        for length in &self.lengths {
            end += u64::from(*length);
            out.offsets.push(u32::try_from(end).or_code(Code::MemoryExceeded, || "keys of one batch".into())?);
        }
        out.bytes.resize(end as usize, 0);
        Ok(())
    }

    fn write(&mut self, views: &[View], out: &mut KeyRows) {
        let hashed = self.schema.hashed();
        self.cursors.clear();
        self.cursors.extend(out.offsets[..out.offsets.len() - 1].iter().map(|offset| offset + 2));
        self.hash_from.clone_from(&self.cursors);
        self.hash_to.clone_from(&self.cursors);
        for (i, view) in views.iter().enumerate() {
            if i == hashed.start {
                self.hash_from.clone_from(&self.cursors);
            }
            view.write(&mut out.bytes, &mut self.cursors);
            if i + 1 == hashed.end {
                self.hash_to.clone_from(&self.cursors);
            }
        }
    }

    /// Fills in hashes, key groups and the rows' first two bytes.
    fn hash(&self, out: &mut KeyRows) {
        let all = self.schema.hashed() == (0..self.schema.fields().len());
        out.hashes.clear();
        out.groups.clear();
        for (row, (from, to)) in self.hash_from.iter().zip(&self.hash_to).enumerate() {
            let (start, end) = (out.offsets[row] as usize, out.offsets[row + 1] as usize);
            let hash = key_group::hash(&out.bytes[*from as usize..*to as usize]);
            let group = key_group::of_hash(hash, self.max_parallelism);
            out.bytes[start..start + 2].copy_from_slice(&group.0.to_be_bytes());
            out.hashes.push(if all { hash } else { key_group::hash(&out.bytes[start + 2..end]) });
            out.groups.push(group);
        }
    }
}

/// Length of every row if all columns are of fixed width and without NULL.
fn dense_stride(views: &[View]) -> Option<usize> {
    views.iter().try_fold(2, |stride, view| Some(stride + 1 + view.dense()?.0))
}

fn write_fixed(values: &[u64], width: usize, at: usize, stride: usize, bytes: &mut [u8]) {
    let rows = bytes.chunks_exact_mut(stride).zip(values);
    if width == 8 {
        for (row, value) in rows {
            row[at] = 1;
            row[at + 1..at + 9].copy_from_slice(&value.to_be_bytes());
        }
        return;
    }
    for (row, value) in rows {
        row[at] = 1;
        row[at + 1..at + 1 + width].copy_from_slice(&value.to_be_bytes()[8 - width..]);
    }
}
